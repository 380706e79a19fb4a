// SPDX-License-Identifier: Apache-2.0
// The books of memory, errors, devices and contexts.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "litmus.h"

static const size_t PAGE = (size_t)2 << 20;
static const size_t H100 = 85028896768, H100_CONTEXT = (size_t)481 << 20;

static size_t free_bytes(void)
{
    size_t bytes = 0, total = 0;

    OK(cudaMemGetInfo(&bytes, &total));
    return bytes;
}

static void the_card_is_as_large_as_the_table_says(void)
{
    size_t bytes, total;

    OK(cudaMemGetInfo(&bytes, &total));
    EXPECT(total, H100);
    EXPECT(bytes, H100 - H100_CONTEXT);
}

static void another_card_has_another_size(void)
{
    struct cudaDeviceProp properties;
    size_t bytes, total;

    OK(cudaGetDeviceProperties(&properties, 0));
    EXPECT(strcmp(properties.name, "Tesla T4"), 0);
    EXPECT(properties.major * 10 + properties.minor, 75);
    OK(cudaMemGetInfo(&bytes, &total));
    EXPECT(total, 15843721216);
}

static void memory_is_taken_in_pages_of_2_mib(void)
{
    const size_t before = free_bytes();
    void *one, *two;

    OK(cudaMalloc(&one, 1));
    EXPECT(before - free_bytes(), PAGE);
    OK(cudaMalloc(&two, PAGE + 1));
    EXPECT(before - free_bytes(), 3 * PAGE);
    EXPECT((uintptr_t)one % PAGE, 0);
    OK(cudaFree(one));
    OK(cudaFree(two));
    EXPECT(before - free_bytes(), 0);
}

static void a_full_card_refuses_and_frees(void)
{
    const size_t all = free_bytes() / PAGE * PAGE;
    void *first = NULL, *second = (void *)&first;

    OK(cudaMalloc(&first, all));
    EXPECT(cudaMalloc(&second, 1), cudaErrorMemoryAllocation);
    EXPECT(second == NULL, true);
    OK(cudaFree(first));
    OK(cudaMalloc(&second, all));
    EXPECT(cudaMalloc(&first, SIZE_MAX), cudaErrorMemoryAllocation);
}

static uint64_t pool_says(enum cudaMemPoolAttr attribute)
{
    cudaMemPool_t pool;
    uint64_t value = 7;

    OK(cudaDeviceGetMemPool(&pool, 0));
    OK(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

// All that the pool has is in use: what is freed goes back to the card.
static void a_pool_knows_what_it_handed_out(void)
{
    cudaMemPool_t pool;
    uint64_t value = 0;
    void *one, *other;

    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMalloc(&other, PAGE));
    OK(cudaMallocAsync(&one, PAGE + 1, NULL));
    EXPECT(pool_says(cudaMemPoolAttrUsedMemCurrent), 2 * PAGE);
    EXPECT(pool_says(cudaMemPoolAttrReservedMemCurrent), 2 * PAGE);
    OK(cudaFreeAsync(one, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(other));
    EXPECT(pool_says(cudaMemPoolAttrUsedMemCurrent), 0);
    EXPECT(pool_says(cudaMemPoolAttrUsedMemHigh), 2 * PAGE);
    EXPECT(pool_says(cudaMemPoolAttrReservedMemHigh), 2 * PAGE);
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
    EXPECT(pool_says(cudaMemPoolAttrUsedMemHigh), 0);
    value = UINT64_MAX;
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
    EXPECT(pool_says(cudaMemPoolAttrReleaseThreshold), UINT64_MAX);
    EXPECT(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)99, &value),
           cudaErrorInvalidValue);
    EXPECT(cudaMemPoolGetAttribute(NULL, cudaMemPoolAttrUsedMemHigh, &value),
           cudaErrorInvalidValue);
}

static void memory_in_pieces_is_not_a_full_card(void)
{
    enum { PIECES = 64 };
    const size_t piece = free_bytes() / PIECES / PAGE * PAGE;
    void *pieces[PIECES], *large;

    for (int i = 0; i < PIECES; i++)
        OK(cudaMalloc(&pieces[i], piece));
    for (int i = 0; i < PIECES; i += 2)
        OK(cudaFree(pieces[i]));

    OK(cudaMalloc(&large, piece * PIECES / 2));
}

static void new_memory_is_not_the_old_ones_bytes(void)
{
    int *at = litmus_device(), *again;

    litmus_set(NULL, at, 7);
    OK(cudaFree(at));
    OK(cudaMalloc((void **)&again, sizeof(int)));

    EXPECT(again == at, true);
    EXPECT(litmus_peek(again), 0);
}

