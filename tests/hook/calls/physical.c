// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "program.h"

static void use(struct program *program, struct piece *piece)
{
    if (piece->uses++)
        return;
    program->taken[ACTSWAP_MEMORY_DEVICE] += piece->bytes;
    program->used[piece->device] += (int64_t)piece->bytes;
}

void unuse(struct program *program, struct piece *piece)
{
    if (--piece->uses)
        return;
    program->taken[ACTSWAP_MEMORY_DEVICE] -= piece->bytes;
    program->used[piece->device] -= (int64_t)piece->bytes;
    free(piece);
}

void create(struct program *program, struct thing *thing)
{
    const CUmemAllocationProp wanted = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                     .id = (int)chance(program, DEVICES + 1)}};
    const size_t bytes = PAGE * (1 + chance(program, 3)) - !chance(program, 8);
    CUmemGenericAllocationHandle handle = 0;

    if (DO(program, cuMemCreate(&handle, bytes, chance(program, 12) ? &wanted : NULL, 0)))
        return;
    struct piece *piece = calloc(1, sizeof(*piece));
    *piece = (struct piece){.bytes = bytes, .device = wanted.location.id};
    *thing = (struct thing){.what = HANDLE, .handle = handle, .piece = piece};
    use(program, piece);
}

void reserve(struct program *program, struct thing *thing)
{
    CUdeviceptr address = 0;

    if (!DO(program, cuMemAddressReserve(&address, 4 * PAGE, 0, 0, 0)))
        *thing = (struct thing){.what = RESERVED, .address = (void *)address};
}

void map(struct program *program)
{
    struct thing *range = any(program, RESERVED);
    const struct thing *held = any(program, HANDLE);

    if (!range || !held)
        return;
    if (DO(program,
           cuMemMap((CUdeviceptr)range->address, held->piece->bytes, 0, held->handle, 0)))
        return;
    range->piece = held->piece;
    use(program, held->piece);
}

void release(struct program *program)
{
    struct thing *held = any(program, HANDLE);
    unsigned long long handle = held ? held->handle : 0;

    if (!chance(program, 8))
        handle += 1000003;
    if (DO(program, cuMemRelease(handle)) || !held)
        return;
    unuse(program, held->piece);
    held->what = NOTHING;
}

void retain(struct program *program, struct thing *thing)
{
    const struct thing *range = any(program, RESERVED);
    CUmemGenericAllocationHandle handle = 0;

    if (!range || DO(program, cuMemRetainAllocationHandle(&handle, range->address)))
        return;
    *thing = (struct thing){.what = HANDLE, .handle = handle, .piece = range->piece};
    use(program, range->piece);
}

void unmap(struct program *program)
{
    struct thing *range = any(program, RESERVED);

    if (!range)
        return;
    const size_t bytes = range->piece ? range->piece->bytes : PAGE;
    if (!DO(program, cuMemUnmap((CUdeviceptr)range->address, bytes)) && range->piece) {
        unuse(program, range->piece);
        range->piece = NULL;
    }
    if (!chance(program, 2) &&
        !DO(program, cuMemAddressFree((CUdeviceptr)range->address, 4 * PAGE)))
        range->what = NOTHING;
}
