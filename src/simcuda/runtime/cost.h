// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_COST_H
#define AS_SIMCUDA_RUNTIME_COST_H

// How long work takes on the simulated card, from the table of GPUs: deterministic, and
// so far no more than bytes over bandwidth and a fixed cost a launch.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t sim_cost_copy(bool to_device, bool from_device, size_t bytes);
uint64_t sim_cost_fill(size_t bytes);
uint64_t sim_cost_launch(void);
uint64_t sim_cost_access(size_t bytes); // a body's reads and writes

#endif
