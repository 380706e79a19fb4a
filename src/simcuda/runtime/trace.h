// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_TRACE_H
#define AS_SIMCUDA_RUNTIME_TRACE_H

// Calls of the program and work on the device, told to one who traces: the simulated CUPTI
// (src/simcuda/cupti). Nothing is told, and next to nothing costs, while nobody does.
//
// Calls nest; only the outermost is one of the program's. Work belongs to the call that
// submits it, a graph's nodes to its launch.
//
// Thread-safety: every function may be called from any thread.

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simcuda/order/queue.h"

struct sim_entry;

struct sim_traced_call {
    const char *name; // the function's
    uint32_t correlation; // of the process; from 1
    cudaError_t result;
    int device; // the thread's
};

enum sim_traced_kind { SIM_TRACED_KERNEL, SIM_TRACED_COPY, SIM_TRACED_FILL };

// Times are the virtual clock's.
struct sim_traced_work {
    enum sim_traced_kind kind;
    const char *name; // as long as the call
    uint32_t correlation; // 0: no call of the program's
    uint64_t start_ns, end_ns;
    int device, peer; // peer: that a copy comes from, or -1
    uint32_t stream; // 0: the legacy one
    uint32_t node; // of a graph's launch, from 1; 0: none
    struct sim_moved moved; // by a copy or a memset
};

// `work` is called with the queue's lock held, the others without any; none may call CUDA.
struct sim_tracer {
    void (*enter)(const struct sim_traced_call *call);
    void (*leave)(const struct sim_traced_call *call);
    void (*work)(const struct sim_traced_work *work);
};

// NULL: nobody traces. What was being told may still be told after this.
void sim_tracer_set(const struct sim_tracer *tracer);

// --- For the runtime's entry points (SIM_ENTER)

struct sim_call {
    const char *name; // NULL: not traced
};

struct sim_call sim_trace_enter(const char *name);
void sim_trace_leave(struct sim_call *call);
void sim_trace_failed(cudaError_t error);

// An entry of the queue has its place in time.
void sim_trace_entry(const struct sim_entry *entry);

#define SIM_TRACE(name)                                                                  \
    __attribute__((cleanup(sim_trace_leave))) struct sim_call call_ =                    \
        sim_trace_enter(name);                                                           \
    (void)call_

#endif
