// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TESTS_HOOK_SIMCUDA_ORDERS_RUNS_H
#define AS_TESTS_HOOK_SIMCUDA_ORDERS_RUNS_H

// Many programs, each under many orders, against the model.

#include <stddef.h>

#include "model.h"

// What became of one program.
struct tried {
    struct program program;
    struct model model;
    unsigned char seen[OUTCOMES_MAX]; // by outcome: some order showed it
    unsigned long wrong_outcomes; // no order allows it
    unsigned long wrong_verdicts; // the checker's, against the model's
    struct seen wrong; // the last such
    unsigned long raced, clean; // runs with a report of the checker, and without
    unsigned long trace; // the outcomes of all runs, in their order
    bool unseen; // it does what the checker cannot see: no verdict
    bool left_out; // not run
};

// Memory that the processes of all orders share; NULL: none.
struct tried *tried_create(size_t count);

// Runs each under `early`, `late` and the seeds from `seed` on, a process for each order
// in which every program is run `times`. Without CUDA in the caller. false: a process
// failed.
bool tried_run(struct tried *tried, size_t count, unsigned long seed, unsigned seeds,
               unsigned times);

// Runs those of whose outcomes some were not seen under more seeds, at most `most` of them,
// until all were. Returns how many outcomes were not.
unsigned long tried_cover(struct tried *tried, size_t count, unsigned long seed,
                          unsigned most);

// Whether two processes of the same seed show the same.
bool tried_repeat(struct tried *tried, size_t count, unsigned long seed);

// Says what was wrong with it on standard error, if anything was; whether all was well.
// `covered`: each outcome of the model must have been seen.
bool tried_judge(const struct tried *tried, bool covered);

#endif
