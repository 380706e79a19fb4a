// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

// The management library, as far as PyTorch and programs that show a card's memory ask:
// how many cards, their names, and what is free. No header of it comes with the wheels;
// types, numbers and names are those of NVIDIA's "NVML API Reference Guide". A device is
// named by its number, plus one.

typedef int result;
typedef struct card *device;

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3 };
enum { NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, UNKNOWN = 999 };

struct memory {
    unsigned long long total, free, used;
};

struct process {
    unsigned pid;
    unsigned long long used;
};

#define EXPORT __attribute__((visibility("default")))

EXPORT result nvmlInit(void);
EXPORT result nvmlInit_v2(void);
EXPORT result nvmlInitWithFlags(unsigned flags);
EXPORT result nvmlShutdown(void);
EXPORT const char *nvmlErrorString(result code);
EXPORT result nvmlSystemGetCudaDriverVersion(int *version);
EXPORT result nvmlSystemGetCudaDriverVersion_v2(int *version);
EXPORT result nvmlDeviceGetCount(unsigned *count);
EXPORT result nvmlDeviceGetCount_v2(unsigned *count);
EXPORT result nvmlDeviceGetHandleByIndex(unsigned index, device *found);
EXPORT result nvmlDeviceGetHandleByIndex_v2(unsigned index, device *found);
EXPORT result nvmlDeviceGetHandleByPciBusId_v2(const char *bus, device *found);
EXPORT result nvmlDeviceGetIndex(device card, unsigned *index);
EXPORT result nvmlDeviceGetName(device card, char *name, unsigned length);
EXPORT result nvmlDeviceGetUUID(device card, char *uuid, unsigned length);
EXPORT result nvmlDeviceGetMemoryInfo(device card, struct memory *memory);
EXPORT result nvmlDeviceGetComputeRunningProcesses(device card, unsigned *count,
                                                   struct process *processes);
EXPORT result nvmlDeviceGetNvLinkRemoteDeviceType(device card, unsigned link, int *type);
EXPORT result nvmlDeviceGetNvLinkRemotePciInfo_v2(device card, unsigned link, void *pci);

// The simulated runtime's, which is in the process already.
static struct {
    cudaError_t (*cudaGetDeviceCount)(int *);
    cudaError_t (*cudaGetDevice)(int *);
    cudaError_t (*cudaSetDevice)(int);
    cudaError_t (*cudaGetDeviceProperties)(struct cudaDeviceProp *, int);
    cudaError_t (*cudaDeviceGetPCIBusId)(char *, int, int);
    cudaError_t (*cudaDriverGetVersion)(int *);
    cudaError_t (*cudaMemGetInfo)(size_t *, size_t *);
} runtime;

static bool found_all;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find(void)
{
    void *const library =
        dlopen("libcudart.so." SIM_CUDART_MAJOR, RTLD_LAZY | RTLD_NOLOAD);

    if (!library)
        return;
#define FIND(name) (*(void **)&runtime.name = dlsym(library, #name), runtime.name != NULL)
    found_all = FIND(cudaGetDeviceCount) && FIND(cudaGetDevice) && FIND(cudaSetDevice) &&
                FIND(cudaGetDeviceProperties) && FIND(cudaDeviceGetPCIBusId) &&
                FIND(cudaDriverGetVersion) && FIND(cudaMemGetInfo);
}

static bool ready(void)
{
    pthread_once(&once, find);
    return found_all;
}

result nvmlInit_v2(void)
{
    return ready() ? SUCCESS : UNKNOWN;
}

result nvmlInit(void)
{
    return nvmlInit_v2();
}

result nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return nvmlInit_v2();
}

result nvmlShutdown(void)
{
    return SUCCESS;
}

const char *nvmlErrorString(result code)
{
    switch (code) {
    case SUCCESS:
        return "Success";
    case UNINITIALIZED:
        return "Uninitialized";
    case INVALID_ARGUMENT:
        return "Invalid Argument";
    case NOT_SUPPORTED:
        return "Not Supported";
    case NOT_FOUND:
        return "Not Found";
    case INSUFFICIENT_SIZE:
        return "Insufficient Size";
    default:
        return "Unknown Error";
    }
}

result nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    if (!ready())
        return UNINITIALIZED;
    return runtime.cudaDriverGetVersion(version) ? UNKNOWN : SUCCESS;
}

result nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

result nvmlDeviceGetCount_v2(unsigned *count)
{
    if (!ready())
        return UNINITIALIZED;
    return runtime.cudaGetDeviceCount((int *)count) ? UNKNOWN : SUCCESS;
}

result nvmlDeviceGetCount(unsigned *count)
{
    return nvmlDeviceGetCount_v2(count);
}

