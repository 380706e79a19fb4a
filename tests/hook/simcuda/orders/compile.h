// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TESTS_HOOK_SIMCUDA_ORDERS_COMPILE_H
#define AS_TESTS_HOOK_SIMCUDA_ORDERS_COMPILE_H

// A program as operations and host steps, for model.c.

#include "model.h"

typedef uint32_t set; // of operations

struct operation {
    set before; // what it comes after, directly
    int to, from; // places, or -1; from -2: what was staged
    int value; // added to `from`, or to 0
    bool idle; // takes `to`, and writes nothing there
};

enum step_kind { SUBMIT, NEED, ASK, LOOK, PUT, STAGE, GIVE, GET };

struct step {
    enum step_kind kind;
    int thread;
    int rank; // among its thread's steps
    int operation; // SUBMIT, STAGE
    int handover; // GIVE, GET
    int seen, query; // LOOK, ASK: where it is shown
    int place, value; // LOOK, PUT, STAGE
    set needed; // NEED, ASK
};

struct compiled {
    struct operation operations[OPERATIONS_MAX];
    int operation_count;
    struct step steps[3 * STATEMENTS_MAX];
    int step_count;
    int of_thread[THREADS][3 * STATEMENTS_MAX]; // steps by rank
    int thread_steps[THREADS];
    int seen_count;
    int shown[OBSERVED_MAX], shown_count;
};

bool compile_program(const struct program *program, struct compiled *to);

#endif
