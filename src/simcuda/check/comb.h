// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CHECK_COMB_H
#define AS_SIMCUDA_CHECK_COMB_H

// Which of the bytes from its first to its last an access touches: every n-th element,
// a slice of each row, columns.
//
// Where that is not known, or not as simple, the answers are those for more bytes: two
// accesses that share a byte are never said not to.
//
// Thread-safety: none; the queue's lock covers it. Out of memory ends the process.

#include <stdbool.h>
#include <stdint.h>

#include "simcuda/simcuda.h"

struct sim_comb; // lives as long as the process, each once; NULL: all bytes

const struct sim_comb *sim_comb_intern(const struct sim_rows rows[SIM_ROWS]);

// Whether one that starts at `start` touches any byte of [from, to).
bool sim_comb_touches(const struct sim_comb *comb, uintptr_t start, uintptr_t from,
                      uintptr_t to);

// Whether the two may touch the same byte, somewhere.
bool sim_combs_meet(const struct sim_comb *a, uintptr_t a_start, const struct sim_comb *b,
                    uintptr_t b_start);

// True if, where both reach, the one touches all that the other does.
bool sim_comb_covers(const struct sim_comb *comb, uintptr_t start,
                     const struct sim_comb *other, uintptr_t other_start);

#endif
