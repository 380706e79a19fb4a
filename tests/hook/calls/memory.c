// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "program.h"

// --- Taking

static void *wrong_or(struct program *program, void *right)
{
    return chance(program, 12) ? right : NULL;
}

void take_plain(struct program *program, struct thing *thing)
{
    const size_t bytes = some_bytes(program);
    const bool driver = chance(program, 2);
    void *address = NOT_GIVEN;
    void **where = wrong_or(program, &address);
    const int result = driver ? DO(program, cuMemAlloc_v2((CUdeviceptr *)where, bytes))
                              : DO(program, cudaMalloc(where, bytes));

    if (!result && address && bytes)
        hold(program, thing, MEMORY, ACTSWAP_MEMORY_DEVICE, address, bytes);
}

void take_rows(struct program *program, struct thing *thing)
{
    const size_t width = 1 + chance(program, 2000), height = chance(program, 3000);
    struct cudaPitchedPtr rows = {.ptr = NOT_GIVEN};
    void *address = NOT_GIVEN;
    size_t pitch = 0;
    int result;

    switch (chance(program, 3)) {
    case 0:
        result = DO(program, cudaMallocPitch(&address, &pitch, width, height));
        break;
    case 1:
        result = DO(program, cuMemAllocPitch_v2((CUdeviceptr *)&address, &pitch, width,
                                                height, 4));
        break;
    default:
        result =
            DO(program, cudaMalloc3D(chance(program, 8) ? &rows : NULL,
                                     (struct cudaExtent){width, height, 1 + width % 2}));
        address = rows.ptr;
        pitch = rows.pitch * (1 + width % 2);
    }
    if (!result && address && height)
        hold(program, thing, MEMORY, ACTSWAP_MEMORY_DEVICE, address, pitch * height);
}

void take_ordered(struct program *program, struct thing *thing)
{
    const struct thing *stream = any(program, STREAM), *pool = any(program, POOL);
    const size_t bytes = some_bytes(program);
    cudaStream_t on = stream && chance(program, 3) ? stream->address : NULL;
    const int before = now_device();
    void *address = NOT_GIVEN;
    int result;

    switch (chance(program, pool ? 4 : 2)) {
    case 0:
        result = DO(program, cudaMallocAsync(&address, bytes, on));
        break;
    case 1:
        result = DO(program, cuMemAllocAsync((CUdeviceptr *)&address, bytes, on));
        break;
    case 2:
        result = DO(program, cudaMallocFromPoolAsync(&address, bytes, pool->address, on));
        break;
    default:
        result = DO(program, cuMemAllocFromPoolAsync((CUdeviceptr *)&address, bytes,
                                                     pool->address, on));
    }
    if (result)
        return;
    hold(program, thing, MEMORY, ACTSWAP_MEMORY_DEVICE, address, bytes);
    struct cudaPointerAttributes attributes;
    cudaPointerGetAttributes(&attributes, address);
    program->used[before] -= (int64_t)thing->used_bytes;
    program->used[attributes.device] += (int64_t)thing->used_bytes;
    thing->device = attributes.device;
}

void take_host(struct program *program, struct thing *thing)
{
    const size_t bytes = some_bytes(program) % (8 << 20);
    enum actswap_memory kind = ACTSWAP_MEMORY_PINNED;
    void *address = NULL;
    void **where = wrong_or(program, &address);
    int result;

    switch (chance(program, 6)) {
    case 0:
        result = DO(program, cudaMallocHost(where, bytes));
        break;
    case 1:
        result = DO(program, cudaHostAlloc(where, bytes, chance(program, 9)));
        break;
    case 2:
        result = DO(program, cuMemAllocHost_v2(where, bytes));
        break;
    case 3:
        result = DO(program, cuMemHostAlloc(where, bytes, 0));
        break;
    case 4:
        kind = ACTSWAP_MEMORY_MANAGED;
        result = DO(program, cudaMallocManaged(where, bytes, chance(program, 4)));
        break;
    default:
        kind = ACTSWAP_MEMORY_MANAGED;
        result = DO(program, cuMemAllocManaged((CUdeviceptr *)where, bytes, 1));
    }
    if (!result && where && address)
        hold(program, thing, kind == ACTSWAP_MEMORY_PINNED ? HOST : MEMORY, kind, address,
             bytes);
}

