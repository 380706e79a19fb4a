// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/driver/driver.h"

// A module's code is never run, so of a module only its functions' names are kept.
struct CUmod_st {
    struct CUfunc_st *functions;
};

struct CUfunc_st {
    struct CUfunc_st *next;
    char name[];
};

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    DRIVER_ENTER();
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    *module = calloc(1, sizeof(**module));
    return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)
{
    (void)count, (void)options, (void)values;
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    return cuModuleLoadData(module, path);
}

CUresult cuModuleUnload(CUmodule module)
{
    DRIVER_ENTER();
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    while (module->functions) {
        struct CUfunc_st *function = module->functions;

        module->functions = function->next;
        free(function);
    }
    free(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    DRIVER_ENTER();
    if (!function || !module || !name)
        return CUDA_ERROR_INVALID_VALUE;

    const size_t bytes = strlen(name) + 1;
    struct CUfunc_st *entry = malloc(sizeof(*entry) + bytes);

    if (!entry)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(entry->name, name, bytes);
    entry->next = module->functions;
    module->functions = entry;
    *function = entry;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                            CUfunction function)
{
    DRIVER_ENTER();
    int device = 0, major = 0, minor = 0;

    if (!value || !function)
        return CUDA_ERROR_INVALID_VALUE;
    runtime->cudaGetDevice(&device);
    runtime->cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    runtime->cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = major * 10 + minor;
        return CUDA_SUCCESS;
    default:
        *value = 0;
        return CUDA_SUCCESS;
    }
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                            int value)
{
    DRIVER_ENTER();
    (void)attribute, (void)value;
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    DRIVER_ENTER();
    (void)config;
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult launch(CUfunction function, CUstream stream)
{
    DRIVER_ENTER();
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    return (CUresult)runtime->sim_launch(function->name, stream);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **args, void **extra)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared_bytes, (void)args, (void)extra;
    return launch(function, stream);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                   unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes,
                                   CUstream stream, void **args)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared_bytes, (void)args;
    return launch(function, stream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **args,
                          void **extra)
{
    (void)args, (void)extra;
    return config ? launch(function, config->hStream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                     int block, size_t shared_bytes)
{
    DRIVER_ENTER();
    if (!blocks || !function || block < 1)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = runtime->sim_resident_blocks(block, shared_bytes);
    return CUDA_SUCCESS;
}

// Two clusters of eight blocks: enough for a compiler to go on.
CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                      const CUlaunchConfig *config)
{
    DRIVER_ENTER();
    if (!clusters || !function || !config)
        return CUDA_ERROR_INVALID_VALUE;
    *clusters = 16;
    return CUDA_SUCCESS;
}

// A just-in-time linker has nothing to make for a device that runs no code.
CUresult cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values,
                         CUlinkState *state)
{
    (void)count, (void)options, (void)values, (void)state;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data,
                          size_t bytes, const char *name, unsigned int count,
                          CUjit_option *options, void **values)
{
    (void)state, (void)type, (void)data, (void)bytes, (void)name, (void)count;
    (void)options, (void)values;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *bytes)
{
    (void)state, (void)cubin, (void)bytes;
    return CUDA_ERROR_NOT_SUPPORTED;
}

// A descriptor is only ever handed to a kernel, and none runs: any bytes do.
CUresult
cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                       void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                       const cuuint32_t *box, const cuuint32_t *element_strides,
                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                       CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    DRIVER_ENTER();
    (void)type, (void)address, (void)strides, (void)interleave, (void)swizzle;
    (void)promotion, (void)fill;
    if (!map || !sizes || !box || !element_strides || rank < 1 || rank > 5)
        return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, sizeof(*map));
    return CUDA_SUCCESS;
}
