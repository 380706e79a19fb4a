// SPDX-License-Identifier: Apache-2.0
//
// What the ledger adds to an allocation: nanoseconds an event with as many blocks alive
// as a large model has, and how many times a malloc and free pair that is.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "track/ledger.h"

enum { BLOCKS = 20000, EVENTS = 4000000 };

static uint32_t next(uint32_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 17;
    *random ^= *random << 5;
    return *random;
}

// A block of random size is freed and allocated again, and so on.
static double ledger_ns(void)
{
    struct as_ledger *ledger = as_ledger_create();
    uint32_t random = 2463534242;

    for (uintptr_t i = 0; i < BLOCKS; i++)
        as_ledger_add(ledger, 0, (void *)((i + 1) << 21), 512, 1, NULL);
    const uint64_t start = as_clock_ns();
    for (int i = 0; i < EVENTS / 2; i++) {
        const uintptr_t block = next(&random) % BLOCKS;
        void *address = (void *)((block + 1) << 21);

        as_ledger_remove(ledger, 0, address, 0, 1);
        as_ledger_add(ledger, 0, address, 512 + next(&random) % 4096, 1, NULL);
    }
    const uint64_t end = as_clock_ns();
    as_ledger_destroy(ledger);
    return (double)(end - start) / EVENTS;
}

static double malloc_ns(void)
{
    static void *blocks[BLOCKS];
    uint32_t random = 2463534242;

    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(512);
    const uint64_t start = as_clock_ns();
    for (int i = 0; i < EVENTS / 2; i++) {
        const uint32_t block = next(&random) % BLOCKS;

        free(blocks[block]);
        blocks[block] = malloc(512 + next(&random) % 4096);
    }
    const uint64_t end = as_clock_ns();
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return (double)(end - start) / EVENTS;
}

int main(void)
{
    const double ours = ledger_ns(), theirs = malloc_ns();

    printf("ledger: %.0f ns an event with %d blocks alive, %.1f times malloc and free\n",
           ours, BLOCKS, ours / theirs);
    return 0;
}
