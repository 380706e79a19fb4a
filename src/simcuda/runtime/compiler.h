// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_COMPILER_H
#define AS_SIMCUDA_RUNTIME_COMPILER_H

// What the CUDA compiler's output calls, which no header of the runtime wheel declares,
// and two functions whose header does not stand beside cuda_runtime_api.h in C.

#include <cuda_runtime_api.h>
#include <stddef.h>

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
char __cudaInitModule(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *function, char *device_function,
                            const char *name, int thread_limit, struct uint3 *tid,
                            struct uint3 *bid, dim3 *block, dim3 *grid, int *warp_size);
void __cudaRegisterVar(void **handle, char *host_variable, char *device_address,
                       const char *name, int external, size_t bytes, int constant,
                       int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
                                       void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared_bytes, cudaStream_t stream);

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

#endif