static void only_what_was_allocated_is_freed(void)
{
    char *device = (char *)litmus_device();
    int host;

    OK(cudaFree(NULL));
    EXPECT(cudaFree(&host), cudaErrorInvalidValue);
    EXPECT(cudaFree(device + 1), cudaErrorInvalidValue);
    OK(cudaFree(device));
    EXPECT(cudaFree(device), cudaErrorInvalidValue);
    EXPECT(cudaFreeHost(&host), cudaErrorInvalidValue);
    EXPECT(cudaHostUnregister(&host), cudaErrorHostMemoryNotRegistered);
}

static void the_last_error_stays_until_it_is_fetched(void)
{
    void *device;

    EXPECT(cudaSetDevice(1), cudaErrorInvalidDevice);
    OK(cudaMalloc(&device, 1));
    EXPECT(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError(), cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError(), cudaSuccess);
    EXPECT(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"), 0);
    EXPECT(strcmp(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady"), 0);
}

static void kind_is(const void *address, enum cudaMemoryType type, int device)
{
    struct cudaPointerAttributes attributes;

    OK(cudaPointerGetAttributes(&attributes, address));
    EXPECT(attributes.type, type);
    EXPECT(attributes.device, device);
    EXPECT(attributes.devicePointer == (type ? address : NULL), true);
}

static void pointers_are_known_by_their_kind(void)
{
    static char registered[4096];
    char *device = (char *)litmus_device(), *pinned = (char *)litmus_pinned();
    void *managed, *seen;
    int host;

    OK(cudaMallocManaged(&managed, 4096, cudaMemAttachGlobal));
    kind_is(device + 3, cudaMemoryTypeDevice, 0);
    kind_is(pinned + 3, cudaMemoryTypeHost, 0);
    kind_is(managed, cudaMemoryTypeManaged, 0);
    kind_is(&host, cudaMemoryTypeUnregistered, cudaInvalidDeviceId);
    kind_is(registered, cudaMemoryTypeUnregistered, cudaInvalidDeviceId);
    OK(cudaHostRegister(registered, sizeof(registered), 0));
    kind_is(registered + 4095, cudaMemoryTypeHost, 0);
    OK(cudaHostGetDevicePointer(&seen, registered, 0));
    EXPECT(seen == registered, true);
    EXPECT(cudaHostRegister(registered + 100, 10, 0),
           cudaErrorHostMemoryAlreadyRegistered);
    OK(cudaHostUnregister(registered));
    kind_is(registered, cudaMemoryTypeUnregistered, cudaInvalidDeviceId);
    OK(cudaFree(managed));
    OK(cudaFreeHost(pinned));
    kind_is(pinned, cudaMemoryTypeUnregistered, cudaInvalidDeviceId);
    EXPECT(sim_is_device(device), true);
    EXPECT(sim_is_device(&host), false);
}

static void memory_belongs_to_the_device_it_was_taken_on(void)
{
    size_t bytes;

    OK(cudaSetDevice(1));
    int *device = litmus_device();
    const size_t left = free_bytes();

    kind_is(device, cudaMemoryTypeDevice, 1);
    EXPECT((char *)device - (char *)sim_arena(1, &bytes), 0);
    EXPECT(bytes >= 2 * H100, true);
    OK(cudaSetDevice(0));
    EXPECT(free_bytes() - left, PAGE);
    OK(cudaFree(device));
    OK(cudaSetDevice(1));
    EXPECT(free_bytes() - left, PAGE);
    EXPECT(sim_arena(2, NULL) == NULL, true);
}

static int threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = -2;

    while (tasks && readdir(tasks))
        count++;
    closedir(tasks);
    return count;
}

// Megabytes of address space.
static long mapped(void)
{
    FILE *statm = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (!statm || fscanf(statm, "%ld", &pages) != 1)
        pages = -1;
    fclose(statm);
    return pages / 256;
}

static void ignore(void *unused)
{
    (void)unused;
}

static void nothing_is_there_before_it_is_used(void)
{
    const long before = mapped();
    struct cudaDeviceProp properties;
    int count, value;

    EXPECT(threads(), 1);
    OK(cudaGetDeviceCount(&count));
    OK(cudaGetDeviceProperties(&properties, 0));
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
    EXPECT(threads(), 1);
    EXPECT(mapped() - before < 64, true);
    OK(cudaFree(litmus_device()));
    EXPECT(mapped() - before > 2 * 80000, true);
    EXPECT(threads(), 1);

    // Who waits runs the work; only a host function needs another thread.
    litmus_set(NULL, litmus_device(), 1);
    OK(cudaDeviceSynchronize());
    EXPECT(threads(), 1);
    OK(cudaLaunchHostFunc(NULL, ignore, NULL));
    OK(cudaDeviceSynchronize());
    EXPECT(threads(), 2);
}

static void a_forked_child_has_no_device(void)
{
    int count, status;
    void *device;

    OK(cudaGetDeviceCount(&count));

    const pid_t child = fork();

    if (!child)
        _exit(cudaMalloc(&device, 1) == cudaErrorInitializationError &&
                      cudaGetDeviceCount(&count) == cudaErrorInitializationError
                  ? 0
                  : 1);
    EXPECT(waitpid(child, &status, 0), child);
    EXPECT(status, 0);
    OK(cudaMalloc(&device, 1));
}

static void a_call_fails_when_its_turn_is_named(void)
{
    void *device;

    OK(cudaMalloc(&device, 1));
    EXPECT(cudaMalloc(&device, 1), cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&device, 1));
    EXPECT(cudaMemset(device, 0, 1), 700);
    OK(cudaMemset(device, 0, 1));
}

static void every_attribute_has_an_answer(void)
{
    int value;

    for (int i = 1; i < cudaDevAttrMax; i++)
        if (cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)i, 0) &&
            (i < 44 || i > 44) && i != 136 && i != 137 && i != 146)
            EXPECT(i, 0);
    EXPECT(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)100000, 0),
           cudaErrorInvalidValue);
    EXPECT(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1),
           cudaErrorInvalidDevice);
}

