// SPDX-License-Identifier: Apache-2.0
#include "card.h"

#include <errno.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "core/export.h"
#include "cuda/runtime.h"
#include "engine.h"
#include "hooks.h"

#define CALLER __builtin_return_address(0)

enum { DEVICES = 64 };

typedef cudaError_t info_fn(size_t *free_bytes, size_t *total_bytes);
typedef CUresult driver_info_fn(size_t *free_bytes, size_t *total_bytes);
typedef CUresult device_fn(CUdevice *device);
typedef CUresult context_get_fn(CUcontext *context);
typedef CUresult context_set_fn(CUcontext context);
typedef CUresult state_fn(CUdevice device, unsigned *flags, int *active);
typedef CUresult retain_fn(CUcontext *context, CUdevice device);
typedef CUresult release_fn(CUdevice device);
typedef CUresult total_fn(size_t *bytes, CUdevice device);
typedef cudaError_t properties_fn(struct cudaDeviceProp *properties, int device);

// Declared by CUDA 12's headers only, where it is the name of the next.
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *properties, int device);

static struct as_room rooms[DEVICES];

// --- What is in use

static bool ask_runtime(const struct as_claim *claim, size_t *left, size_t *total)
{
    info_fn *info = (info_fn *)as_hook_real(AS_HOOK_cudaMemGetInfo, claim->caller);
    cudaError_t (*last)(void);

    if (info && info(left, total) == cudaSuccess)
        return true;
    // What failed here was not the program's call: it must not be its last error.
    last = (cudaError_t(*)(void))as_cuda_find("cudaGetLastError", claim->caller);
    if (info && last)
        last();
    return false;
}

static bool ask_driver(const struct as_claim *claim, size_t *left, size_t *total)
{
    driver_info_fn *info =
        (driver_info_fn *)as_hook_real(AS_HOOK_cuMemGetInfo_v2, claim->caller);

    return info && info(left, total) == CUDA_SUCCESS;
}

static bool is_current(int device)
{
    device_fn *get = (device_fn *)as_cuda_find("cuCtxGetDevice", NULL);
    context_get_fn *context = (context_get_fn *)as_cuda_find("cuCtxGetCurrent", NULL);
    CUcontext current = NULL;
    CUdevice now;

    return get && context && !context(&current) && current && !get(&now) && now == device;
}

// The device's own context, if there is one, for as long as it takes to ask. None is made.
static bool ask_elsewhere(const struct as_claim *claim, size_t *left, size_t *total)
{
    context_get_fn *get = (context_get_fn *)as_cuda_find("cuCtxGetCurrent", NULL);
    context_set_fn *set = (context_set_fn *)as_cuda_find("cuCtxSetCurrent", NULL);
    state_fn *state = (state_fn *)as_cuda_find("cuDevicePrimaryCtxGetState", NULL);
    retain_fn *retain = (retain_fn *)as_cuda_find("cuDevicePrimaryCtxRetain", NULL);
    release_fn *release = (release_fn *)as_cuda_find("cuDevicePrimaryCtxRelease", NULL);
    CUcontext before = NULL, there = NULL;
    unsigned flags;
    int active = 0;

    if (!get || !set || !state || !retain || get(&before) || !before ||
        state(claim->device, &flags, &active) || !active || retain(&there, claim->device))
        return false;
    const bool known = set(there) == CUDA_SUCCESS && ask_driver(claim, left, total);
    set(before);
    if (release)
        release(claim->device);
    return known;
}

static bool ask(const struct as_claim *claim, size_t *left, size_t *total)
{
    if (claim->way == AS_CARD_RUNTIME)
        return ask_runtime(claim, left, total);
    if (claim->way == AS_CARD_DRIVER || is_current(claim->device))
        return ask_driver(claim, left, total);
    return ask_elsewhere(claim, left, total);
}

static bool used_of(void *context, uint64_t *used_bytes)
{
    const struct as_claim *claim = context;
    size_t left, total;

    if (ask(claim, &left, &total)) {
        *used_bytes = total - left;
        as_engine_card_seen(claim->device, *used_bytes, total);
        return true;
    }
    // Without a context there is nothing on the device but what was taken by handles.
    *used_bytes = as_engine_taken_bytes(claim->device);
    return claim->way == AS_CARD_HANDLE;
}

// --- Claims

static bool find_device(struct as_claim *claim)
{
    device_fn *get;
    CUdevice device;

    switch (claim->way) {
    case AS_CARD_RUNTIME:
        return as_cuda_device_get(&claim->device) == 0;
    case AS_CARD_DRIVER:
        get = (device_fn *)as_cuda_find("cuCtxGetDevice", NULL);
        if (!get || get(&device))
            return false;
        claim->device = device;
        return true;
    case AS_CARD_HANDLE:
        break;
    }
    return true;
}

size_t as_card_too_much(void)
{
    return (size_t)1 << 50;
}

// `spare_bytes` of it need no room on the card.
static void claim_room(struct as_claim *claim, size_t spare_bytes)
{
    const uint64_t limit_bytes = as_engine_card_bytes();
    const struct as_room_meter meter = {used_of, claim};

    claim->answer = AS_ROOM_UNKNOWN;
    claim->claimed_bytes = claim->bytes > spare_bytes ? claim->bytes - spare_bytes : 0;
    if (!limit_bytes || !find_device(claim) || claim->device < 0 ||
        claim->device >= DEVICES)
        return;
    claim->answer =
        as_room_claim(&rooms[claim->device], limit_bytes, claim->claimed_bytes, &meter);
    // The spare may be in pieces.
    if (claim->answer == AS_ROOM_FITS && spare_bytes)
        claim->answer = AS_ROOM_UNSURE;
}

