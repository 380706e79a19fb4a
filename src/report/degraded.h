// SPDX-License-Identifier: Apache-2.0
#ifndef AS_REPORT_DEGRADED_H
#define AS_REPORT_DEGRADED_H

// What did not do what was asked of it, in words, and was done without.

#include <stdbool.h>

struct as_pager_totals;

enum { AS_DEGRADED_BYTES = 256 };

// The text number `index` (from 0). False: there are no more.
bool as_degraded_text(const struct as_pager_totals *pager, unsigned index,
                      char text[AS_DEGRADED_BYTES]);

#endif
