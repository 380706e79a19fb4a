// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PLAN_PLAN_H
#define AS_PLAN_PLAN_H

// What becomes of a block's activations, decided at its entry.
//
// Thread-safety: every function may be called from any thread; nesting is counted for
// each thread by itself.

#include <stdbool.h>
#include <stdint.h>

#include <actswap/actswap.h>

#include "plan/trials.h"

struct as_plan;
struct as_settings;

// `settings` must outlive the plan.
struct as_plan *as_plan_create(const struct as_settings *settings);
void as_plan_destroy(struct as_plan *plan);

// The verdict on the block that this thread enters. An inner block shares its outer
// one's fate, except that what is run again as a whole is not run again in parts.
// While a backward runs (a block that is being recomputed) the answer is keep.
enum actswap_verdict as_plan_enter(struct as_plan *plan, uint64_t block);
void as_plan_exit(struct as_plan *plan);

// How a trial of a block went, and that a call of it was left alone. True: it was proven
// before and misbehaves now, of which `entry` tells.
bool as_plan_tried(struct as_plan *plan, uint64_t block,
                   const struct actswap_trial *trial, struct as_trial *entry);
void as_plan_skipped(struct as_plan *plan, uint64_t block, enum actswap_fault fault);

// Another block has the number: it is untried.
void as_plan_renewed(struct as_plan *plan, uint64_t block);

// Blocks entered so far, those inside others left out.
uint64_t as_plan_blocks(struct as_plan *plan);

// The blocks that recompute knows, in order of their first entry. False: there are no more.
bool as_plan_read(struct as_plan *plan, unsigned index, struct as_trial *entry);

struct as_plan_totals {
    unsigned blocks, proven, refused, useless, untried, left_out; // by the pattern
    unsigned segment; // blocks that are run again together; 0: not known yet
    uint64_t saved_bytes, boundary_bytes; // of all that are proven, as of their trials
    uint64_t round; // in how many steps each proven block is tried again
    bool values; // each trial compared them
};

void as_plan_totals(struct as_plan *plan, struct as_plan_totals *totals);

// Forward begin: blocks are counted anew, and the last forward's count tells which are
// the last ones.
void as_plan_mark(struct as_plan *plan, enum actswap_moment moment);

#endif
