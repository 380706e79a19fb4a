// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_POOL_H
#define AS_SIMCUDA_RUNTIME_POOL_H

// Memory pools. What cudaMallocAsync gives comes from the device's books at once and goes
// back to them when its free has its turn, so a pool keeps nothing but its figures.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>

// By its number, from 0. An unsigned of 0 would do as well for memory that is of none, so
// the books keep the number plus one.
enum { SIM_POOLS_MAX = 256 };

// Memory came from the pool, or went back. A pool that was destroyed ends with its last.
void sim_pool_gave(unsigned pool, size_t bytes);
void sim_pool_got(unsigned pool, size_t bytes);

#endif
