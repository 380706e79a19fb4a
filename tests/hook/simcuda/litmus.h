// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TESTS_HOOK_SIMCUDA_LITMUS_H
#define AS_TESTS_HOOK_SIMCUDA_LITMUS_H

// Cases, each in a process of its own that starts with no CUDA in it.

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "simcuda/simcuda.h"

struct litmus {
    const char *name;
    void (*run)(void);
    const char *environment; // NAME=value for this case, or NULL
    const char *dies; // it ends with status 70 and this in its message, or NULL
};

// Runs them, prints TAP; the exit status.
int litmus_run(const struct litmus *cases, size_t count);

// True under ACTSWAP_SIM_ORDER=late.
bool litmus_late(void);

void litmus_expect(const char *file, int line, const char *what, long got, long want);

#define EXPECT(got, want)                                                                \
    litmus_expect(__FILE__, __LINE__, #got, (long)(got), (long)(want))
#define OK(call) EXPECT(call, cudaSuccess)

// What differs by order: a missing edge shows the old value under `late`.
#define EXPECT_BY_ORDER(got, early, late) EXPECT(got, litmus_late() ? (late) : (early))

// One int of device, pinned memory; zero.
int *litmus_device(void);
int *litmus_pinned(void);

// What device memory holds at this moment, whatever is queued.
int litmus_peek(const int *device);

cudaStream_t litmus_stream(void); // non-blocking
cudaStream_t litmus_blocking_stream(void);
cudaEvent_t litmus_event(void);

// Queue bodies: *to = value, *to = *from, *to += by.
void litmus_set(cudaStream_t stream, int *to, int value);
void litmus_move(cudaStream_t stream, int *to, const int *from);
void litmus_add(cudaStream_t stream, int *to, int by);

#define LITMUS(function)                                                                 \
    {                                                                                    \
        .name = #function, .run = function                                               \
    }

#endif
