// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_VALUES_H
#define AS_SIMCUDA_RUNTIME_VALUES_H

// Which memory has values under SIM_AUTO; elsewhere every function does nothing.
//
// The books are kept in the order of the program's calls, not in that of the queue: where
// a program orders its streams the two agree on what an operator will find, and where it
// does not, the queue's order decides on the bytes, as it does under SIM_VALUES.
//
// Device memory has no values until something writes them. Host memory always has, but
// for pinned memory that took a copy of what has none: its bytes stand for nothing until
// the host writes there.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>

#include "simcuda/order/queue.h"
#include "simcuda/simcuda.h"

// Decides whether the work may run, and enters what it leaves behind. Work that is
// captured does not: what a replay would find is not known.
bool sim_values_pass(const struct sim_work *work, const struct sim_access *accesses,
                     size_t count, bool captured);

void sim_values_set(const void *address, size_t bytes, enum sim_values values);

// Of pinned memory. Between a copy's submission and its end, the bytes there say nothing
// yet: they are awaited.
enum sim_values sim_values_get_host(const void *address, size_t bytes);
void sim_values_set_host(const void *address, size_t bytes, enum sim_values values);
void sim_values_landed_host(const void *address, size_t bytes);
bool sim_values_awaited_host(const void *address, size_t bytes);

// What nobody computes has run: what it wrote has no values any more.
void sim_values_lose(const struct sim_lost *lost);

// The same of all device memory, now and after each launch of a graph: some graph may
// hold such work.
void sim_values_lose_always(void);
bool sim_values_always_lost(void);

// What the calling thread's copies move; never NULL.
const struct sim_element *sim_element_get(void);

#endif
