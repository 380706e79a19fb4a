// SPDX-License-Identifier: Apache-2.0
//
// A driver for the hook tests, with nothing behind it: each function of the driver that
// is interposed, one that calls another exported one from inside, and a failure on
// request (sizes of 13 bytes, and above all there is: 4 GiB, of which 1 is in use).
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include <cuda.h>

#undef cuGetProcAddress
#define GIB ((size_t)1 << 30)

#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
    return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    static CUdeviceptr next = 0x10000000, room;
    static int inside;

    if (bytes == 13 || bytes > 3 * GIB)
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
    return bytes == 13 || bytes > 3 * GIB ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return handle == 77 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = 3 * GIB;
    *total_bytes = 4 * GIB;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    if (device)
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = 4 * GIB;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                    cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
    void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    char name[64];

    (void)flags;
    snprintf(name, sizeof(name), "%s_v2", symbol);
    *function = self && version >= 12000 ? dlsym(self, name) : NULL;
    if (self && !*function)
        *function = dlsym(self, symbol);
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                 cuuint64_t flags);
EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                 cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
