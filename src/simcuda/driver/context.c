// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "simcuda/driver/driver.h"

// Primary contexts are the only ones; a handle is the place of its device.
enum { DEVICES_MAX = 16 };

static char contexts[DEVICES_MAX];

static CUcontext context_of(int device)
{
    return (CUcontext)(void *)&contexts[device];
}

static int device_of(CUcontext context)
{
    const uintptr_t offset = (uintptr_t)context - (uintptr_t)contexts;

    return offset < sizeof(contexts) ? (int)offset : -1;
}

static bool device_there(const struct driver_runtime *runtime, int device)
{
    int count = 0;

    return !runtime->cudaGetDeviceCount(&count) && device >= 0 && device < count;
}

CUresult cuInit(unsigned int flags)
{
    const struct driver_runtime *runtime = driver_runtime();
    int count;

    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!runtime)
        return CUDA_ERROR_NO_DEVICE;
    return (CUresult)runtime->cudaGetDeviceCount(&count);
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    DRIVER_ENTER();
    return (CUresult)runtime->cudaGetDeviceCount(count);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    DRIVER_ENTER();
    if (!device_there(runtime, ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    DRIVER_ENTER();
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    struct cudaDeviceProp properties;
    const cudaError_t error = runtime->cudaGetDeviceProperties(&properties, device);

    if (!error)
        snprintf(name, (size_t)bytes, "%s", properties.name);
    return (CUresult)error;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    DRIVER_ENTER();
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct cudaDeviceProp properties;
    const cudaError_t error = runtime->cudaGetDeviceProperties(&properties, device);

    if (!error)
        *bytes = properties.totalGlobalMem;
    return (CUresult)error;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    DRIVER_ENTER();
    // The numbers are the same ones.
    return (CUresult)runtime->cudaDeviceGetAttribute(
        value, (enum cudaDeviceAttr)attribute, device);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    DRIVER_ENTER();
    if (!device_there(runtime, device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags)
        *flags = CU_CTX_SCHED_AUTO;
    if (active)
        *active = runtime->sim_context_active(device);
    return CUDA_SUCCESS;
}

// Does not make it current.
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    DRIVER_ENTER();
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    int before;
    cudaError_t error = runtime->cudaGetDevice(&before);

    if (!device_there(runtime, device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!error)
        error = runtime->cudaSetDevice(device);
    if (!error)
        *context = context_of(device);
    runtime->cudaSetDevice(before);
    return (CUresult)error;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    DRIVER_ENTER();
    return device_there(runtime, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    DRIVER_ENTER();
    int before;
    cudaError_t error = runtime->cudaGetDevice(&before);

    if (!device_there(runtime, device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!error && before != device)
        error = runtime->cudaSetDevice(device);
    if (!error)
        error = runtime->cudaDeviceReset();
    if (before != device)
        runtime->cudaSetDevice(before);
    return (CUresult)error;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    DRIVER_ENTER();
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    const int device = runtime->sim_context_current();

    *context = device < 0 ? NULL : context_of(device);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    DRIVER_ENTER();
    if (!context) {
        runtime->sim_context_leave();
        return CUDA_SUCCESS;
    }
    if (device_of(context) < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    return (CUresult)runtime->cudaSetDevice(device_of(context));
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    DRIVER_ENTER();
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (runtime->sim_context_current() < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = runtime->sim_context_current();
    return CUDA_SUCCESS;
}

// The limits a context starts with: CUDA C++ Programming Guide.
CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (limit) {
    case CU_LIMIT_STACK_SIZE:
        *value = 1024;
        return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
        *value = 1 << 20;
        return CUDA_SUCCESS;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        *value = 8 << 20;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
}

// No kernel runs that a limit could stop.
CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    size_t known;

    (void)value;
    return cuCtxGetLimit(&known, limit);
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    DRIVER_ENTER();
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = runtime->cudaGetErrorString((cudaError_t)error);
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
    DRIVER_ENTER();
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = runtime->cudaGetErrorName((cudaError_t)error);
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    DRIVER_ENTER();
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    enum cudaStreamCaptureStatus answer = cudaStreamCaptureStatusNone;
    const cudaError_t error = runtime->cudaStreamIsCapturing(stream, &answer);

    *status = (CUstreamCaptureStatus)answer;
    return (CUresult)error;
}

static CUresult pointer_attribute(void *data, CUpointer_attribute attribute,
                                  const struct cudaPointerAttributes *pointer)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = context_of(pointer->device);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(CUmemorytype *)data = pointer->type == cudaMemoryTypeHost
                                    ? CU_MEMORYTYPE_HOST
                                    : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(void **)data = pointer->devicePointer;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)data = pointer->hostPointer;
        return pointer->hostPointer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = pointer->type == cudaMemoryTypeManaged;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = pointer->device;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                               CUdeviceptr address)
{
    DRIVER_ENTER();
    struct cudaPointerAttributes pointer;
    const cudaError_t error =
        runtime->cudaPointerGetAttributes(&pointer, (const void *)address);

    if (error)
        return (CUresult)error;
    if (pointer.type == cudaMemoryTypeUnregistered)
        return CUDA_ERROR_INVALID_VALUE;
    return pointer_attribute(data, attribute, &pointer);
}

// Unlike the one above, an address that is not CUDA's is no error here: zeroes.
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
                                void **data, CUdeviceptr address)
{
    DRIVER_ENTER();
    struct cudaPointerAttributes pointer;
    const cudaError_t error =
        runtime->cudaPointerGetAttributes(&pointer, (const void *)address);

    if (error)
        return (CUresult)error;
    for (unsigned i = 0; i < count; i++) {
        const bool wide = attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT ||
                          attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                          attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER;

        memset(data[i], 0, wide ? sizeof(void *) : sizeof(int));
        if (pointer.type != cudaMemoryTypeUnregistered)
            (void)pointer_attribute(data[i], attributes[i], &pointer);
    }
    return CUDA_SUCCESS;
}
