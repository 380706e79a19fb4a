// SPDX-License-Identifier: Apache-2.0
#include "cuda/thread.h"

#include "cuda/runtime.h"

void as_guard_enter(struct as_before *before)
{
    before->mode = AS_CUDA_RELAXED;
    if (as_cuda_capture_mode(&before->mode))
        before->mode = -1;
}

void as_guard_leave(const struct as_before *before)
{
    int mode = before->mode;
    if (mode >= 0 && mode != AS_CUDA_RELAXED)
        as_cuda_capture_mode(&mode);
}

int as_device_enter(int device, struct as_before *before)
{
    as_guard_enter(before);
    before->device = -1;
    int now, err = as_cuda_device_get(&now);
    if (err || now == device)
        return err;
    before->device = now;
    return as_cuda_device_set(device);
}

void as_device_leave(const struct as_before *before)
{
    if (before->device >= 0)
        as_cuda_device_set(before->device);
    as_guard_leave(before);
}

bool as_stream_captured(void *stream)
{
    int capturing = 0;
    return as_cuda_stream_capturing(stream, &capturing) || capturing;
}
