// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cuda/object.h"
#include "cuda/runtime.h"
#include "cupti.h"

#define ENTRY(name)                                                                      \
    {                                                                                    \
        "cupti" #name, offsetof(struct as_cupti_library, name)                           \
    }

static const struct {
    const char *symbol;
    size_t offset;
} entries[] = {
    ENTRY(GetVersion),
    ENTRY(ActivityRegisterCallbacks),
    ENTRY(ActivityEnable),
    ENTRY(ActivityDisable),
    ENTRY(ActivityFlushAll),
    ENTRY(ActivityGetNextRecord),
    ENTRY(ActivityGetNumDroppedRecords),
    ENTRY(ActivityPushExternalCorrelationId),
    ENTRY(ActivityPopExternalCorrelationId),
};

// Loaded already, or of the runtime's major version. The name goes to `name`.
static void *open_library(char name[AS_OBJECT_NAME])
{
    static const char prefix[] = "libcudart.so.";
    char runtime[AS_OBJECT_NAME];

    if (as_object_find("libcupti.so", name)) {
        void *const handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);

        if (handle)
            return handle;
    }
    (void)snprintf(name, AS_OBJECT_NAME, "libcupti.so");

    const void *const call = as_cuda_find("cudaMalloc", NULL);

    if (!call || !as_object_soname(call, runtime) ||
        strncmp(runtime, prefix, strlen(prefix)) != 0)
        return NULL;
    (void)snprintf(name, AS_OBJECT_NAME, "libcupti.so.%.8s", runtime + strlen(prefix));
    // On a simulated device NVIDIA's own is never loaded.
    const int only_there = as_cuda_find("sim_compute", NULL) ? RTLD_NOLOAD : 0;

    return dlopen(name, RTLD_LAZY | RTLD_LOCAL | only_there);
}

const char *as_cupti_load(struct as_cupti_library *library)
{
    static char name[AS_OBJECT_NAME];
    void *const handle = open_library(name); // for good: records refer to it

    if (!handle)
        return name;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        void *const address = dlsym(handle, entries[i].symbol);

        if (!address)
            return entries[i].symbol;
        memcpy((char *)library + entries[i].offset, &address, sizeof(address));
    }
    return NULL;
}

// A wheel's library lies in a scope that RTLD_NEXT does not see.
void *as_cupti_find(const char *name, const void *caller)
{
    char library[AS_OBJECT_NAME];
    void *const next = dlsym(RTLD_NEXT, name);

    if (next)
        return next;
    if (!as_object_needs(caller, "libcupti.so", library) &&
        !as_object_find("libcupti.so", library))
        return NULL;

    void *const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

    return handle ? dlsym(handle, name) : NULL;
}
