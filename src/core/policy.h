// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CORE_POLICY_H
#define AS_CORE_POLICY_H

// Reads ACTSWAP_POLICY: a policy's name and its options.

#include "core/complaint.h"
#include "core/settings.h"

// 0, or -EINVAL with the complaint written.
int as_policy_read(struct as_settings *settings, const char *value,
                   const struct as_complaint *complaint);

#endif
