// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "simcuda/runtime/compiler.h"
#include "simcuda/runtime/device.h"
#include "simcuda/runtime/memory.h"
#include "simcuda/runtime/missing.h"
#include "simcuda/simcuda.h"

cudaError_t cudaDriverGetVersion(int *version)
{
    SIM_ENTER();
    if (!version)
        return sim_error(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    SIM_ENTER();
    if (!version)
        return sim_error(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

// Nothing profiles a simulated card, so there is nothing to start.
cudaError_t cudaProfilerStart(void)
{
    SIM_ENTER();
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
    SIM_ENTER();
    return cudaSuccess;
}

static void answer(enum cudaDriverEntryPointQueryResult *status,
                   enum cudaDriverEntryPointQueryResult value)
{
    if (status)
        *status = value;
}

// Entry points of the simulated driver only: a real one has no device to offer here.
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                             unsigned int version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status)
{
    SIM_ENTER();
    (void)version, (void)flags;
    if (!symbol || !function)
        return sim_error(cudaErrorInvalidValue);
    *function = NULL;
    answer(status, cudaDriverEntryPointSymbolNotFound);

    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (!driver)
        return cudaSuccess;

    void *(*find)(const char *) =
        (void *(*)(const char *))dlsym(driver, "sim_driver_find");

    if (find)
        *function = find(symbol);
    dlclose(driver);
    if (*function)
        answer(status, cudaDriverEntryPointSuccess);
    return cudaSuccess;
}

// Memory pools: cudaMallocAsync takes from the device's books at once and a freed block
// goes back to them, so a pool only keeps what it is told.
static struct {
    uint64_t release_threshold;
} pools[SIM_DEVICES_MAX];

static int pool_index(cudaMemPool_t pool)
{
    const uintptr_t offset = (uintptr_t)pool - (uintptr_t)pools;

    return offset < sizeof(pools) ? (int)(offset / sizeof(pools[0])) : -1;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    SIM_ENTER();
    if (!sim_device(device))
        return sim_error(cudaErrorInvalidDevice);
    if (!pool)
        return sim_error(cudaErrorInvalidValue);
    *pool = (cudaMemPool_t)(void *)&pools[device];
    return cudaSuccess;
}

// There is no other one.
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    return cudaDeviceGetDefaultMemPool(pool, device);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value)
{
    SIM_ENTER();
    const int index = pool_index(pool);

    if (index < 0 || !value)
        return sim_error(cudaErrorInvalidValue);
    const struct sim_pooled pooled = sim_memory_pooled(sim_device(index), false);
    uint64_t number = pooled.bytes;

    switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
        number = pools[index].release_threshold;
        break;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
        number = pooled.peak_bytes;
        break;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
        break;
    default:
        return sim_error(cudaErrorInvalidValue);
    }
    memcpy(value, &number, sizeof(number));
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value)
{
    SIM_ENTER();
    const int index = pool_index(pool);

    if (index < 0 || !value)
        return sim_error(cudaErrorInvalidValue);
    if (attribute == cudaMemPoolAttrReleaseThreshold)
        memcpy(&pools[index].release_threshold, value, sizeof(uint64_t));
    if (attribute == cudaMemPoolAttrReservedMemHigh ||
        attribute == cudaMemPoolAttrUsedMemHigh)
        (void)sim_memory_pooled(sim_device(index), true);
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool,
                                 const struct cudaMemAccessDesc *accesses, size_t count)
{
    SIM_ENTER();
    if (pool_index(pool) < 0 || (count && !accesses))
        return sim_error(cudaErrorInvalidValue);
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
    SIM_ENTER();
    (void)keep_bytes;
    return pool_index(pool) < 0 ? sim_error(cudaErrorInvalidValue) : cudaSuccess;
}

// One line a function and a process: the program usually says no more than
// "operation not supported".
cudaError_t sim_missing(const char *function, atomic_flag *said)
{
    cudaError_t refused = sim_enter(function, NULL);

    if (refused)
        return refused;
    if (!atomic_flag_test_and_set(said))
        fprintf(stderr, "simcuda: %s is not simulated: cudaErrorNotSupported\n",
                function);
    return sim_error(cudaErrorNotSupported);
}

static atomic_ulong closed_calls;

void sim_closed_call(void)
{
    closed_calls++;
}

unsigned long sim_closed_calls(void)
{
    return closed_calls;
}
