// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "simcuda/driver/driver.h"

static struct driver_runtime runtime;
static bool found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define ROW(result, name, arguments) {#name, offsetof(struct driver_runtime, name)},
    DRIVER_RUNTIME(ROW)
#undef ROW
};

// By the SONAME that it has, so that one opened with RTLD_LOCAL is found as well; only
// ours has the sim_ functions, so NVIDIA's own is never taken for it.
static void find(void)
{
    void *library = dlopen("libcudart.so." SIM_CUDART_MAJOR, RTLD_LAZY | RTLD_NOLOAD);

    if (!library)
        return;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *symbol = dlsym(library, functions[i].name);

        if (!symbol)
            return;
        *(void **)((char *)&runtime + functions[i].offset) = symbol;
    }
    found = true;
}

const struct driver_runtime *driver_runtime(void)
{
    if (!found)
        pthread_once(&once, find);
    if (!found)
        return NULL;
    runtime.sim_guard_look();
    return &runtime;
}
