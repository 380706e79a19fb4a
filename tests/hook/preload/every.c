// SPDX-License-Identifier: Apache-2.0
//
// Calls every hooked function (hooks/cuda/calls.h), with arguments that are right and with
// each of them wrong in turn, and prints what each said. In a run with libactswap its books
// must be empty after each.
#include "calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <actswap/actswap.h>

#include "hooks/cuda/calls.h"

enum { ARGUMENTS = 6, WRONGS = 3, INSIDE = 256 };

#define BYTES ((size_t)2 << 20)
#define NOT_GIVEN ((uintptr_t)0x7000)

// Every argument is a register.
typedef int any_call(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

#define NUMBER(api, name, ...) EVERY_##name,
#define NAMED(api, name, ...) [EVERY_##name] = #name,
#define NUMBER_OWN(api, name, what) EVERY_##name,
#define NAMED_OWN(api, name, what) [EVERY_##name] = #name,

enum every {
    AS_RUNTIME_CALLS(NUMBER) AS_DRIVER_CALLS(NUMBER) AS_OWN_CALLS(NUMBER_OWN) EVERY_COUNT
};

static const char *const names[] = {AS_RUNTIME_CALLS(NAMED) AS_DRIVER_CALLS(NAMED)
                                        AS_OWN_CALLS(NAMED_OWN)};

// What each takes, a letter an argument: `rights` and `wrongs` say which.
static const char *const takes[EVERY_COUNT] = {
    [EVERY_cudaMalloc] = "ob",
    [EVERY_cudaMallocPitch] = "oqbx",
    [EVERY_cudaMalloc3D] = "Qbxx",
    [EVERY_cudaMallocManaged] = "obm",
    [EVERY_cudaMallocHost] = "ob",
    [EVERY_cudaHostAlloc] = "obf",
    [EVERY_cudaHostRegister] = "abf",
    [EVERY_cudaMallocAsync] = "obs",
    [EVERY_cudaMallocAsync_ptsz] = "obs",
    [EVERY_cudaMallocFromPoolAsync] = "obps",
    [EVERY_cudaMallocFromPoolAsync_ptsz] = "obps",
    [EVERY_cudaFree] = "d",
    [EVERY_cudaFreeAsync] = "ds",
    [EVERY_cudaFreeAsync_ptsz] = "ds",
    [EVERY_cudaFreeHost] = "h",
    [EVERY_cudaHostUnregister] = "r",
    [EVERY_cudaIpcOpenMemHandle] = "oif",
    [EVERY_cudaIpcCloseMemHandle] = "d",
    [EVERY_cudaGraphAddMemAllocNode] = "ogncw",
    [EVERY_cudaGraphAddMemFreeNode] = "ogncd",
    [EVERY_cudaDeviceReset] = "",
    [EVERY_cudaStreamCreate] = "o",
    [EVERY_cudaStreamCreateWithFlags] = "of",
    [EVERY_cudaStreamCreateWithPriority] = "ofy",
    [EVERY_cudaStreamDestroy] = "t",
    [EVERY_cuMemAlloc_v2] = "ob",
    [EVERY_cuMemAllocPitch_v2] = "oqbxu",
    [EVERY_cuMemAllocManaged] = "obm",
    [EVERY_cuMemAllocHost_v2] = "ob",
    [EVERY_cuMemHostAlloc] = "obf",
    [EVERY_cuMemHostRegister_v2] = "abf",
    [EVERY_cuMemAllocAsync] = "obs",
    [EVERY_cuMemAllocAsync_ptsz] = "obs",
    [EVERY_cuMemAllocFromPoolAsync] = "obps",
    [EVERY_cuMemAllocFromPoolAsync_ptsz] = "obps",
    [EVERY_cuMemFree_v2] = "d",
    [EVERY_cuMemFreeAsync] = "ds",
    [EVERY_cuMemFreeAsync_ptsz] = "ds",
    [EVERY_cuMemFreeHost] = "h",
    [EVERY_cuMemHostUnregister] = "r",
    [EVERY_cuIpcOpenMemHandle_v2] = "oif",
    [EVERY_cuIpcCloseMemHandle] = "d",
    [EVERY_cuMemCreate] = "obPf",
    [EVERY_cuMemRetainAllocationHandle] = "oM",
    [EVERY_cuMemRelease] = "H",
    [EVERY_cuMemMap] = "VbzHf",
    [EVERY_cuMemUnmap] = "Mb",
    [EVERY_cuGraphAddMemAllocNode] = "ogncw",
    [EVERY_cuGraphAddMemFreeNode] = "ogncd",
    [EVERY_cuDevicePrimaryCtxReset_v2] = "D",
    [EVERY_cuStreamCreate] = "of",
    [EVERY_cuStreamCreateWithPriority] = "ofy",
    [EVERY_cuStreamDestroy_v2] = "t",
    [EVERY_cudaMemGetInfo] = "oq",
    [EVERY_cudaGetDeviceProperties] = "OD",
    [EVERY_cudaGetDeviceProperties_v2] = "OD",
    [EVERY_cudaGetDriverEntryPoint] = "kofq",
    [EVERY_cudaGetDriverEntryPoint_ptsz] = "kofq",
    [EVERY_cudaGetDriverEntryPointByVersion] = "kovfq",
    [EVERY_cudaGetDriverEntryPointByVersion_ptsz] = "kovfq",
    [EVERY_cuMemGetInfo_v2] = "oq",
    [EVERY_cuDeviceTotalMem_v2] = "oD",
    [EVERY_cuGetProcAddress] = "kovf",
    [EVERY_cuGetProcAddress_v2] = "kovfq",
};

// --- What a call is given. Each has its own.

struct given {
    uintptr_t out, second; // for `o` and `q`
    char large[2048]; // for `O` and `Q`
    void *device, *pinned;
    cudaStream_t stream, ended;
    cudaMemPool_t pool;
    cudaGraph_t graph;
    struct cudaMemAllocNodeParams node;
    cudaIpcMemHandle_t handle;
    CUmemAllocationProp properties;
    CUmemGenericAllocationHandle physical, mapped;
    CUdeviceptr reserved, backed;
};

static struct given given;
static _Alignas(4096) char host[2 << 20];
static char nowhere[INSIDE]; // a handle of none

static uintptr_t number(const void *pointer)
{
    return (uintptr_t)pointer;
}

static bool takes_any(const char *letters, const char *of)
{
    return strpbrk(letters, of);
}

static void prepare_virtual(const char *letters)
{
    if (takes_any(letters, "PHMV"))
        given.properties = (CUmemAllocationProp){
            .type = CU_MEM_ALLOCATION_TYPE_PINNED,
            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        };
    if (takes_any(letters, "H"))
        (void)cuMemCreate(&given.physical, BYTES, &given.properties, 0);
    if (takes_any(letters, "V"))
        (void)cuMemAddressReserve(&given.reserved, BYTES, 0, 0, 0);
    if (takes_any(letters, "M")) {
        (void)cuMemAddressReserve(&given.backed, BYTES, 0, 0, 0);
        (void)cuMemCreate(&given.mapped, BYTES, &given.properties, 0);
        (void)cuMemMap(given.backed, BYTES, 0, given.mapped, 0);
    }
}

static void prepare(const char *letters)
{
    memset(&given, 0, sizeof(given));
    given.out = given.second = NOT_GIVEN;
    (void)cudaStreamCreate(&given.stream);
    if (takes_any(letters, "d"))
        (void)cudaMalloc(&given.device, BYTES);
    if (takes_any(letters, "h"))
        (void)cudaMallocHost(&given.pinned, BYTES);
    if (takes_any(letters, "r"))
        (void)cudaHostRegister(host, BYTES, 0);
    if (takes_any(letters, "t"))
        (void)cudaStreamCreate(&given.ended);
    if (takes_any(letters, "p"))
        (void)cudaDeviceGetDefaultMemPool(&given.pool, 0);
    if (takes_any(letters, "g"))
        (void)cudaGraphCreate(&given.graph, 0);
    given.node.bytesize = BYTES;
    prepare_virtual(letters);
    (void)cudaGetLastError();
}

static uintptr_t right(char letter)
{
    const struct {
        char letter;
        uintptr_t value;
    } rights[] = {
        {'o', number(&given.out)},
        {'q', number(&given.second)},
        {'O', number(given.large)},
        {'Q', number(given.large)},
        {'b', BYTES},
        {'x', 3},
        {'u', 4},
        {'f', 0},
        {'m', cudaMemAttachGlobal},
        {'y', 0},
        {'s', number(given.stream)},
        {'t', number(given.ended)},
        {'p', number(given.pool)},
        {'a', number(host)},
        {'d', number(given.device)},
        {'h', number(given.pinned)},
        {'r', number(host)},
        {'i', number(&given.handle)},
        {'g', number(given.graph)},
        {'n', 0},
        {'c', 0},
        {'w', number(&given.node)},
        {'P', number(&given.properties)},
        {'H', (uintptr_t)given.physical},
        {'V', given.reserved},
        {'M', given.backed},
        {'z', 0},
        {'D', 0},
        {'k', number("cuMemAlloc")},
        {'v', 12000},
    };

    for (size_t n = 0; n < sizeof(rights) / sizeof(*rights); n++)
        if (rights[n].letter == letter)
            return rights[n].value;
    return 0;
}

// False: there are no more.
static bool wrong(char letter, int which, uintptr_t *value)
{
    static const struct {
        const char *letters;
        uintptr_t values[WRONGS];
        int count;
    } wrongs[] = {
        {"oOQwPkqi", {0}, 1},    {"b", {0, SIZE_MAX, (uintptr_t)1 << 60}, 3},
        {"x", {0, SIZE_MAX}, 2}, {"u", {0, 3}, 2},
        {"fm", {0xff00}, 1},     {"y", {77, (uintptr_t)-77}, 2},
        {"z", {4096}, 1},        {"D", {99, (uintptr_t)-1}, 2},
        {"v", {0, 1}, 2},        {"c", {1}, 1},
    };

    for (size_t n = 0; n < sizeof(wrongs) / sizeof(*wrongs); n++)
        if (strchr(wrongs[n].letters, letter)) {
            *value = wrongs[n].values[which];
            return which < wrongs[n].count;
        }
    // An address or a handle: none, one of nothing, and inside of one that is.
    *value = which == 0 ? 0 : which == 1 ? number(nowhere) : right(letter) + INSIDE;
    return which < WRONGS && !(which == 2 && strchr("stpgnH", letter));
}

// --- Calling

static void (*function_of(enum every call))(void)
{
    return (void (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, names[call]);
}

// In the device's own libraries, whoever else has it.
static bool is_there(const char *name)
{
    static const char *const libraries[] = {"libcudart.so.13", "libcuda.so.1"};
    bool there = false;

    for (int n = 0; n < 2; n++) {
        void *const library = dlopen(libraries[n], RTLD_LAZY | RTLD_NOLOAD);

        there = there || (library && dlsym(library, name));
        if (library)
            dlclose(library);
    }
    return there;
}

// Structures by value are no registers.
static int call_with(enum every call, const uintptr_t *a)
{
    const struct cudaExtent extent = {a[1], a[2], a[3]};
    void (*const function)(void) = function_of(call);

    switch (call) {
    case EVERY_cudaMalloc3D:
        return ((int (*)(uintptr_t, struct cudaExtent))function)(a[0], extent);
    case EVERY_cudaIpcOpenMemHandle:
    case EVERY_cuIpcOpenMemHandle_v2:
        return ((int (*)(uintptr_t, cudaIpcMemHandle_t, unsigned))function)(
            a[0], given.handle, (unsigned)a[2]);
    default:
        return ((any_call *)function)(a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

static size_t free_bytes(void)
{
    size_t left = 0, total = 0;

    return cudaMemGetInfo(&left, &total) ? 0 : left;
}

// Whatever the call made, and what it was given: what is gone already says so, and nobody
// asks.
static void undo(const char *letters)
{
    void *made = (void *)given.out;
    struct cudaPitchedPtr rows;

    memcpy(&rows, given.large, sizeof(rows));
    if (takes_any(letters, "o") && given.out != NOT_GIVEN && given.out) {
        (void)cudaFree(made);
        (void)cudaFreeHost(made);
        (void)cudaStreamDestroy(made);
        (void)cuMemRelease(given.out);
    }
    if (takes_any(letters, "Q"))
        (void)cudaFree(rows.ptr);
    if (takes_any(letters, "V"))
        (void)cuMemUnmap(given.reserved, BYTES);
    if (takes_any(letters, "M")) {
        (void)cuMemUnmap(given.backed, BYTES);
        (void)cuMemRelease(given.mapped);
        (void)cuMemAddressFree(given.backed, BYTES);
    }
    (void)cuMemAddressFree(given.reserved, BYTES);
    (void)cuMemRelease(given.physical);
    (void)cudaFree(given.device);
    (void)cudaFreeHost(given.pinned);
    (void)cudaHostUnregister(host);
    (void)cudaHostUnregister(host + INSIDE);
    (void)cudaHostUnregister(nowhere);
    if (given.graph)
        (void)cudaGraphDestroy(given.graph);
    if (given.ended)
        (void)cudaStreamDestroy(given.ended);
    (void)cudaStreamDestroy(given.stream);
    (void)cudaDeviceSynchronize();
    (void)cudaGetLastError();
}

// Right behind a call the books have as much of the device as is gone from it.
static size_t unused; // at first

static void compare_books(const char *call)
{
    int (*stats_of)(struct actswap_stats *) =
        (int (*)(struct actswap_stats *))dlsym(RTLD_DEFAULT, "actswap_stats");
    struct actswap_stats stats = {.size = sizeof(stats)};

    if (!stats_of || stats_of(&stats))
        return;

    const size_t of_device = stats.taken_by_kind[ACTSWAP_MEMORY_DEVICE];

    if (of_device != unused - free_bytes())
        printf("%s: the books have %zu bytes of the device, which gave %zu\n", call,
               of_device, unused - free_bytes());
}

static void look_at_books(const char *call)
{
    int (*stats_of)(struct actswap_stats *) =
        (int (*)(struct actswap_stats *))dlsym(RTLD_DEFAULT, "actswap_stats");
    struct actswap_stats stats = {.size = sizeof(stats)};

    if (!stats_of || stats_of(&stats))
        return;
    for (int kind = 0; kind < ACTSWAP_MEMORIES; kind++)
        if (stats.taken_by_kind[kind])
            printf("%s: the books have %llu bytes of kind %d\n", call,
                   (unsigned long long)stats.taken_by_kind[kind], kind);
}

static const char *slot(uintptr_t value)
{
    return value == NOT_GIVEN ? "kept" : value ? "set" : "none";
}

// Argument `bad` is the wrong one `which`; -1: all are right. False: there is none such.
static bool try_one(enum every call, int bad, int which)
{
    const char *const letters = takes[call];
    uintptr_t arguments[ARGUMENTS] = {0};

    prepare(letters);
    for (int n = 0; letters[n]; n++)
        arguments[n] = right(letters[n]);

    const bool there = bad < 0 || wrong(letters[bad], which, &arguments[bad]);

    if (there) {
        const size_t before = free_bytes();

        errno = EXDEV;
        const int result = call_with(call, arguments);
        const int changed = errno != EXDEV, last = (int)cudaGetLastError();

        printf("%s %s %d %d: %d, last %d, %s %s, %zd bytes%s\n", names[call], letters,
               bad, which, result, last, slot(given.out), slot(given.second),
               (ssize_t)(before - free_bytes()), changed ? ", errno changed" : "");
    }
    if (there)
        compare_books(names[call]);
    undo(letters);
    look_at_books(names[call]);
    return there;
}

static void try_all(enum every call)
{
    const char *const letters = takes[call];

    if (!letters || !is_there(names[call])) {
        printf("%s is not %s\n", names[call], letters ? "there" : "in the table");
        return;
    }
    (void)try_one(call, -1, 0);
    for (int bad = 0; letters[bad]; bad++)
        for (int which = 0; try_one(call, bad, which); which++)
            ;
}

static bool resets(int call)
{
    return call == EVERY_cudaDeviceReset || call == EVERY_cuDevicePrimaryCtxReset_v2;
}

void hook_calls(void)
{
    (void)cudaFree(NULL);

    const size_t before = free_bytes();

    unused = before;
    for (int call = 0; call < EVERY_COUNT; call++)
        if (!resets(call))
            try_all((enum every)call);
    printf("%zd bytes left behind\n", (ssize_t)(before - free_bytes()));
    for (int call = 0; call < EVERY_COUNT; call++)
        if (resets(call))
            try_all((enum every)call);
    fflush(stdout);
}
