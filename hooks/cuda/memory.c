// SPDX-License-Identifier: Apache-2.0
//
// Each hook calls the real function, tells the engine what the driver confirmed, and
// returns what the real one said.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "card.h"
#include "core/export.h"
#include "engine.h"
#include "hooks.h"

#define CALLER __builtin_return_address(0)

// Declared nowhere: what the headers make of these calls with per-thread streams.
cudaError_t cudaMallocAsync_ptsz(void **address, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void *address, cudaStream_t stream);

// --- Runtime

typedef cudaError_t malloc_fn(void **address, size_t bytes);
typedef cudaError_t free_fn(void *address);
typedef cudaError_t malloc_async_fn(void **address, size_t bytes, cudaStream_t stream);
typedef cudaError_t free_async_fn(void *address, cudaStream_t stream);

static cudaError_t told(bool outermost, cudaError_t result, void *const *address,
                        size_t bytes, void *stream, const void *caller)
{
    if (outermost && result == cudaSuccess)
        as_engine_segment(*address, bytes, stream, caller);
    else if (outermost && result == cudaErrorMemoryAllocation)
        as_engine_out_of_memory(bytes, 0, 0);
    return result;
}

static void give_back(const void *caller, void *const *address)
{
    free_fn *real = (free_fn *)as_hook_real(AS_HOOK_cudaFree, caller);

    if (real)
        real(*address);
}

AS_EXPORT cudaError_t cudaMalloc(void **address, size_t bytes)
{
    malloc_fn *real = (malloc_fn *)as_hook_real(AS_HOOK_cudaMalloc, CALLER);
    if (!real)
        return cudaErrorInitializationError;

    const bool outermost = as_hook_enter();
    struct as_claim claim = {.bytes = bytes};
    if (outermost && as_engine_card_bytes())
        claim = as_card_claim(AS_CARD_RUNTIME, 0, address, bytes, CALLER);
    cudaError_t result = real(address, claim.bytes);
    if (!as_card_settle(&claim, result == cudaSuccess)) {
        give_back(CALLER, address);
        *address = (void *)(uintptr_t)claim.before;
        result = real(address, as_card_too_much());
    }
    as_hook_leave();
    return told(outermost, result, address, bytes, NULL, CALLER);
}

AS_EXPORT cudaError_t cudaFree(void *address)
{
    free_fn *real = (free_fn *)as_hook_real(AS_HOOK_cudaFree, CALLER);
    if (!real)
        return cudaErrorInitializationError;

    const struct as_freeing freeing = as_engine_freeing(address);
    const bool outermost = as_hook_enter();
    const cudaError_t result = real(address);
    as_hook_leave();
    if (outermost && result == cudaSuccess)
        as_engine_freed(&freeing);
    return result;
}

static cudaError_t malloc_async(enum as_hook hook, const void *caller, void **address,
                                size_t bytes, cudaStream_t stream)
{
    malloc_async_fn *real = (malloc_async_fn *)as_hook_real(hook, caller);
    if (!real)
        return cudaErrorInitializationError;

    const bool outermost = as_hook_enter();
    struct as_claim claim = {.bytes = bytes};
    if (outermost && as_engine_card_bytes())
        claim = as_card_claim_pool(stream, address, bytes, caller);
    cudaError_t result = real(address, claim.bytes, stream);
    if (!as_card_settle(&claim, result == cudaSuccess)) {
        give_back(caller, address);
        *address = (void *)(uintptr_t)claim.before;
        result = real(address, as_card_too_much(), stream);
    }
    as_hook_leave();
    return told(outermost, result, address, bytes, stream, caller);
}

static cudaError_t free_async(enum as_hook hook, const void *caller, void *address,
                              cudaStream_t stream)
{
    free_async_fn *real = (free_async_fn *)as_hook_real(hook, caller);
    if (!real)
        return cudaErrorInitializationError;

    const struct as_freeing freeing = as_engine_freeing(address);
    const bool outermost = as_hook_enter();
    const cudaError_t result = real(address, stream);
    as_hook_leave();
    if (outermost && result == cudaSuccess)
        as_engine_freed(&freeing);
    return result;
}

