// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/faults.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/simcuda.h"

struct fault {
    char function[64];
    unsigned long at; // the call that fails, from 1
    long error;
    atomic_ulong calls;
    bool on; // all after it, too
    bool ours; // of libactswap's calls
};

static struct fault faults[16];
static size_t faults_count;

// One "function:call=error"; the end of it, or NULL.
static const char *read_fault(struct fault *fault, const char *text)
{
    char *end;
    fault->ours = *text == '@';
    text += fault->ours;
    const size_t length = strcspn(text, ":,=");
    if (!length || length >= sizeof(fault->function) || text[length] != ':')
        return NULL;
    memcpy(fault->function, text, length);
    fault->at = strtoul(text + length + 1, &end, 10);
    fault->on = *end == '+';
    end += fault->on;
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

void sim_faults_set(const char *text)
{
    memset(faults, 0, sizeof(faults));
    faults_count = 0;
    sim_faults_read(text);
}

unsigned long sim_faults_calls(void)
{
    return faults_count ? faults[0].calls : 0;
}

static bool is_ours(const void *caller)
{
    Dl_info found;
    return dladdr(caller, &found) && strstr(found.dli_fname, "libactswap.so");
}

cudaError_t sim_faults_next(const char *function, const void *caller)
{
    for (size_t i = 0; i < faults_count; i++) {
        struct fault *fault = &faults[i];
        if (strcmp(fault->function, function) != 0 || (fault->ours && !is_ours(caller)))
            continue;
        const unsigned long call = ++fault->calls;
        if (call == fault->at || (fault->on && call > fault->at))
            return (cudaError_t)fault->error;
    }
    return cudaSuccess;
}