static void use_the_runtime(void)
{
    int count;

    OK(cudaGetDeviceCount(&count));
}

static const struct litmus cases[] = {
    LITMUS(the_card_is_as_large_as_the_table_says),
    {"another_card_has_another_size", another_card_has_another_size, "ACTSWAP_SIM_GPU=T4",
     NULL},
    LITMUS(memory_is_taken_in_pages_of_2_mib),
    LITMUS(a_full_card_refuses_and_frees),
    LITMUS(a_pool_knows_what_it_handed_out),
    LITMUS(memory_in_pieces_is_not_a_full_card),
    LITMUS(new_memory_is_not_the_old_ones_bytes),
    LITMUS(only_what_was_allocated_is_freed),
    LITMUS(the_last_error_stays_until_it_is_fetched),
    LITMUS(pointers_are_known_by_their_kind),
    {"memory_belongs_to_the_device_it_was_taken_on",
     memory_belongs_to_the_device_it_was_taken_on, "ACTSWAP_SIM_GPUS=2", NULL},
    LITMUS(nothing_is_there_before_it_is_used),
    LITMUS(a_forked_child_has_no_device),
    {"a_call_fails_when_its_turn_is_named", a_call_fails_when_its_turn_is_named,
     "ACTSWAP_SIM_FAULT=cudaMalloc:2=2,cudaMemset:1=700", NULL},
    LITMUS(every_attribute_has_an_answer),
    {"an_unknown_card_is_refused", use_the_runtime, "ACTSWAP_SIM_GPU=h100-80g",
     "ACTSWAP_SIM_GPU=h100-80g is not a known GPU. Did you mean h100-80gb?"},
    {"an_unknown_order_is_refused", use_the_runtime, "ACTSWAP_SIM_ORDER=lat",
     "ACTSWAP_SIM_ORDER=lat is not known. Did you mean late?"},
    {"a_seed_that_is_no_number_is_refused", use_the_runtime, "ACTSWAP_SIM_ORDER=seed:x",
     "ACTSWAP_SIM_ORDER=seed:x is not known. Did you mean seed:1?"},
    {"an_unknown_way_to_compute_is_refused", use_the_runtime, "ACTSWAP_SIM_COMPUTE=value",
     "ACTSWAP_SIM_COMPUTE=value is not known. Did you mean values?"},
    {"too_many_devices_are_refused", use_the_runtime, "ACTSWAP_SIM_GPUS=17",
     "ACTSWAP_SIM_GPUS=17 is not a number from 1 to 16"},
    {"a_fault_that_does_not_read_is_refused", use_the_runtime,
     "ACTSWAP_SIM_FAULT=cudaMalloc=2",
     "ACTSWAP_SIM_FAULT=cudaMalloc=2 does not read function:call=error"},
};

int test_main(int argc, char *argv[]);

int test_main(int argc, char *argv[])
{
    (void)argc, (void)argv;
    return litmus_run(cases, sizeof(cases) / sizeof(cases[0]));
}
