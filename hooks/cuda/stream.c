// SPDX-License-Identifier: Apache-2.0
//
// Which streams there are. Work on them is nobody's business here: letting go of memory
// early waits for all of them.
#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#include "core/export.h"
#include "engine.h"
#include "hooks.h"

#define CALLER __builtin_return_address(0)

typedef cudaError_t create_fn(cudaStream_t *stream);
typedef cudaError_t create_flags_fn(cudaStream_t *stream, unsigned flags);
typedef cudaError_t create_priority_fn(cudaStream_t *stream, unsigned flags,
                                       int priority);
typedef cudaError_t destroy_fn(cudaStream_t stream);

static cudaError_t told(bool outermost, cudaError_t result, const cudaStream_t *stream)
{
    if (outermost && result == cudaSuccess)
        as_engine_stream_made(*stream);
    return result;
}

AS_EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    create_fn *real = (create_fn *)as_hook_real(AS_HOOK_cudaStreamCreate, CALLER);
    if (!real)
        return cudaErrorInitializationError;

    const bool outermost = as_hook_enter();
    const cudaError_t result = real(stream);
    as_hook_leave();
    return told(outermost, result, stream);
}

AS_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    create_flags_fn *real =
        (create_flags_fn *)as_hook_real(AS_HOOK_cudaStreamCreateWithFlags, CALLER);
    if (!real)
        return cudaErrorInitializationError;

    const bool outermost = as_hook_enter();
    const cudaError_t result = real(stream, flags);
    as_hook_leave();
    return told(outermost, result, stream);
}

AS_EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
                                                   int priority)
{
    create_priority_fn *real =
        (create_priority_fn *)as_hook_real(AS_HOOK_cudaStreamCreateWithPriority, CALLER);
    if (!real)
        return cudaErrorInitializationError;

    const bool outermost = as_hook_enter();
    const cudaError_t result = real(stream, flags, priority);
    as_hook_leave();
    return told(outermost, result, stream);
}

// Told before: afterwards nothing can be asked of the stream.
AS_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    destroy_fn *real = (destroy_fn *)as_hook_real(AS_HOOK_cudaStreamDestroy, CALLER);
    if (!real)
        return cudaErrorInitializationError;

    const bool outermost = as_hook_enter();
    if (outermost)
        as_engine_stream_ending(stream);
    const cudaError_t result = real(stream);
    as_hook_leave();
    return result;
}
