// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_NEWER_H
#define AS_SIMCUDA_RUNTIME_NEWER_H

// What the headers of CUDA 13.2 declare and those of 13.0 do not. One runtime serves all
// of CUDA 13, so it has all of it whichever wheel's headers it is built with.

#include <cuda_runtime_api.h>

#if CUDART_VERSION < 13020
#define cudaErrorVersionTranslation ((cudaError_t)10)
#define cudaErrorStreamDetached ((cudaError_t)917)

cudaError_t cudaGraphGetId(cudaGraph_t graph, unsigned int *id);
cudaError_t cudaGraphExecGetId(cudaGraphExec_t exec, unsigned int *id);
cudaError_t cudaGraphNodeGetLocalId(cudaGraphNode_t node, unsigned int *id);
cudaError_t cudaGraphNodeGetContainingGraph(cudaGraphNode_t node, cudaGraph_t *graph);
#endif

#endif
