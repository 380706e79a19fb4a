// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_FAULTS_H
#define AS_SIMCUDA_RUNTIME_FAULTS_H

// Faults by count: ACTSWAP_SIM_FAULT="cudaMalloc:7=2,@cudaMemcpyAsync:1+=700" makes the
// seventh cudaMalloc of the process return 2 and do nothing, and each cudaMemcpyAsync that
// libactswap calls, from its first on, 700. For tests; sim_faults_set() begins anew.
//
// Thread-safety: sim_faults_next may be called from any thread.

#include <cuda_runtime_api.h>

// `text` may be NULL: none. Ends the process when it does not parse.
void sim_faults_read(const char *text);

// ACTSWAP_SIM_FAULT from now on, counted anew, with no call under way; and how many calls
// its first entry has seen.
void sim_faults_set(const char *text);
unsigned long sim_faults_calls(void);

// Counts a call from the code at `caller`; what it is to return instead of doing its work,
// or cudaSuccess.
cudaError_t sim_faults_next(const char *function, const void *caller);

#endif
