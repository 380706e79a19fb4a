// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <stdio.h>

#include <cuda_runtime_api.h>

// --- Chance (Marsaglia's xorshift), and what is printed in the end (FNV-1a)

unsigned chance(struct program *program, unsigned below)
{
    uint32_t state = program->state;

    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    program->state = state;
    return state % below;
}

int note(struct program *program, const char *call, int result)
{
    // Mostly an error stays the last one while others succeed.
    const int peeked = cudaPeekAtLastError();
    const int last = chance(program, 4) ? peeked : (int)cudaGetLastError();
    const int values[] = {result, peeked, last};

    for (size_t i = 0; i < sizeof(values); i++)
        program->digest = (program->digest ^ ((const unsigned char *)values)[i]) *
                          UINT64_C(0x100000001b3);
    snprintf(program->last, sizeof(program->last), "%s -> %d", call, result);
    return result;
}

// --- Things

struct thing *any(struct program *program, enum what what)
{
    const unsigned first = chance(program, THINGS);

    for (unsigned i = 0; i < THINGS; i++) {
        struct thing *thing = &program->things[(first + i) % THINGS];

        if (thing->what == what)
            return thing;
    }
    return NULL;
}

size_t some_bytes(struct program *program)
{
    static const size_t sizes[] = {1, 511, 4096, 1 << 20, 3 << 20, (size_t)1 << 60, 0};

    return sizes[chance(program, sizeof(sizes) / sizeof(*sizes))] + chance(program, 2);
}

size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

int now_device(void)
{
    int device = 0;

    cudaGetDevice(&device);
    return device;
}

void hold(struct program *program, struct thing *thing, enum what what,
          enum actswap_memory kind, void *address, size_t bytes)
{
    *thing = (struct thing){.what = what,
                            .kind = kind,
                            .device = now_device(),
                            .address = address,
                            .bytes = bytes};
    if (kind == ACTSWAP_MEMORY_DEVICE)
        thing->used_bytes = pages(bytes);
    program->taken[kind] += bytes;
    program->used[thing->device] += (int64_t)thing->used_bytes;
}

void let_go(struct program *program, struct thing *thing)
{
    program->taken[thing->kind] -= thing->bytes;
    program->used[thing->device] -= (int64_t)thing->used_bytes;
    thing->what = NOTHING;
}
