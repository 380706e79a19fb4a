// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "simcuda/driver/driver.h"

static const size_t granularity = (size_t)2 << 20;

static bool on_device(const CUmemAllocationProp *properties)
{
    return properties && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes,
                                       const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    (void)option;
    if (!bytes || !on_device(properties))
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = granularity;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags)
{
    DRIVER_ENTER();
    // A wanted address is a hint.
    (void)wanted;
    if (flags || alignment > granularity)
        return CUDA_ERROR_INVALID_VALUE;
    return (CUresult)runtime->sim_virtual_reserve((void **)address, bytes);
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    DRIVER_ENTER();
    return (CUresult)runtime->sim_virtual_unreserve((void *)address, bytes);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    DRIVER_ENTER();
    if (flags || !properties)
        return CUDA_ERROR_INVALID_VALUE;
    if (!on_device(properties))
        return CUDA_ERROR_NOT_SUPPORTED;
    return (CUresult)runtime->sim_virtual_create(handle, properties->location.id, bytes);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    DRIVER_ENTER();
    return (CUresult)runtime->sim_virtual_release(handle);
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    DRIVER_ENTER();
    if (offset || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return (CUresult)runtime->sim_virtual_map((void *)address, bytes, handle);
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    DRIVER_ENTER();
    return (CUresult)runtime->sim_virtual_unmap((void *)address, bytes);
}

// Every device sees all memory; what counts is that something is mapped there.
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t count)
{
    DRIVER_ENTER();
    void *start;
    size_t there;

    if (!access || !count)
        return CUDA_ERROR_INVALID_VALUE;
    const cudaError_t error =
        runtime->sim_virtual_extent((const void *)address, &start, &there);

    if (error)
        return (CUresult)error;
    return address + bytes <= (CUdeviceptr)start + there ? CUDA_SUCCESS
                                                         : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr address)
{
    DRIVER_ENTER();
    return (CUresult)runtime->sim_virtual_extent((const void *)address, (void **)start,
                                                 bytes);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    DRIVER_ENTER();
    return (CUresult)runtime->sim_virtual_retain(handle, address);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle handle)
{
    DRIVER_ENTER();
    int device;
    const cudaError_t error = runtime->sim_virtual_device(handle, &device);

    if (error)
        return (CUresult)error;
    memset(properties, 0, sizeof(*properties));
    properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties->location.id = device;
    return CUDA_SUCCESS;
}

// --- Between processes, and by values that a stream writes: not simulated

CUresult cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type,
                                      unsigned long long flags)
{
    (void)shared, (void)handle, (void)type, (void)flags;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                        void *shared, CUmemAllocationHandleType type)
{
    (void)handle, (void)shared, (void)type;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle,
                               unsigned int flags)
{
    (void)address, (void)handle, (void)flags;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    (void)address;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemsetD32Async(CUdeviceptr address, unsigned int value, size_t count,
                          CUstream stream)
{
    (void)address, (void)value, (void)count, (void)stream;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned int flags)
{
    (void)stream, (void)address, (void)value, (void)flags;
    return CUDA_ERROR_NOT_SUPPORTED;
}
