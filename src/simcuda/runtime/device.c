// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/device.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/settings.h"
#include "simcuda/check/check.h"
#include "simcuda/check/thread.h"
#include "simcuda/order/queue.h"
#include "simcuda/runtime/faults.h"
#include "simcuda/runtime/guard.h"
#include "simcuda/runtime/memory.h"
#include "simcuda/runtime/virtual.h"
#include "simcuda/simcuda.h"

static struct sim_device devices[SIM_DEVICES_MAX];
static int devices_count;
static enum sim_order order;
static uint64_t seed;
static enum sim_check check;
static enum sim_compute compute;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool forked;
static __thread int current;
static __thread bool has_context; // of the current device
static __thread cudaError_t last_error;

void sim_fail(const char *format, ...)
{
    char line[1024];
    va_list args;

    int used = snprintf(line, sizeof(line), "simcuda: error: ");
    va_start(args, format);
    used += vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, args);
    va_end(args);
    if ((size_t)used > sizeof(line) - 2)
        used = sizeof(line) - 2;
    line[used++] = '\n';
    // Not exit(): destructors would wait for work that will never run.
    if (write(STDERR_FILENO, line, (size_t)used) < 0)
        _exit(70);
    _exit(70);
}

static const char *setting(const char *name, const char *otherwise)
{
    // Read once, at the first call.
    const char *value = getenv(name); // NOLINT(concurrency-mt-unsafe)

    return value && *value ? value : otherwise;
}

// The index of the value among `names`, or the end of the process.
static int choose(const char *name, const char *const names[])
{
    const char *value = setting(name, names[0]);

    for (int i = 0; names[i]; i++)
        if (!strcmp(value, names[i]))
            return i;

    const char *nearest = as_settings_nearest(value, names);

    sim_fail("%s=%s is not known. Did you mean %s?", name, value,
             nearest ? nearest : names[0]);
}

static void choose_order(void)
{
    static const char *const names[] = {"early", "late", "seed:1", NULL};
    static const enum sim_order orders[] = {SIM_EARLY, SIM_LATE, SIM_SEEDED};
    const char *value = setting("ACTSWAP_SIM_ORDER", names[0]);

    if (as_settings_seed(value, &seed))
        order = SIM_SEEDED;
    else
        order = orders[choose("ACTSWAP_SIM_ORDER", names)];
}

static void choose_compute(void)
{
    static const char *const names[] = {"auto", "shapes", "values", NULL};
    static const enum sim_compute ways[] = {SIM_AUTO, SIM_SHAPES, SIM_VALUES};

    compute = ways[choose("ACTSWAP_SIM_COMPUTE", names)];
}

static void choose_check(void)
{
    static const char *const names[] = {"off", "races", "first-race", NULL};
    static const enum sim_check checks[] = {SIM_CHECK_OFF, SIM_CHECK_RACES,
                                            SIM_CHECK_FIRST};

    check = checks[choose("ACTSWAP_SIM_CHECK", names)];
}

static void choose_devices(void)
{
    const char *name = setting("ACTSWAP_SIM_GPU", "h100-80gb");
    const char *nearest = NULL;
    const struct as_gpu *gpu = as_gpu_find(name, &nearest);

    if (!gpu)
        sim_fail("ACTSWAP_SIM_GPU=%s is not a known GPU. Did you mean %s?", name,
                 nearest ? nearest : "h100-80gb");

    const char *count = setting("ACTSWAP_SIM_GPUS", "1");
    char *end;
    long wanted = strtol(count, &end, 10);

    if (*end || wanted < 1 || wanted > SIM_DEVICES_MAX)
        sim_fail("ACTSWAP_SIM_GPUS=%s is not a number from 1 to %d", count,
                 SIM_DEVICES_MAX);
    devices_count = (int)wanted;
    for (int i = 0; i < devices_count; i++)
        devices[i] = (struct sim_device){.index = i, .gpu = gpu};
}

static void note_fork(void)
{
    forked = true;
    check = SIM_CHECK_OFF;
}

static void start(void)
{
    choose_order();
    choose_compute();
    choose_check();
    if (check)
        sim_thread_start();
    choose_devices();
    sim_faults_read(setting("ACTSWAP_SIM_FAULT", NULL));
    if (pthread_atfork(NULL, NULL, note_fork))
        sim_fail("no memory for a fork handler");
}

cudaError_t sim_error(cudaError_t error)
{
    if (!error && sim_asserted())
        error = cudaErrorAssert;
    if (error) {
        last_error = error;
        sim_trace_failed(error);
    }
    return error;
}

cudaError_t sim_enter(const char *function, const void *caller)
{
    pthread_once(&once, start);
    // As on a card: a context does not survive fork(), whoever created it.
    if (forked)
        return sim_error(cudaErrorInitializationError);
    sim_guard_look();

    const cudaError_t fault = sim_faults_next(function, caller);

    return fault ? sim_error(fault) : cudaSuccess;
}

int sim_device_count(void)
{
    return devices_count;
}

struct sim_device *sim_device(int index)
{
    return index >= 0 && index < devices_count ? &devices[index] : NULL;
}

struct sim_device *sim_device_current(void)
{
    return &devices[current];
}

struct sim_device *sim_device_activate(void)
{
    devices[current].active = true;
    has_context = true;
    return &devices[current];
}

bool sim_own_folder(char *folder, size_t bytes)
{
    Dl_info self;
    char path[PATH_MAX];

    if (!dladdr((const void *)(uintptr_t)sim_own_folder, &self) ||
        !realpath(self.dli_fname, path))
        return false;

    *strrchr(path, '/') = '\0';
    return (size_t)snprintf(folder, bytes, "%s", path) < bytes;
}

bool sim_context_active(int device)
{
    return sim_device(device) && devices[device].active;
}

int sim_context_current(void)
{
    return has_context && devices[current].active ? current : -1;
}

void sim_context_leave(void)
{
    has_context = false;
}

enum sim_order sim_order(void)
{
    return order;
}

uint64_t sim_seed(void)
{
    return seed;
}

enum sim_check sim_check(void)
{
    return check;
}

enum sim_compute sim_compute(void)
{
    pthread_once(&once, start);
    return compute;
}

cudaError_t cudaDeviceReset(void)
{
    SIM_ENTER_UNSAFE();
    struct sim_device *const device = sim_device_current();
    const cudaError_t error = sim_queue_synchronize_device(device->index);

    if (error)
        return sim_error(error);
    sim_virtual_reset(device->index);
    sim_memory_reset(device);
    device->active = false;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;

    last_error = sim_asserted() ? cudaErrorAssert : cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    SIM_ENTER();
    if (!count)
        return sim_error(cudaErrorInvalidValue);
    *count = devices_count;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    SIM_ENTER();
    if (!device)
        return sim_error(cudaErrorInvalidValue);
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    SIM_ENTER();
    if (!sim_device(device))
        return sim_error(cudaErrorInvalidDevice);
    current = device;
    // Since CUDA 12 the call itself makes the context.
    sim_device_activate();
    return cudaSuccess;
}
