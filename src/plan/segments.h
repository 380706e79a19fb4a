// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PLAN_SEGMENTS_H
#define AS_PLAN_SEGMENTS_H

// How many blocks are run again together: fewer inputs are kept then, and more is there at
// a time while they are.
//
// Thread-safety: as of plan.h.

#include <stdbool.h>
#include <stddef.h>

struct as_plan;
struct as_settings;

// True, with the figures in words, where fewer together would take less, by what trials saw.
bool as_segments_advise(struct as_plan *plan, const struct as_settings *settings,
                        char *text, size_t text_bytes);

#endif
