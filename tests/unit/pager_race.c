// SPDX-License-Identifier: Apache-2.0
//
// Threads that save, need, drop and let go of the same storages at once, while streams
// come and go; "pager_race disk": with pinned memory for one of them, and the disk. A
// program of its own, as Criterion does not run under ThreadSanitizer. Exit 0: all values
// right, nothing lost.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "fake_cuda.h"
#include "framework.h"

enum { THREADS = 4, ROUNDS = 10000, SHARED = 3, BYTES = 512 };

static struct storage *shared[SHARED];
static pthread_barrier_t barrier;
static int wrong[THREADS];
static bool on_disk; // then one may stay, when others are using the buffer

static void save_all(struct actswap_page *pages[SHARED], void *stream, uint64_t block)
{
    enter(block);
    for (int i = 0; i < SHARED; i++)
        if (save(shared[i], stream, &pages[i]))
            pages[i] = NULL;
}

static bool holds(const unsigned char *bytes, int value)
{
    for (int i = 0; i < BYTES; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

// Reads in the order of the stream, as a framework's backward does.
static int use(struct actswap_page *page, void *stream, int value)
{
    unsigned char seen[BYTES];
    struct actswap_resident back = need(page, stream);
    fake_read(stream, back.address, seen, BYTES);
    return !holds(seen, value);
}

static void *work(void *argument)
{
    int me = *(int *)argument;
    void *stream = fake_stream(FAKE_EAGER);
    for (int round = 0; round < ROUNDS; round++) {
        struct actswap_page *pages[SHARED];
        pthread_barrier_wait(&barrier);
        if (me == 0)
            for (int i = 0; i < SHARED; i++) {
                shared[i] = storage_create(BYTES, stream);
                fake_fill(stream, shared[i]->address, round % 100 + i, BYTES);
            }
        pthread_barrier_wait(&barrier);
        void *side = fake_stream(FAKE_LAZY);
        as_pager_stream_made(fw.pager, 0, side);
        save_all(pages, stream, (uint64_t)round);
        pthread_barrier_wait(&barrier);
        if (me == 0)
            for (int i = 0; i < SHARED; i++)
                storage_drop(shared[i]);
        leave((uint64_t)round, stream);
        as_pager_stream_ending(fw.pager, side);
        if (round % 2) // all are gone, and all want them at once
            pthread_barrier_wait(&barrier);
        for (int i = SHARED - 1; i >= 0; i--) {
            wrong[me] += pages[i] ? use(pages[i], stream, round % 100 + i) : !on_disk;
            as_pager_drop(fw.pager, pages[i]);
        }
    }
    return NULL;
}

static void use_disk(void)
{
    on_disk = true;
    framework_use_disk(BYTES);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int numbers[THREADS], bad = 0;
    framework_start();
    if (argc > 1 && strcmp(argv[1], "disk") == 0)
        use_disk();
    framework_tell_holders();
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        bad += wrong[i];
    }
    struct as_pager_totals now = totals();
    printf("wrong %d, held %d, pages %lu, made %lu, in %lu bytes\n", bad, fw.held,
           (unsigned long)now.pages, (unsigned long)now.pages_made,
           (unsigned long)now.in_bytes);
    bool moved = now.in_bytes > 0 && (!on_disk || now.disk.in_bytes > 0);
    if (now.disk.problem[0]) // as when a thread waited for nothing
        printf("disk: %s\n", now.disk.problem);
    as_pager_destroy(fw.pager);
    return bad || fw.held || now.pages || !moved || now.disk.problem[0];
}
