// SPDX-License-Identifier: Apache-2.0
//
// What the ledger adds to an allocation: nanoseconds of processor time an event with as
// many blocks alive as a large model has, how many times a malloc and free pair that is,
// and what it is with a second thread at work on another device.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "track/ledger.h"

enum { BLOCKS = 20000, EVENTS = 2000000, ROUNDS = 7 };

static uint64_t used_ns(void)
{
    struct timespec used = {0};

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static uint32_t next(uint32_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 17;
    *random ^= *random << 5;
    return *random;
}

struct worker {
    pthread_t thread;
    struct as_ledger *ledger;
    int device;
    double event_ns;
};

static void *address_of(uintptr_t block)
{
    return (void *)((block + 1) << 21);
}

// A block of random size is freed and allocated again, and so on.
static void *use_ledger(void *worker)
{
    struct worker *own = worker;
    uint32_t random = 2463534242;
    const uint64_t start = used_ns();

    for (int i = 0; i < EVENTS / 2; i++) {
        void *address = address_of(next(&random) % BLOCKS);

        as_ledger_remove(own->ledger, own->device, address, 0, 1);
        as_ledger_add(own->ledger, own->device, address, 512 + next(&random) % 4096, 1,
                      NULL);
    }
    own->event_ns = (double)(used_ns() - start) / EVENTS;
    return NULL;
}

// The mean of `count` threads that work at the same time.
static double ledger_ns(struct as_ledger *ledger, int count)
{
    struct worker workers[2];
    double sum = 0;

    for (int i = 0; i < count; i++) {
        workers[i] = (struct worker){.ledger = ledger, .device = i};
        pthread_create(&workers[i].thread, NULL, use_ledger, &workers[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        sum += workers[i].event_ns;
    }
    return sum / count;
}

static double malloc_ns(void)
{
    static void *blocks[BLOCKS];
    uint32_t random = 2463534242;

    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(512);
    const uint64_t start = used_ns();
    for (int i = 0; i < EVENTS / 2; i++) {
        const uint32_t block = next(&random) % BLOCKS;

        free(blocks[block]);
        blocks[block] = malloc(512 + next(&random) % 4096);
    }
    const uint64_t end = used_ns();
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return (double)(end - start) / EVENTS;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

int main(void)
{
    struct as_ledger *ledger = as_ledger_create();
    double one = 1e9, two = 1e9, theirs = 1e9;

    if (!ledger)
        return 1;
    for (int device = 0; device < 2; device++) {
        for (uintptr_t i = 0; i < BLOCKS; i++)
            as_ledger_add(ledger, device, address_of(i), 512, 1, NULL);
    }
    for (int i = 0; i < ROUNDS; i++) { // all noise adds: the least counts
        theirs = least(theirs, malloc_ns());
        one = least(one, ledger_ns(ledger, 1));
        two = least(two, ledger_ns(ledger, 2));
    }
    as_ledger_destroy(ledger);
    printf("ledger: %.0f ns an event with %d blocks alive, %.2f times malloc and free; "
           "two threads on two devices %.2f times one\n",
           one, BLOCKS, one / theirs, two / one);
    return 0;
}
