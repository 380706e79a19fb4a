// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "simcuda/runtime/compiler.h"
#include "simcuda/runtime/device.h"
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
    if (!symbol || !function)
        return sim_error(cudaErrorInvalidValue);
    *function = NULL;
    answer(status, cudaDriverEntryPointSymbolNotFound);

    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (!driver)
        return cudaSuccess;

    void *(*find)(const char *, int, unsigned long long) =
        (void *(*)(const char *, int, unsigned long long))dlsym(driver,
                                                                "sim_driver_find");

    if (find)
        *function = find(symbol, (int)version, flags);
    dlclose(driver);
    if (*function)
        answer(status, cudaDriverEntryPointSuccess);
    return cudaSuccess;
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
