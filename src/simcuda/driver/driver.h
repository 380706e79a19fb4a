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
struct driver_runtime {
    cudaError_t (*cudaDriverGetVersion)(int *);
    cudaError_t (*cudaGetDeviceCount)(int *);
    cudaError_t (*cudaGetDevice)(int *);
    cudaError_t (*cudaSetDevice)(int);
    cudaError_t (*cudaGetDeviceProperties)(struct cudaDeviceProp *, int);
    cudaError_t (*cudaDeviceGetAttribute)(int *, enum cudaDeviceAttr, int);
    cudaError_t (*cudaPointerGetAttributes)(struct cudaPointerAttributes *, const void *);
    cudaError_t (*cudaStreamIsCapturing)(cudaStream_t, enum cudaStreamCaptureStatus *);
    cudaError_t (*cudaMalloc)(void **, size_t);
    cudaError_t (*cudaFree)(void *);
    cudaError_t (*cudaMemGetInfo)(size_t *, size_t *);
    const char *(*cudaGetErrorString)(cudaError_t);
    const char *(*cudaGetErrorName)(cudaError_t);
    bool (*sim_context_active)(int device);
    void (*sim_guard_look)(void);
    int (*sim_launch)(const char *name, void *stream);
    int (*sim_resident_blocks)(int block, size_t shared_bytes);
    cudaError_t (*sim_virtual_reserve)(void **, size_t);
    cudaError_t (*sim_virtual_unreserve)(void *, size_t);
    cudaError_t (*sim_virtual_create)(unsigned long long *, int, size_t);
    cudaError_t (*sim_virtual_release)(unsigned long long);
    cudaError_t (*sim_virtual_device)(unsigned long long, int *);
    cudaError_t (*sim_virtual_map)(void *, size_t, unsigned long long);
    cudaError_t (*sim_virtual_unmap)(void *, size_t);
    cudaError_t (*sim_virtual_retain)(unsigned long long *, const void *);
    cudaError_t (*sim_virtual_extent)(const void *, void **, size_t *);
};

// NULL: the simulated runtime is not here.
const struct driver_runtime *driver_runtime(void);

// The function of that name as cuGetProcAddress gives it, or NULL. Also for the runtime.
void *sim_driver_find(const char *symbol);

// Begins an entry point; `runtime` is what it calls.
#define DRIVER_ENTER()                                                                   \
    const struct driver_runtime *runtime = driver_runtime();                             \
                                                                                         \
    if (!runtime)                                                                        \
    return CUDA_ERROR_NOT_INITIALIZED

#endif
