// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/faults.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "simcuda/simcuda.h"

struct fault {
    char function[64];
    unsigned at; // the call that fails, from 1
    int error;
    atomic_uint calls;
};

static struct fault faults[16];
static size_t faults_count;

void sim_faults_read(const char *text)
{
    const char *at = text ? text : "";

    while (*at) {
        struct fault *fault = &faults[faults_count];
        int used = 0;

        if (faults_count == sizeof(faults) / sizeof(faults[0]))
            sim_fail("ACTSWAP_SIM_FAULT has more than %zu faults", faults_count);
        if (sscanf(at, "%63[A-Za-z0-9_]:%u=%d%n", fault->function, &fault->at,
                   &fault->error, &used) != 3 ||
            !fault->at || (at[used] && at[used] != ','))
            sim_fail("ACTSWAP_SIM_FAULT=%s does not read function:call=error,...", text);
        faults_count++;
        at += used + (at[used] == ',');
    }
}

cudaError_t sim_faults_next(const char *function)
{
    for (size_t i = 0; i < faults_count; i++)
        if (!strcmp(faults[i].function, function) && ++faults[i].calls == faults[i].at)
            return (cudaError_t)faults[i].error;
    return cudaSuccess;
}
