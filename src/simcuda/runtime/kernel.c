// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/kernel.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/python.h"
#include "simcuda/check/check.h"
#include "simcuda/order/queue.h"
#include "simcuda/runtime/code.h"
#include "simcuda/runtime/compiler.h"
#include "simcuda/runtime/cost.h"
#include "simcuda/runtime/device.h"
#include "simcuda/runtime/launch.h"
#include "simcuda/simcuda.h"

// Kernels by the address of their host function, open addressing. Never removed: the
// names live in the program's own data, and who registers again overwrites.
struct kernel {
    const void *function;
    const char *name;
};

static struct {
    pthread_mutex_t lock;
    struct kernel *slots;
    size_t count, capacity; // a power of two
} kernels = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct kernel *slot_of(struct kernel *slots, size_t capacity, const void *function)
{
    size_t at = ((uintptr_t)function >> 4) * 0x9e3779b97f4a7c15u >> 20;

    for (at &= capacity - 1; slots[at].function && slots[at].function != function;)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static bool grow(void)
{
    const size_t capacity = kernels.capacity ? kernels.capacity * 2 : 4096;
    struct kernel *slots = calloc(capacity, sizeof(*slots));

    if (!slots)
        return false;
    for (size_t i = 0; i < kernels.capacity; i++)
        if (kernels.slots[i].function)
            *slot_of(slots, capacity, kernels.slots[i].function) = kernels.slots[i];
    free(kernels.slots);
    kernels.slots = slots;
    kernels.capacity = capacity;
    return true;
}

static void add_kernel(const void *function, const char *name)
{
    pthread_mutex_lock(&kernels.lock);
    if (kernels.count * 2 < kernels.capacity || grow()) {
        struct kernel *slot = slot_of(kernels.slots, kernels.capacity, function);

        kernels.count += !slot->function;
        *slot = (struct kernel){function, name};
    }
    pthread_mutex_unlock(&kernels.lock);
}

static const char *kernel_name(const void *function)
{
    const char *name = NULL;

    pthread_mutex_lock(&kernels.lock);
    if (kernels.capacity && function)
        name = slot_of(kernels.slots, kernels.capacity, function)->name;
    pthread_mutex_unlock(&kernels.lock);
    return name;
}

// The folder of the operator bodies' activation, beside this library.
static char python_folder[PATH_MAX];

static void find_python_folder(void)
{
    char own[PATH_MAX];

    if (!sim_own_folder(own, sizeof(own)))
        return;

    const int used =
        snprintf(python_folder, sizeof(python_folder), "%s/simcuda-python", own);

    if ((size_t)used >= sizeof(python_folder))
        python_folder[0] = '\0';
}

void **__cudaRegisterFatBinary(void *binary)
{
    static pthread_once_t found = PTHREAD_ONCE_INIT;

    pthread_once(&found, find_python_folder);
    // Not now is not never: every library that registers kernels tries again.
    if (python_folder[0])
        (void)as_python_inject(python_folder, "simcuda_torch");
    return binary;
}

// For a kernel's module that would be loaded before its first use.
char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *function, char *device_function,
                            const char *name, int thread_limit, struct uint3 *tid,
                            struct uint3 *bid, dim3 *block, dim3 *grid, int *warp_size)
{
    (void)handle, (void)device_function, (void)thread_limit, (void)tid, (void)bid;
    (void)block, (void)grid, (void)warp_size;
    add_kernel(function, name);
}

void __cudaRegisterVar(void **handle, char *host_variable, char *device_address,
                       const char *name, int external, size_t bytes, int constant,
                       int global)
{
    // No kernel runs, so none reads a variable; its address is not to be had either
    // (cudaGetSymbolAddress).
    (void)handle, (void)host_variable, (void)device_address, (void)name;
    (void)external, (void)bytes, (void)constant, (void)global;
}

// Between the two calls that <<<...>>> becomes; a launch in an argument's constructor
// nests.
enum { CONFIGURATIONS_MAX = 16 };

