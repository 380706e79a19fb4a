// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

#include "simcuda/driver/driver.h"

#undef cuGetProcAddress
#undef cuMemAlloc

// Declared nowhere: older forms, and those with per-thread streams.
CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                          cuuint64_t flags);
CUresult cuMemAlloc(unsigned *address, unsigned bytes);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes,
                                      CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);

// By the names that programs ask for: without a suffix. Of several the first one that the
// version of CUDA had; `own` is the one for per-thread streams.
// Two, as an argument that is passed on would be replaced by what the header calls it now.
#define FUNCTION(name, since, ours)                                                      \
    {                                                                                    \
#name, since, (void (*)(void))(ours), NULL                                       \
    }
#define FUNCTION_OWN(name, since, ours, own)                                             \
    {                                                                                    \
#name, since, (void (*)(void))(ours), (void (*)(void))(own)                      \
    }

static const struct {
    const char *name;
    int since; // 11020: 11.2, where the function's documentation says so; 0: older
    void (*function)(void), (*own)(void);
} functions[] = {
    FUNCTION(cuCtxGetCurrent, 0, cuCtxGetCurrent),
    FUNCTION(cuCtxGetDevice, 0, cuCtxGetDevice),
    FUNCTION(cuCtxGetLimit, 0, cuCtxGetLimit),
    FUNCTION(cuCtxSetCurrent, 0, cuCtxSetCurrent),
    FUNCTION(cuCtxSetLimit, 0, cuCtxSetLimit),
    FUNCTION(cuDeviceGet, 0, cuDeviceGet),
    FUNCTION(cuDeviceGetAttribute, 0, cuDeviceGetAttribute),
    FUNCTION(cuDeviceGetCount, 0, cuDeviceGetCount),
    FUNCTION(cuDeviceGetDefaultMemPool, 0, cuDeviceGetDefaultMemPool),
    FUNCTION(cuDeviceGetName, 0, cuDeviceGetName),
    FUNCTION(cuDevicePrimaryCtxGetState, 0, cuDevicePrimaryCtxGetState),
    FUNCTION(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2),
    FUNCTION(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2),
    FUNCTION(cuDevicePrimaryCtxRetain, 0, cuDevicePrimaryCtxRetain),
    FUNCTION(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2),
    FUNCTION(cuDriverGetVersion, 0, cuDriverGetVersion),
    FUNCTION(cuFuncGetAttribute, 0, cuFuncGetAttribute),
    FUNCTION(cuFuncSetAttribute, 0, cuFuncSetAttribute),
    FUNCTION(cuFuncSetCacheConfig, 0, cuFuncSetCacheConfig),
    FUNCTION(cuGetErrorName, 0, cuGetErrorName),
    FUNCTION(cuGetErrorString, 0, cuGetErrorString),
    FUNCTION(cuGetProcAddress, 12000, cuGetProcAddress_v2),
    FUNCTION(cuGetProcAddress, 11030, cuGetProcAddress),
    FUNCTION(cuInit, 0, cuInit),
    FUNCTION(cuLaunchCooperativeKernel, 0, cuLaunchCooperativeKernel),
    FUNCTION(cuLaunchKernel, 0, cuLaunchKernel),
    FUNCTION(cuLaunchKernelEx, 0, cuLaunchKernelEx),
    FUNCTION(cuMemAddressFree, 10020, cuMemAddressFree),
    FUNCTION(cuMemAddressReserve, 10020, cuMemAddressReserve),
    FUNCTION(cuMemAlloc, 3020, cuMemAlloc_v2),
    FUNCTION(cuMemAlloc, 2000, cuMemAlloc),
    FUNCTION_OWN(cuMemAllocAsync, 11020, cuMemAllocAsync, cuMemAllocAsync_ptsz),
    FUNCTION_OWN(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync,
                 cuMemAllocFromPoolAsync_ptsz),
    FUNCTION(cuMemAllocHost, 3020, cuMemAllocHost_v2),
    FUNCTION(cuMemAllocManaged, 6000, cuMemAllocManaged),
    FUNCTION(cuMemAllocPitch, 3020, cuMemAllocPitch_v2),
    FUNCTION(cuMemCreate, 10020, cuMemCreate),
    FUNCTION(cuMemExportToShareableHandle, 0, cuMemExportToShareableHandle),
    FUNCTION(cuMemFree, 3020, cuMemFree_v2),
    FUNCTION_OWN(cuMemFreeAsync, 11020, cuMemFreeAsync, cuMemFreeAsync_ptsz),
    FUNCTION(cuMemFreeHost, 0, cuMemFreeHost),
    FUNCTION(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2),
    FUNCTION(cuMemGetAllocationGranularity, 0, cuMemGetAllocationGranularity),
    FUNCTION(cuMemGetAllocationPropertiesFromHandle, 0,
             cuMemGetAllocationPropertiesFromHandle),
    FUNCTION(cuMemGetInfo, 3020, cuMemGetInfo_v2),
    FUNCTION(cuMemHostAlloc, 0, cuMemHostAlloc),
    FUNCTION(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2),
    FUNCTION(cuMemHostRegister, 6050, cuMemHostRegister_v2),
    FUNCTION(cuMemHostUnregister, 0, cuMemHostUnregister),
    FUNCTION(cuMemImportFromShareableHandle, 0, cuMemImportFromShareableHandle),
    FUNCTION(cuMemMap, 10020, cuMemMap),
    FUNCTION(cuMemPoolCreate, 0, cuMemPoolCreate),
    FUNCTION(cuMemPoolDestroy, 0, cuMemPoolDestroy),
    FUNCTION(cuMemPoolGetAttribute, 0, cuMemPoolGetAttribute),
    FUNCTION(cuMemPoolSetAttribute, 0, cuMemPoolSetAttribute),
    FUNCTION(cuMemRelease, 10020, cuMemRelease),
    FUNCTION(cuMemRetainAllocationHandle, 11000, cuMemRetainAllocationHandle),
    FUNCTION(cuMemSetAccess, 10020, cuMemSetAccess),
    FUNCTION(cuMemUnmap, 10020, cuMemUnmap),
    FUNCTION(cuMemsetD32Async, 0, cuMemsetD32Async),
    FUNCTION(cuModuleGetFunction, 0, cuModuleGetFunction),
    FUNCTION(cuModuleLoad, 0, cuModuleLoad),
    FUNCTION(cuModuleLoadData, 0, cuModuleLoadData),
    FUNCTION(cuModuleLoadDataEx, 0, cuModuleLoadDataEx),
    FUNCTION(cuModuleUnload, 0, cuModuleUnload),
    FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor, 0,
             cuOccupancyMaxActiveBlocksPerMultiprocessor),
    FUNCTION(cuOccupancyMaxActiveClusters, 0, cuOccupancyMaxActiveClusters),
    FUNCTION(cuPointerGetAttribute, 0, cuPointerGetAttribute),
    FUNCTION(cuPointerGetAttributes, 0, cuPointerGetAttributes),
    FUNCTION(cuStreamCreate, 0, cuStreamCreate),
    FUNCTION(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority),
    FUNCTION(cuStreamDestroy, 4000, cuStreamDestroy_v2),
    FUNCTION(cuStreamIsCapturing, 0, cuStreamIsCapturing),
    FUNCTION(cuStreamSynchronize, 0, cuStreamSynchronize),
    FUNCTION(cuStreamWriteValue32, 0, cuStreamWriteValue32_v2),
    FUNCTION(cuTensorMapEncodeTiled, 0, cuTensorMapEncodeTiled),
};

void *sim_driver_find(const char *symbol, int version, unsigned long long flags)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (strcmp(functions[i].name, symbol) != 0 || functions[i].since > version)
            continue;
        const bool own =
            flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && functions[i].own;

        return (void *)(uintptr_t)(own ? functions[i].own : functions[i].function);
    }
    return NULL;
}

static bool is_known(const char *symbol)
{
    return sim_driver_find(symbol, CUDA_VERSION, 0);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                             cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    if (!symbol || !function)
        return CUDA_ERROR_INVALID_VALUE;
    *function = sim_driver_find(symbol, version, flags);
    if (status && *function)
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    else if (status)
        *status = is_known(symbol) ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                   : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                          cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