AS_EXPORT cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream)
{
    return malloc_async(AS_HOOK_cudaMallocAsync, CALLER, address, bytes, stream);
}

AS_EXPORT cudaError_t cudaMallocAsync_ptsz(void **address, size_t bytes,
                                           cudaStream_t stream)
{
    return malloc_async(AS_HOOK_cudaMallocAsync_ptsz, CALLER, address, bytes, stream);
}

AS_EXPORT cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
    return free_async(AS_HOOK_cudaFreeAsync, CALLER, address, stream);
}

AS_EXPORT cudaError_t cudaFreeAsync_ptsz(void *address, cudaStream_t stream)
{
    return free_async(AS_HOOK_cudaFreeAsync_ptsz, CALLER, address, stream);
}

// --- Driver

typedef CUresult driver_malloc_fn(CUdeviceptr *address, size_t bytes);
typedef CUresult driver_free_fn(CUdeviceptr address);
typedef CUresult create_fn(CUmemGenericAllocationHandle *handle, size_t bytes,
                           const CUmemAllocationProp *properties,
                           unsigned long long flags);
typedef CUresult release_fn(CUmemGenericAllocationHandle handle);

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr): CUDA's types
}

static void driver_give_back(const void *caller, CUdeviceptr address)
{
    driver_free_fn *real = (driver_free_fn *)as_hook_real(AS_HOOK_cuMemFree_v2, caller);

    if (real)
        real(address);
}

AS_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    driver_malloc_fn *real =
        (driver_malloc_fn *)as_hook_real(AS_HOOK_cuMemAlloc_v2, CALLER);
    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;

    const bool outermost = as_hook_enter();
    struct as_claim claim = {.bytes = bytes};
    if (outermost && as_engine_card_bytes())
        claim = as_card_claim(AS_CARD_DRIVER, 0, address, bytes, CALLER);
    CUresult result = real(address, claim.bytes);
    if (!as_card_settle(&claim, result == CUDA_SUCCESS)) {
        driver_give_back(CALLER, *address);
        *address = (CUdeviceptr)(uintptr_t)claim.before;
        result = real(address, as_card_too_much());
    }
    as_hook_leave();
    if (outermost && result == CUDA_SUCCESS)
        as_engine_segment(pointer(*address), bytes, NULL, CALLER);
    return result;
}

AS_EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
    driver_free_fn *real = (driver_free_fn *)as_hook_real(AS_HOOK_cuMemFree_v2, CALLER);
    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;

    const struct as_freeing freeing = as_engine_freeing(pointer(address));
    const bool outermost = as_hook_enter();
    const CUresult result = real(address);
    as_hook_leave();
    if (outermost && result == CUDA_SUCCESS)
        as_engine_freed(&freeing);
    return result;
}

static bool is_on_device(const CUmemAllocationProp *properties)
{
    return properties && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

AS_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                               const CUmemAllocationProp *properties,
                               unsigned long long flags)
{
    create_fn *real = (create_fn *)as_hook_real(AS_HOOK_cuMemCreate, CALLER);
    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;

    const bool outermost = as_hook_enter();
    struct as_claim claim = {.bytes = bytes};
    if (outermost && as_engine_card_bytes() && is_on_device(properties))
        claim =
            as_card_claim(AS_CARD_HANDLE, properties->location.id, handle, bytes, CALLER);
    const CUresult result = real(handle, claim.bytes, properties, flags);
    as_card_settle(&claim, false); // whole pages: what is given fits
    as_hook_leave();
    if (outermost && result == CUDA_SUCCESS && is_on_device(properties))
        as_engine_physical(pointer(*handle), properties->location.id, bytes, CALLER);
    return result;
}

AS_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    release_fn *real = (release_fn *)as_hook_real(AS_HOOK_cuMemRelease, CALLER);
    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;

    const struct as_freeing freeing = as_engine_freeing(pointer(handle));
    const bool outermost = as_hook_enter();
    const CUresult result = real(handle);
    as_hook_leave();
    if (outermost && result == CUDA_SUCCESS)
        as_engine_freed(&freeing);
    return result;
}