static __thread struct configuration {
    dim3 grid, block;
    size_t shared_bytes;
    void *stream;
} configurations[CONFIGURATIONS_MAX];
static __thread unsigned configurations_count;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream)
{
    if (configurations_count == CONFIGURATIONS_MAX)
        return 1;
    configurations[configurations_count++] =
        (struct configuration){grid, block, shared_bytes, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
                                       void *stream)
{
    if (!configurations_count)
        return sim_error(cudaErrorMissingConfiguration);

    const struct configuration *top = &configurations[--configurations_count];

    *grid = top->grid;
    *block = top->block;
    *shared_bytes = top->shared_bytes;
    *(void **)stream = top->stream;
    return cudaSuccess;
}

static bool fits(const struct sim_device *device, dim3 grid, dim3 block,
                 size_t shared_bytes)
{
    int threads, shared;

    sim_device_attribute(device, cudaDevAttrMaxThreadsPerBlock, &threads);
    sim_device_attribute(device, cudaDevAttrMaxSharedMemoryPerBlockOptin, &shared);
    return grid.x && grid.y && grid.z && block.x && block.y && block.z &&
           (uint64_t)block.x * block.y * block.z <= (uint64_t)threads &&
           shared_bytes <= (size_t)shared;
}

static cudaError_t launch_named(const char *name, cudaStream_t stream)
{
    struct sim_lost lost;

    if (sim_in_host_pass())
        return cudaSuccess;
    if (!sim_launch_leaves(name, &lost))
        sim_fail("kernel %s was launched under ACTSWAP_SIM_COMPUTE=values and no "
                 "operator body computed it: its results would be wrong",
                 name);
    return sim_queue_submit(stream, &(struct sim_task){.name = sim_check_text(name),
                                                       .line = sim_check_line(),
                                                       .cost = sim_cost_launch(&lost),
                                                       .lost = lost});
}

int sim_launch(const char *name, void *stream)
{
    SIM_TRACE("cuLaunchKernel");
    const cudaError_t refused = sim_enter("cuLaunchKernel", __builtin_return_address(0));

    if (refused)
        return (int)refused;
    sim_device_activate();
    return (int)launch_named(name, stream);
}

static cudaError_t launch(const void *function, dim3 grid, dim3 block,
                          size_t shared_bytes, cudaStream_t stream)
{
    const char *name = kernel_name(function);
    const struct sim_device *device;
    struct sim_code code;

    if (!name)
        return cudaErrorInvalidDeviceFunction;
    device = sim_device_activate();
    if (!sim_code_for(device->gpu->major, device->gpu->minor, &code))
        return cudaErrorNoKernelImageForDevice;
    if (!fits(device, grid, block, shared_bytes))
        return cudaErrorInvalidConfiguration;
    return launch_named(name, stream);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
                             size_t shared_bytes, cudaStream_t stream)
{
    SIM_ENTER();
    (void)args;
    return sim_error(launch(function, grid, block, shared_bytes, stream));
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                        void **args, size_t shared_bytes,
                                        cudaStream_t stream)
{
    SIM_ENTER();
    (void)args;
    return sim_error(launch(function, grid, block, shared_bytes, stream));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **args)
{
    SIM_ENTER();
    (void)args;
    if (!config)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(launch(function, config->gridDim, config->blockDim,
                            config->dynamicSmemBytes, config->stream));
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    SIM_ENTER();
    if (!kernel_name(function))
        return sim_error(cudaErrorInvalidDeviceFunction);
    *kernel = (cudaKernel_t)(uintptr_t)function; // NOLINT(performance-no-int-to-ptr)
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared_bytes, cudaStream_t stream)
{
    SIM_ENTER();
    (void)args;
    return sim_error(launch(kernel, grid, block, shared_bytes, stream));
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
                                  const void *function)
{
    SIM_ENTER();
    if (!attributes)
        return sim_error(cudaErrorInvalidValue);
    if (!kernel_name(function))
        return sim_error(cudaErrorInvalidDeviceFunction);

    const struct sim_device *device = sim_device_activate();
    struct sim_code code;
    int shared;

    if (!sim_code_for(device->gpu->major, device->gpu->minor, &code))
        return sim_error(cudaErrorNoKernelImageForDevice);
    sim_device_attribute(device, cudaDevAttrMaxSharedMemoryPerBlock, &shared);
    memset(attributes, 0, sizeof(*attributes));
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = SIM_KERNEL_REGISTERS;
    attributes->binaryVersion = code.binary;
    attributes->ptxVersion = code.intermediate;
    attributes->maxDynamicSharedSizeBytes = shared;
    attributes->preferredShmemCarveout = -1;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute,
                                 int value)
{
    SIM_ENTER();
    int shared;

    if (!kernel_name(function))
        return sim_error(cudaErrorInvalidDeviceFunction);
    sim_device_attribute(sim_device_activate(), cudaDevAttrMaxSharedMemoryPerBlockOptin,
                         &shared);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value > shared)
        return sim_error(cudaErrorInvalidValue);
    return cudaSuccess;
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel,
                                            enum cudaFuncAttribute attribute, int value,
                                            int device)
{
    if (!sim_device(device))
        return sim_error(cudaErrorInvalidDevice);
    return cudaFuncSetAttribute(kernel, attribute, value);
}

// How many blocks' threads, registers and shared memory fit on a multiprocessor.
static int resident_blocks(const struct sim_device *device, int block,
                           size_t shared_bytes)
{
    int threads, blocks, registers, shared, reserved;

    sim_device_attribute(device, cudaDevAttrMaxThreadsPerMultiProcessor, &threads);
    sim_device_attribute(device, cudaDevAttrMaxBlocksPerMultiprocessor, &blocks);
    sim_device_attribute(device, cudaDevAttrMaxRegistersPerMultiprocessor, &registers);
    sim_device_attribute(device, cudaDevAttrMaxSharedMemoryPerMultiprocessor, &shared);
    sim_device_attribute(device, cudaDevAttrReservedSharedMemoryPerBlock, &reserved);

    const int warps_threads = (block + 31) / 32 * 32;
    const size_t block_shared = shared_bytes + (size_t)reserved;

    if (threads / warps_threads < blocks)
        blocks = threads / warps_threads;
    if (registers / (SIM_KERNEL_REGISTERS * warps_threads) < blocks)
        blocks = registers / (SIM_KERNEL_REGISTERS * warps_threads);
    if (block_shared && (size_t)shared / block_shared < (size_t)blocks)
        blocks = (int)((size_t)shared / block_shared);
    return blocks;
}

int sim_resident_blocks(int block, size_t shared_bytes)
{
    return block > 1024 ? 0 : resident_blocks(sim_device_activate(), block, shared_bytes);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *function, int block, size_t shared_bytes, unsigned int flags)
{
    SIM_ENTER();
    (void)flags;
    if (!kernel_name(function))
        return sim_error(cudaErrorInvalidDeviceFunction);
    if (!blocks || block < 1)
        return sim_error(cudaErrorInvalidValue);
    *blocks = sim_resident_blocks(block, shared_bytes);
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                          const void *function, int block,
                                                          size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block,
                                                                  shared_bytes, 0);
}