result nvmlDeviceGetHandleByIndex_v2(unsigned index, device *found)
{
    unsigned count;
    const result code = nvmlDeviceGetCount_v2(&count);

    if (code || !found || index >= count)
        return code ? code : INVALID_ARGUMENT;
    *found = (device)(uintptr_t)(index + 1);
    return SUCCESS;
}

result nvmlDeviceGetHandleByIndex(unsigned index, device *found)
{
    return nvmlDeviceGetHandleByIndex_v2(index, found);
}

// The runtime writes the domain with four digits; a program may ask with eight.
static bool same_bus(const char *a, const char *b)
{
    char *rest_of_a, *rest_of_b;

    return strtoul(a, &rest_of_a, 16) == strtoul(b, &rest_of_b, 16) &&
           !strcasecmp(rest_of_a, rest_of_b);
}

result nvmlDeviceGetHandleByPciBusId_v2(const char *bus, device *found)
{
    unsigned count;
    const result code = nvmlDeviceGetCount_v2(&count);

    if (code || !bus)
        return code ? code : INVALID_ARGUMENT;
    for (unsigned i = 0; i < count; i++) {
        char own[32];

        if (!runtime.cudaDeviceGetPCIBusId(own, sizeof(own), (int)i) &&
            same_bus(own, bus))
            return nvmlDeviceGetHandleByIndex_v2(i, found);
    }
    return NOT_FOUND;
}

result nvmlDeviceGetIndex(device card, unsigned *index)
{
    unsigned count;
    const uintptr_t place = (uintptr_t)card;
    const result code = nvmlDeviceGetCount_v2(&count);

    if (code || !index || !place || place > count)
        return code ? code : INVALID_ARGUMENT;
    *index = (unsigned)place - 1;
    return SUCCESS;
}

static result properties_of(device card, struct cudaDeviceProp *properties)
{
    unsigned index = 0;
    const result code = nvmlDeviceGetIndex(card, &index);

    if (code)
        return code;
    return runtime.cudaGetDeviceProperties(properties, (int)index) ? UNKNOWN : SUCCESS;
}

static result put_text(char *to, unsigned length, const char *text)
{
    if (strlen(text) >= length)
        return INSUFFICIENT_SIZE;
    (void)snprintf(to, length, "%s", text);
    return SUCCESS;
}

result nvmlDeviceGetName(device card, char *name, unsigned length)
{
    struct cudaDeviceProp properties;
    const result code = properties_of(card, &properties);

    return code ? code : put_text(name, length, properties.name);
}

result nvmlDeviceGetUUID(device card, char *uuid, unsigned length)
{
    struct cudaDeviceProp properties;
    const result code = properties_of(card, &properties);
    char text[64] = "GPU";

    if (code)
        return code;
    for (int i = 0, at = 3; i < 16; i++) {
        const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;

        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%02x", dash ? "-" : "",
                       (unsigned char)properties.uuid.bytes[i]);
    }
    return put_text(uuid, length, text);
}

result nvmlDeviceGetMemoryInfo(device card, struct memory *memory)
{
    unsigned index;
    int before = 0;
    size_t free_bytes = 0, total_bytes = 0;
    const result code = nvmlDeviceGetIndex(card, &index);

    if (code || !memory)
        return code ? code : INVALID_ARGUMENT;
    cudaError_t error = runtime.cudaGetDevice(&before);

    if (!error)
        error = runtime.cudaSetDevice((int)index);
    if (!error)
        error = runtime.cudaMemGetInfo(&free_bytes, &total_bytes);
    runtime.cudaSetDevice(before);
    *memory = (struct memory){total_bytes, free_bytes, total_bytes - free_bytes};
    return error ? UNKNOWN : SUCCESS;
}

// This process only: another's simulated memory is not known here.
result nvmlDeviceGetComputeRunningProcesses(device card, unsigned *count,
                                            struct process *processes)
{
    struct memory memory;
    const result code = nvmlDeviceGetMemoryInfo(card, &memory);

    if (code || !count)
        return code ? code : INVALID_ARGUMENT;
    const bool room = *count >= 1 && processes;

    *count = 1;
    if (!room)
        return INSUFFICIENT_SIZE;
    processes[0] = (struct process){(unsigned)getpid(), memory.used};
    return SUCCESS;
}

result nvmlDeviceGetNvLinkRemoteDeviceType(device card, unsigned link, int *type)
{
    (void)card, (void)link, (void)type;
    return NOT_SUPPORTED;
}

result nvmlDeviceGetNvLinkRemotePciInfo_v2(device card, unsigned link, void *pci)
{
    (void)card, (void)link, (void)pci;
    return NOT_SUPPORTED;
}