void take_registered(struct program *program, struct thing *thing)
{
    const size_t bytes = 4096 * (1 + chance(program, 64));
    char *address = malloc(bytes);
    const int result =
        chance(program, 2)
            ? DO(program, cudaHostRegister(wrong_or(program, address), bytes, 0))
            : DO(program, cuMemHostRegister_v2(wrong_or(program, address), bytes, 0));

    if (result)
        free(address);
    else
        hold(program, thing, REGISTERED, ACTSWAP_MEMORY_REGISTERED, address, bytes);
}

// --- Giving back

void give(struct program *program)
{
    struct thing *thing = any(program, MEMORY);
    struct thing *stream = any(program, STREAM);
    void *address = thing ? thing->address : NULL;
    int result;

    if (!chance(program, 10)) // somewhere in it, or nowhere
        address = thing && chance(program, 2) ? (char *)address + 1 : (void *)program;
    const bool right = thing && address == thing->address;
    const bool managed = right && thing->kind == ACTSWAP_MEMORY_MANAGED;
    cudaStream_t on = stream && chance(program, 2) ? stream->address : NULL;

    switch (chance(program, managed ? 2 : 4)) {
    case 0:
        result = DO(program, cudaFree(address));
        break;
    case 1:
        result = DO(program, cuMemFree_v2((CUdeviceptr)address));
        break;
    case 2:
        result = DO(program, cudaFreeAsync(address, on));
        break;
    default:
        result = DO(program, cuMemFreeAsync((CUdeviceptr)address, on));
    }
    if (right && !result)
        let_go(program, thing);
}

void give_host(struct program *program)
{
    struct thing *thing = any(program, chance(program, 2) ? HOST : REGISTERED);
    void *address = thing ? thing->address : NULL;

    if (!thing)
        return;
    const bool pinned = thing->what == HOST;
    int result;
    if (!chance(program, 10)) { // in the wrong way
        DO(program, cudaFree(address));
        DO(program, cudaHostUnregister(pinned ? address : (char *)address + 1));
        return;
    }
    if (pinned)
        result = chance(program, 2) ? DO(program, cudaFreeHost(address))
                                    : DO(program, cuMemFreeHost(address));
    else
        result = chance(program, 2) ? DO(program, cudaHostUnregister(address))
                                    : DO(program, cuMemHostUnregister(address));
    if (result)
        return;
    let_go(program, thing);
    if (!pinned)
        free(address);
}

// --- Streams and pools

void make(struct program *program, struct thing *thing)
{
    const struct cudaMemPoolProps wanted = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice, .id = now_device()}};
    enum what what = STREAM;
    void *made = NULL;
    int result;

    switch (chance(program, 5)) {
    case 0:
        result = DO(program, cudaStreamCreate((cudaStream_t *)&made));
        break;
    case 1:
        result = DO(program,
                    cudaStreamCreateWithFlags((cudaStream_t *)&made, chance(program, 3)));
        break;
    case 2:
        result = DO(program, cuStreamCreateWithPriority((CUstream *)&made, 1, -1));
        break;
    case 3:
        result = DO(program, cuStreamCreate((CUstream *)&made, 0));
        break;
    default:
        what = POOL;
        result = DO(program, cudaMemPoolCreate((cudaMemPool_t *)&made, &wanted));
    }
    if (result)
        return;
    *thing = (struct thing){.what = what, .device = now_device(), .address = made};
    if (what == STREAM)
        cudaStreamGetFlags(made, &thing->flags);
}

void unmake(struct program *program)
{
    struct thing *thing = any(program, chance(program, 3) ? STREAM : POOL);
    int result;

    if (!thing)
        return;
    if (thing->what == POOL)
        result = DO(program, cudaMemPoolDestroy(thing->address));
    else if (chance(program, 2))
        result = DO(program, cudaStreamDestroy(thing->address));
    else
        result = DO(program, cuStreamDestroy_v2(thing->address));
    if (!result)
        thing->what = NOTHING;
}
