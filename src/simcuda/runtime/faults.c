// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/faults.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/simcuda.h"

struct fault {
    char function[64];
    unsigned long at; // the call that fails, from 1
    long error;
    atomic_ulong calls;
};

static struct fault faults[16];
static size_t faults_count;

// One "function:call=error"; the end of it, or NULL.
static const char *read_fault(struct fault *fault, const char *text)
{
    const size_t length = strcspn(text, ":,=");
    char *end;

    if (!length || length >= sizeof(fault->function) || text[length] != ':')
        return NULL;
    memcpy(fault->function, text, length);
    fault->at = strtoul(text + length + 1, &end, 10);
    if (!fault->at || *end != '=')
        return NULL;
    fault->error = strtol(end + 1, &end, 10);
    return fault->error > 0 && (!*end || *end == ',') ? end : NULL;
}

void sim_faults_read(const char *text)
{
    for (const char *at = text; at && *at; at += *at == ',') {
        if (faults_count == sizeof(faults) / sizeof(faults[0]))
            sim_fail("ACTSWAP_SIM_FAULT has more than %zu faults", faults_count);
        at = read_fault(&faults[faults_count++], at);
        if (!at)
            sim_fail("ACTSWAP_SIM_FAULT=%s does not read function:call=error,...", text);
    }
}

cudaError_t sim_faults_next(const char *function)
{
    for (size_t i = 0; i < faults_count; i++)
        if (!strcmp(faults[i].function, function) && ++faults[i].calls == faults[i].at)
            return (cudaError_t)faults[i].error;
    return cudaSuccess;
}
