// SPDX-License-Identifier: Apache-2.0
//
// Memory that is not mapped by hand (virtual.c), and the streams that it is ordered by.
#include <assert.h>

#include "simcuda/driver/driver.h"

static cudaStream_t own_stream(CUstream stream)
{
    return stream ? stream : cudaStreamPerThread;
}

// --- Device memory

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    DRIVER_ENTER();
    void *memory = NULL;

    if (!address || !bytes)
        return CUDA_ERROR_INVALID_VALUE;

    const cudaError_t error = runtime->cudaMalloc(&memory, bytes);

    *address = (CUdeviceptr)memory;
    return (CUresult)error;
}

// Of CUDA 3.1 and older, which had no more than 4 GiB.
#undef cuMemAlloc
CUresult cuMemAlloc(unsigned *address, unsigned bytes);
CUresult cuMemAlloc(unsigned *address, unsigned bytes)
{
    (void)address, (void)bytes;
    return CUDA_ERROR_NOT_SUPPORTED; // no address here is so small
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width,
                            size_t height, unsigned int unit)
{
    DRIVER_ENTER();
    if (!address || !pitch || !width || !height || (unit != 4 && unit != 8 && unit != 16))
        return CUDA_ERROR_INVALID_VALUE;
    return (CUresult)runtime->cudaMallocPitch((void **)address, pitch, width, height);
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    DRIVER_ENTER();
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    return (CUresult)runtime->cudaMallocManaged((void **)address, bytes, flags);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaFree((void *)address);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaMemGetInfo(free_bytes, total_bytes);
}

// --- Host memory

CUresult cuMemAllocHost_v2(void **address, size_t bytes)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaHostAlloc(address, bytes, cudaHostAllocDefault);
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaHostAlloc(address, bytes, flags);
}

CUresult cuMemFreeHost(void *address)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaFreeHost(address);
}

CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaHostRegister(address, bytes, flags);
}

CUresult cuMemHostUnregister(void *address)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaHostUnregister(address);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *address,
                                      unsigned int flags)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaHostGetDevicePointer((void **)device, address, flags);
}

// --- In the order of a stream

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaMallocAsync((void **)address, bytes, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaMallocFromPoolAsync((void **)address, bytes, pool,
                                                      stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaFreeAsync((void *)address, stream);
}

// Declared nowhere: no stream is the thread's own.
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes,
                                      CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    return cuMemAllocAsync(address, bytes, own_stream(stream));
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes,
                                      CUmemoryPool pool, CUstream stream)
{
    return cuMemAllocFromPoolAsync(address, bytes, pool, own_stream(stream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    return cuMemFreeAsync(address, own_stream(stream));
}

static_assert(sizeof(CUmemPoolProps) == sizeof(struct cudaMemPoolProps) &&
                  (int)CU_MEM_LOCATION_TYPE_DEVICE == (int)cudaMemLocationTypeDevice,
              "both interfaces have one form");

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *wanted)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaMemPoolCreate(pool, (const void *)wanted);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaMemPoolDestroy(pool);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                               void *value)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaMemPoolGetAttribute(
        pool, (enum cudaMemPoolAttr)attribute, value);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                               void *value)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaMemPoolSetAttribute(
        pool, (enum cudaMemPoolAttr)attribute, value);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaDeviceGetDefaultMemPool(pool, device);
}

// --- Streams

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaStreamCreateWithPriority(stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaStreamDestroy(stream);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaStreamSynchronize(stream);
}
