// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_DRIVER_DRIVER_H
#define AS_SIMCUDA_DRIVER_DRIVER_H

// The simulated driver: a thin second face of the simulated runtime, whose books it
// uses. Where that runtime is not in the process there is no device.
//
// Thread-safety: every function may be called from any thread.

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>

// The runtime's functions that the driver is made of, found without loading anything.
#define DRIVER_RUNTIME(X)                                                                \
    X(cudaError_t, cudaDriverGetVersion, (int *))                                        \
    X(cudaError_t, cudaGetDeviceCount, (int *))                                          \
    X(cudaError_t, cudaGetDevice, (int *))                                               \
    X(cudaError_t, cudaSetDevice, (int))                                                 \
    X(cudaError_t, cudaGetDeviceProperties, (struct cudaDeviceProp *, int))              \
    X(cudaError_t, cudaDeviceGetAttribute, (int *, enum cudaDeviceAttr, int))            \
    X(cudaError_t, cudaPointerGetAttributes,                                             \
      (struct cudaPointerAttributes *, const void *))                                    \
    X(cudaError_t, cudaStreamIsCapturing,                                                \
      (cudaStream_t, enum cudaStreamCaptureStatus *))                                    \
    X(cudaError_t, cudaMalloc, (void **, size_t))                                        \
    X(cudaError_t, cudaFree, (void *))                                                   \
    X(cudaError_t, cudaMallocPitch, (void **, size_t *, size_t, size_t))                 \
    X(cudaError_t, cudaMallocManaged, (void **, size_t, unsigned))                       \
    X(cudaError_t, cudaHostAlloc, (void **, size_t, unsigned))                           \
    X(cudaError_t, cudaFreeHost, (void *))                                               \
    X(cudaError_t, cudaHostRegister, (void *, size_t, unsigned))                         \
    X(cudaError_t, cudaHostUnregister, (void *))                                         \
    X(cudaError_t, cudaHostGetDevicePointer, (void **, void *, unsigned))                \
    X(cudaError_t, cudaMallocAsync, (void **, size_t, cudaStream_t))                     \
    X(cudaError_t, cudaMallocFromPoolAsync,                                              \
      (void **, size_t, cudaMemPool_t, cudaStream_t))                                    \
    X(cudaError_t, cudaFreeAsync, (void *, cudaStream_t))                                \
    X(cudaError_t, cudaMemPoolCreate,                                                    \
      (cudaMemPool_t *, const struct cudaMemPoolProps *))                                \
    X(cudaError_t, cudaMemPoolDestroy, (cudaMemPool_t))                                  \
    X(cudaError_t, cudaMemPoolGetAttribute,                                              \
      (cudaMemPool_t, enum cudaMemPoolAttr, void *))                                     \
    X(cudaError_t, cudaMemPoolSetAttribute,                                              \
      (cudaMemPool_t, enum cudaMemPoolAttr, void *))                                     \
    X(cudaError_t, cudaDeviceGetDefaultMemPool, (cudaMemPool_t *, int))                  \
    X(cudaError_t, cudaDeviceReset, (void))                                              \
    X(cudaError_t, cudaStreamCreateWithPriority, (cudaStream_t *, unsigned, int))        \
    X(cudaError_t, cudaStreamDestroy, (cudaStream_t))                                    \
    X(cudaError_t, cudaStreamSynchronize, (cudaStream_t))                                \
    X(cudaError_t, cudaMemGetInfo, (size_t *, size_t *))                                 \
    X(const char *, cudaGetErrorString, (cudaError_t))                                   \
    X(const char *, cudaGetErrorName, (cudaError_t))                                     \
    X(int, sim_context_current, (void))                                                  \
    X(void, sim_context_leave, (void))                                                   \
    X(bool, sim_context_active, (int device))                                            \
    X(void, sim_guard_look, (void))                                                      \
    X(int, sim_launch, (const char *name, void *stream))                                 \
    X(int, sim_resident_blocks, (int block, size_t shared_bytes))                        \
    X(cudaError_t, sim_virtual_reserve, (void **, size_t))                               \
    X(cudaError_t, sim_virtual_unreserve, (void *, size_t))                              \
    X(cudaError_t, sim_virtual_create, (unsigned long long *, int, size_t))              \
    X(cudaError_t, sim_virtual_release, (unsigned long long))                            \
    X(cudaError_t, sim_virtual_device, (unsigned long long, int *))                      \
    X(cudaError_t, sim_virtual_map, (void *, size_t, unsigned long long))                \
    X(cudaError_t, sim_virtual_unmap, (void *, size_t))                                  \
    X(cudaError_t, sim_virtual_retain, (unsigned long long *, const void *))             \
    X(cudaError_t, sim_virtual_extent, (const void *, void **, size_t *))

// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define DRIVER_FIELD(result, name, arguments) result(*name) arguments;
struct driver_runtime {
    DRIVER_RUNTIME(DRIVER_FIELD)
};
#undef DRIVER_FIELD

// NULL: the simulated runtime is not here.
const struct driver_runtime *driver_runtime(void);

// The function of that name as cuGetProcAddress gives it for a version of CUDA (12020: 12.2)
// and flags, or NULL. Also for the runtime.
void *sim_driver_find(const char *symbol, int version, unsigned long long flags);

// Begins an entry point; `runtime` is what it calls.
#define DRIVER_ENTER()                                                                   \
    const struct driver_runtime *runtime = driver_runtime();                             \
                                                                                         \
    if (!runtime)                                                                        \
    return CUDA_ERROR_NOT_INITIALIZED

#endif
