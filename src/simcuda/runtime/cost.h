// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_COST_H
#define AS_SIMCUDA_RUNTIME_COST_H

// How long work takes on the current simulated card, from the table of GPUs: at the rates
// that the table has, which no kernel quite reaches.
//
// Thread-safety: every function may be called from any thread.

#include "simcuda/order/queue.h"
#include "simcuda/runtime/memory.h"
#include "simcuda/simcuda.h"

// `staged`: the host's bytes are taken within the call.
struct sim_cost sim_cost_copy(const struct sim_location *to,
                              const struct sim_location *from, size_t bytes, bool staged);
struct sim_cost sim_cost_fill(size_t bytes, bool on_device);
struct sim_cost sim_cost_launch(const struct sim_lost *writes); // of an unknown kernel
struct sim_cost sim_cost_work(const struct sim_effort *effort);

// What a body without one of its own asks for: its accesses, once each.
struct sim_effort sim_effort_of(const struct sim_access *accesses, size_t count);

#endif
