// SPDX-License-Identifier: Apache-2.0
//
// A driver for the hook tests, with nothing behind it: each function of the driver that
// is interposed, one that calls another exported one from inside, and a failure on
// request (sizes of 13 bytes).
#include <dlfcn.h>
#include <stdint.h>

#include <cuda.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
    return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    static CUdeviceptr next = 0x10000000, room;
    static int inside;

    if (bytes == 13)
        return CUDA_ERROR_OUT_OF_MEMORY;
    // As a driver that takes room for itself, through the name that everybody sees.
    if (!inside) {
        CUresult (*alloc)(CUdeviceptr *, size_t) =
            (CUresult(*)(CUdeviceptr *, size_t))dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");

        inside = 1;
        const CUresult result = alloc(&room, 1 << 20);
        inside = 0;
        if (result)
            return result;
    }
    *address = next;
    next += 0x10000000;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                            const CUmemAllocationProp *properties,
                            unsigned long long flags)
{
    (void)properties;
    (void)flags;
    *handle = 77;
    return bytes == 13 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return handle == 77 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
