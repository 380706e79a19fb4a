// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_MISSING_H
#define AS_SIMCUDA_RUNTIME_MISSING_H

// The functions that are not there. missing.names lists them; the build makes each
// answer cudaErrorNotSupported, and docs/simcuda.md carries the same list.

#include <cuda_runtime_api.h>
#include <stdatomic.h>

// What each of them does; `said` is its own.
cudaError_t sim_missing(const char *function, atomic_flag *said);

// Stand-ins find it by name and count with it.
void sim_closed_call(void);

#endif
