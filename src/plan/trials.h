// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PLAN_TRIALS_H
#define AS_PLAN_TRIALS_H

// What is known of running each block again: a block is untried, then proven by a trial
// without faults, or refused by one with any, for good. Proven ones are tried again from
// time to time.
//
// Thread-safety: none; the plan's lock is around each call.

#include <stdbool.h>
#include <stdint.h>

#include <actswap/actswap.h>

enum { AS_TRIALS = 2048, AS_TRIALS_EVERY = 8 }; // blocks; steps

enum as_standing {
    AS_STANDING_UNTRIED,
    AS_STANDING_PROVEN,
    AS_STANDING_REFUSED,
    AS_STANDING_USELESS, // it saves no more than the inputs that would have to be kept
};

struct as_trial {
    uint64_t block;
    bool used;
    enum as_standing standing;
    uint32_t faults, repairs;
    int fault; // of those the first that counts, or why it was left untried; -1: none
    bool values; // were compared, in each trial
    bool chosen; // the settings' pattern has it
    uint64_t trials, recomputed; // how often
    uint64_t first_step, last_step; // of trials, from 0
    uint64_t seen_step; // that it was last entered in
    uint64_t broken_step; // that a proven one was refused in; UINT64_MAX: none was
    uint64_t saved_bytes, boundary_bytes; // of the last trial
};

struct as_trials {
    struct as_trial entries[AS_TRIALS];
    uint16_t order[AS_TRIALS]; // entries as they were first seen
    unsigned count;
};

// NULL: there are too many blocks, and this one is none of those that are known.
struct as_trial *as_trials_find(struct as_trials *trials, uint64_t block);

// Takes in how one went, in step `step`. True: a block that was proven misbehaves.
bool as_trials_add(struct as_trial *entry, const struct actswap_trial *trial,
                   uint64_t step);

// Another block has the number of a known one from now on.
void as_trials_renew(struct as_trials *trials, uint64_t block);

// Whether a proven block is to be tried again in this step: every AS_TRIALS_EVERY steps the
// one whose last trial is longest ago, of those that still run.
bool as_trials_due(const struct as_trials *trials, const struct as_trial *entry,
                   uint64_t step);

// In how many steps each proven block is tried again.
uint64_t as_trials_round(const struct as_trials *trials);

#endif
