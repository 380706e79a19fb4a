// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_FAULTS_H
#define AS_SIMCUDA_RUNTIME_FAULTS_H

// Faults by count: ACTSWAP_SIM_FAULT="cudaMalloc:7=2,cudaMemcpyAsync:1=700" makes the
// seventh cudaMalloc of the process return 2 and do nothing. For tests.
//
// Thread-safety: sim_faults_next may be called from any thread.

#include <cuda_runtime_api.h>

// `text` may be NULL: none. Ends the process when it does not parse.
void sim_faults_read(const char *text);

// Counts a call; what it is to return instead of doing its work, or cudaSuccess.
cudaError_t sim_faults_next(const char *function);

#endif
