// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TESTS_HOOK_SIMCUDA_ORDERS_MODEL_H
#define AS_TESTS_HOOK_SIMCUDA_ORDERS_MODEL_H

// What CUDA allows a program to show, by trying every order: an independent account of
// the rules that src/simcuda/order follows, small enough to be read beside NVIDIA's
// documentation ("API synchronization behavior", "Stream synchronization behavior",
// "Graphs"). Nothing of simcuda is used.
//
// A program is compiled into operations, each after those that it must come after, and
// host steps, one after the other. Whatever is left to choose is tried.

#include "program.h"

enum { OUTCOMES_MAX = 256, OPERATIONS_MAX = 24 };

struct model {
    // Each that some order gives, as program_run() shows it.
    struct seen outcomes[OUTCOMES_MAX];
    int outcome_count;
    // Bit i: with the answers i to its queries two accesses of the same memory, one of
    // them a write, come in one order in some run and in the other in another.
    uint32_t races;
    // Answers to queries that some run may get.
    uint32_t possible;
};

// `spurious`: queries may answer that work is not done although it is, until the program
// has been told that it is. false: too large.
bool model_explore(const struct program *program, bool spurious, struct model *model);

// The index of what was seen among the outcomes, or -1.
int model_find(const struct model *model, const struct seen *seen);

#endif
