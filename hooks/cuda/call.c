// SPDX-License-Identifier: Apache-2.0
//
// The real function is called first; what the driver confirmed is then told to the engine,
// and what the real one said is returned.
#include "call.h"

#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "cuda/runtime.h"

// --- For the table

size_t as_call_area(size_t width, size_t height)
{
    size_t area;

    return __builtin_mul_overflow(width, height, &area) ? SIZE_MAX : area;
}

size_t as_call_width(const struct as_call *call, size_t width)
{
    return call->bytes == call->asked_bytes || !call->rows ? width
                                                           : call->bytes / call->rows;
}

int as_call_device(const void *properties)
{
    const CUmemAllocationProp *wanted = properties;

    return wanted && wanted->location.type == CU_MEM_LOCATION_TYPE_DEVICE
               ? wanted->location.id
               : AS_CALL_NONE;
}

static uint64_t number(const void *address)
{
    return (uintptr_t)address;
}

// --- Before

// Nothing is captured on the stream that orders all others, and asking would end a capture.
static bool is_captured(const struct as_call *call)
{
    typedef CUresult captured_fn(CUstream stream, CUstreamCaptureStatus * status);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    int capturing = 0;

    if (!call->stream || call->stream == cudaStreamLegacy)
        return false;
    if (as_cuda_stream_capturing(call->stream, &capturing) != cudaErrorNotSupported)
        return capturing;
    captured_fn *ask = (captured_fn *)as_cuda_find("cuStreamIsCapturing", call->caller);
    return ask && !ask(call->stream, &status) && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static void claim(struct as_call *call)
{
    const enum as_card_way way =
        call->api == AS_API_DRIVER ? AS_CARD_DRIVER : AS_CARD_RUNTIME;

    if (!as_engine_card_bytes())
        return;
    if (call->effect == AS_CREATES && call->device >= 0)
        call->claim = as_card_claim(AS_CARD_HANDLE, call->device, call->handle,
                                    call->bytes, call->caller);
    else if (call->effect != AS_GIVES || call->kind != ACTSWAP_MEMORY_DEVICE)
        return;
    else if (call->ordered)
        call->claim = as_card_claim_pool(way, call->pool, call->stream, call->address,
                                         call->bytes, call->caller);
    else
        call->claim = as_card_claim(way, 0, call->address, call->bytes, call->caller);
    if (call->pitch && call->claim.answer == AS_ROOM_FITS)
        as_card_doubt(&call->claim, call->address); // rows are longer than was asked
    call->bytes = call->claim.bytes;
}

// What must be known before: afterwards it may be another thread's, or nobody's.
static void look(struct as_call *call)
{
    switch (call->effect) {
    case AS_GIVES:
        if (call->ordered && is_captured(call))
            call->kind = ACTSWAP_MEMORY_GRAPH;
        break;
    case AS_FREES:
        call->freeing = as_engine_freeing(call->given, call->kinds);
        break;
    case AS_RESETS:
        if (call->device == AS_CALL_CURRENT && as_cuda_device_get(&call->device))
            call->device = AS_CALL_NONE;
        break;
    case AS_ENDS_STREAM:
        if (call->outermost)
            as_engine_stream_ending(call->stream);
        break;
    case AS_RELEASES:
    case AS_UNMAPS:
        call->stamp = as_engine_stamp();
        break;
    default:
        break;
    }
}

void *as_call_begin(struct as_call *call)
{
    void *const real = as_hook_real(call->hook, call->caller);

    if (!real)
        return NULL;
    call->outermost = as_hook_enter();
    call->asked_bytes = call->bytes;
    call->claim.bytes = call->bytes;
    if (call->outermost) {
        look(call);
        claim(call);
    }
    return real;
}

// --- Again

static void give_back(const struct as_call *call)
{
    typedef cudaError_t free_fn(void *address);
    typedef CUresult driver_free_fn(CUdeviceptr address);

    if (call->api == AS_API_RUNTIME) {
        free_fn *real = (free_fn *)as_hook_real(AS_HOOK_cudaFree, call->caller);
        if (real)
            real(*call->address);
        return;
    }
    driver_free_fn *real =
        (driver_free_fn *)as_hook_real(AS_HOOK_cuMemFree_v2, call->caller);
    if (real)
        real(number(*call->address));
}

bool as_call_again(struct as_call *call, int result)
{
    const bool given = result == 0;

    // Of a handle whole pages were claimed: what is given fits.
    if (call->repeated ||
        as_card_settle(&call->claim, given && call->effect == AS_GIVES) || !given ||
        call->effect != AS_GIVES)
        return false;
    give_back(call);
    *(const void **)call->address = call->claim.before;
    call->bytes = as_card_too_much();
    call->repeated = true;
    return true;
}

// --- After

static size_t extent_of(const struct as_call *call, const void *address)
{
    typedef CUresult range_fn(CUdeviceptr * start, size_t * bytes, CUdeviceptr address);
    range_fn *range = (range_fn *)as_cuda_find("cuMemGetAddressRange_v2", call->caller);
    CUdeviceptr start;
    size_t bytes;

    return range && !range(&start, &bytes, number(address)) ? bytes : 0;
}

static void given(const struct as_call *call)
{
    struct as_taking taking = {call->kind, NULL, call->asked_bytes, call->stream,
                               call->caller};

    if (call->effect == AS_NAMES)
        taking.address = call->given;
    else if (call->address)
        taking.address = *call->address;
    if (call->pitch)
        taking.bytes = as_call_area(*call->pitch, call->rows);
    if (call->kind == ACTSWAP_MEMORY_IMPORTED)
        taking.bytes = extent_of(call, taking.address);
    if (taking.bytes)
        as_engine_taken(&taking);
}

static void tell(const struct as_call *call)
{
    switch (call->effect) {
    case AS_GIVES:
    case AS_NAMES:
        given(call);
        break;
    case AS_FREES:
        as_engine_freed(&call->freeing);
        break;
    case AS_RESETS:
        as_engine_device_reset(call->device);
        break;
    case AS_MAKES_STREAM:
        as_engine_stream_made(*call->address);
        break;
    case AS_ENDS_STREAM:
        break;
    case AS_CREATES:
        if (call->device >= 0)
            as_engine_handle_made(*call->handle, call->device, call->asked_bytes,
                                  call->caller);
        break;
    case AS_RETAINS:
        as_engine_handle_retained(*call->handle, number(call->given));
        break;
    case AS_RELEASES:
        as_engine_handle_released(*call->handle, call->stamp);
        break;
    case AS_MAPS:
        as_engine_mapped(number(call->given), call->bytes, *call->handle);
        break;
    case AS_UNMAPS:
        as_engine_unmapped(number(call->given), call->bytes, call->stamp);
        break;
    }
}

void as_call_end(struct as_call *call, int result)
{
    as_hook_leave();
    if (!call->outermost)
        return;
    if (result == 0)
        tell(call);
    else if (call->api == AS_API_RUNTIME && call->effect == AS_GIVES &&
             call->kind == ACTSWAP_MEMORY_DEVICE && result == cudaErrorMemoryAllocation)
        as_engine_out_of_memory(call->asked_bytes, 0, 0);
}
