// SPDX-License-Identifier: Apache-2.0
#ifndef AS_REPORT_FIT_H
#define AS_REPORT_FIT_H

// Which cards of the table (core/gpu.h) the run, as it was, has room on.
//
// It needs the highest peak of tensors and what others than PyTorch took beside. A card
// offers its total less the driver's context, and less 1 GiB or 3 % of it, whichever is
// more, for what an allocator cannot use of what it has. Nothing is said of a run that ran
// out of memory, or of fewer than two steps: the first makes the optimizer's state.
//
// Thread-safety: as of report.h.

#include <stdbool.h>
#include <stdint.h>

#include "core/gpu.h"

struct as_facts;
struct as_json;

// 0: nothing is said.
uint64_t as_fit_needed_bytes(const struct as_facts *facts);

uint64_t as_fit_usable_bytes(const struct as_gpu *gpu);

// "verdict": a row for each card.
void as_fit_write(struct as_json *json, const struct as_facts *facts);

#endif