static bool is_asked(const void *address, size_t bytes)
{
    return address && bytes && bytes < as_card_too_much() && as_engine_card_bytes();
}

static void end_claim(struct as_claim *claim, const void *address)
{
    if (claim->answer == AS_ROOM_FULL)
        claim->bytes = as_card_too_much();
    if (claim->answer == AS_ROOM_UNSURE)
        memcpy(&claim->before, address, sizeof(claim->before));
}

struct as_claim as_card_claim(enum as_card_way way, int device, const void *address,
                              size_t bytes, const void *caller)
{
    struct as_claim claim = {
        .bytes = bytes, .device = device, .way = way, .caller = caller};

    if (!is_asked(address, bytes))
        return claim;
    const int saved_errno = errno;
    claim_room(&claim, 0);
    end_claim(&claim, address);
    errno = saved_errno;
    return claim;
}

struct as_claim as_card_claim_pool(enum as_card_way way, void *pool, void *stream,
                                   const void *address, size_t bytes, const void *caller)
{
    struct as_claim claim = {.bytes = bytes, .way = way, .caller = caller};
    int capturing = 0;

    if (!is_asked(address, bytes))
        return claim;
    const int saved_errno = errno;
    claim_room(&claim, as_cuda_pool_spare(pool));
    if (claim.answer == AS_ROOM_FULL &&
        as_cuda_stream_capturing(stream, &capturing) == 0) {
        // What is captured takes no memory now.
        if (!capturing && as_cuda_stream_synchronize(stream) == 0)
            claim_room(&claim, as_cuda_pool_spare(pool));
        else
            claim.answer = AS_ROOM_UNKNOWN;
    }
    end_claim(&claim, address);
    errno = saved_errno;
    return claim;
}

void as_card_doubt(struct as_claim *claim, const void *address)
{
    claim->answer = AS_ROOM_UNSURE;
    end_claim(claim, address);
}

bool as_card_settle_claim(struct as_claim *claim, bool given)
{
    const uint64_t limit_bytes = as_engine_card_bytes();
    const bool unsure = claim->answer == AS_ROOM_UNSURE;
    uint64_t used_bytes = 0;

    if (!unsure && claim->answer != AS_ROOM_FITS)
        return true;
    if (unsure && given && !used_of(claim, &used_bytes))
        used_bytes = 0;
    as_room_settle(&rooms[claim->device], claim->claimed_bytes);
    return !unsure || !limit_bytes || used_bytes <= limit_bytes;
}

// --- What the card says of itself

static void shrink(int device, size_t *left, size_t *total)
{
    const size_t used_bytes = *total - *left;

    as_engine_card_seen(device, used_bytes, *total);
    const uint64_t limit_bytes = as_engine_card_bytes(); // as it stands now
    if (!limit_bytes || limit_bytes >= *total)
        return;
    *total = limit_bytes;
    *left = used_bytes < limit_bytes ? limit_bytes - used_bytes : 0;
}

AS_EXPORT cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    info_fn *real = (info_fn *)as_hook_real(AS_HOOK_cudaMemGetInfo, CALLER);
    int device;

    if (!real)
        return cudaErrorInitializationError;
    const bool outermost = as_hook_enter();
    const cudaError_t result = real(free_bytes, total_bytes);
    if (outermost && result == cudaSuccess && as_engine_card_bytes())
        shrink(as_cuda_device_get(&device) ? 0 : device, free_bytes, total_bytes);
    as_hook_leave();
    return result;
}

AS_EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    driver_info_fn *real =
        (driver_info_fn *)as_hook_real(AS_HOOK_cuMemGetInfo_v2, CALLER);
    struct as_claim claim = {.way = AS_CARD_DRIVER};

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    const bool outermost = as_hook_enter();
    const CUresult result = real(free_bytes, total_bytes);
    if (outermost && result == CUDA_SUCCESS && as_engine_card_bytes())
        shrink(find_device(&claim) ? claim.device : 0, free_bytes, total_bytes);
    as_hook_leave();
    return result;
}

// As shrink(), of the size alone.
static void shorten(size_t *total)
{
    const uint64_t limit_bytes = as_engine_card_bytes();

    if (limit_bytes && limit_bytes < *total)
        *total = limit_bytes;
}

AS_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    total_fn *real = (total_fn *)as_hook_real(AS_HOOK_cuDeviceTotalMem_v2, CALLER);

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    const bool outermost = as_hook_enter();
    const CUresult result = real(bytes, device);
    if (outermost && result == CUDA_SUCCESS)
        shorten(bytes);
    as_hook_leave();
    return result;
}

// The structure grew over the releases, always behind the size.
static cudaError_t get_properties(enum as_hook hook, const void *caller,
                                  struct cudaDeviceProp *properties, int device)
{
    properties_fn *real = (properties_fn *)as_hook_real(hook, caller);

    if (!real)
        return cudaErrorInitializationError;
    const bool outermost = as_hook_enter();
    const cudaError_t result = real(properties, device);
    if (outermost && result == cudaSuccess)
        shorten(&properties->totalGlobalMem);
    as_hook_leave();
    return result;
}

AS_EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties,
                                              int device)
{
    return get_properties(AS_HOOK_cudaGetDeviceProperties, CALLER, properties, device);
}

AS_EXPORT cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *properties,
                                                 int device)
{
    return get_properties(AS_HOOK_cudaGetDeviceProperties_v2, CALLER, properties, device);
}
