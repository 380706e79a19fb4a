// SPDX-License-Identifier: Apache-2.0
#ifndef AS_REPORT_BUDGET_H
#define AS_REPORT_BUDGET_H

// The peak, held against what the user wants to stay under (ACTSWAP_BUDGET).
//
// Thread-safety: as of report.h.

#include <stddef.h>

struct as_facts;
struct as_json;

// "budget"; nothing without one, or where no peak is known.
void as_budget_write(struct as_json *json, const struct as_facts *facts);

// "44.0 GiB: kept, 3.1 GiB to spare", "44.0 GiB: exceeded by 1.2 GiB, first in step 7,
// backward of layers.3"; "" as above.
void as_budget_say(const struct as_facts *facts, char *text, size_t text_bytes);

#endif
