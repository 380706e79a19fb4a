// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PLAN_PLAN_H
#define AS_PLAN_PLAN_H

// What becomes of a block's activations, decided at its entry.
//
// Thread-safety: every function may be called from any thread; nesting is counted for
// each thread by itself.

#include <stdint.h>

#include <actswap/actswap.h>

struct as_plan;
struct as_settings;

// `settings` must outlive the plan.
struct as_plan *as_plan_create(const struct as_settings *settings);
void as_plan_destroy(struct as_plan *plan);

// The verdict on the block that this thread enters. An inner block shares its outer
// one's fate, except that what is recomputed as a whole is not recomputed in parts.
// While a backward runs (a block that is being recomputed) the answer is keep.
enum actswap_verdict as_plan_enter(struct as_plan *plan);
void as_plan_exit(struct as_plan *plan);

// Blocks entered so far, those inside others left out.
uint64_t as_plan_blocks(struct as_plan *plan);

// Forward begin: blocks are counted anew, and the last forward's count tells which are
// the last ones.
void as_plan_mark(struct as_plan *plan, enum actswap_moment moment);

#endif
