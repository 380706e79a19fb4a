// SPDX-License-Identifier: Apache-2.0
//
// Threads that meet in the engine: all of them make its first call at once, and then
// allocate, free, tag, save, hand over losses, end steps and ask for figures. A program
// of its own, as Criterion does not run under ThreadSanitizer. Exit 0: one engine, and
// nothing lost.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <actswap/actswap.h>

#include "engine.h"
#include "fake_cuda.h"
#include "track/ledger.h"
#include "track/steps.h"

enum { THREADS = 4, ROUNDS = 2000, BYTES = 512 };

static pthread_barrier_t barrier;
static struct as_engine *seen[THREADS];
static uint64_t handed[THREADS]; // losses
static char folder[] = "/tmp/actswap-race-XXXXXX";
static char report[64];

static void *address_of(int thread, int slot)
{
    return (void *)(uintptr_t)(((size_t)thread * 1000 + (size_t)slot + 1) << 12);
}

static void go_round(int me, int round, void *stream)
{
    static float loss[THREADS];
    void *address = address_of(me, round % 7);
    struct actswap_stats stats = {.size = sizeof(stats)};

    as_engine_taken(&(struct as_taking){.address = address, .bytes = BYTES});
    actswap_allocated(0, address, BYTES, BYTES, NULL);
    actswap_tag(0, address, ACTSWAP_PARAMETER);
    if (round % 100 == 0) // a step may have too many of them, if others are slow
        handed[me] += actswap_root(0, &loss[me], sizeof(loss[me]), stream) == 0;
    if (me == 0 && round % 50 == 0) {
        actswap_mark(ACTSWAP_FORWARD);
        actswap_mark(ACTSWAP_BACKWARD);
        actswap_mark(ACTSWAP_STEP);
    }
    actswap_block(ACTSWAP_ENTER, 1, NULL);
    actswap_block(ACTSWAP_EXIT, 1, NULL);
    actswap_note("round");
    actswap_stats(&stats);
    actswap_freed(0, address, BYTES, BYTES);
    const struct as_freeing freeing =
        as_engine_freeing(address, 1U << ACTSWAP_MEMORY_DEVICE);
    as_engine_freed(&freeing);
}

static void *work(void *argument)
{
    const int me = *(const int *)argument;
    void *stream = fake_stream(FAKE_EAGER);

    pthread_barrier_wait(&barrier);
    seen[me] = as_engine_get();
    for (int round = 0; round < ROUNDS; round++)
        go_round(me, round, stream);
    return NULL;
}

static int fault(const char *what, uint64_t found, uint64_t expected)
{
    if (found == expected)
        return 0;
    printf("%s: %llu, expected %llu\n", what, (unsigned long long)found,
           (unsigned long long)expected);
    return 1;
}

static uint64_t losses_read(void)
{
    struct as_step step;
    uint64_t read = 0;

    for (uint64_t i = 0; as_steps_read(seen[0]->steps, i, &step); i++)
        for (int n = 0; n < AS_ROOTS; n++)
            read += step.roots[n].bytes == sizeof(float);
    return read;
}

static int check(void)
{
    struct as_ledger_totals segments;
    struct actswap_stats stats = {.size = sizeof(stats)};
    uint64_t losses = 0;
    int faults = 0;

    for (int i = 0; i < THREADS; i++) {
        faults += !seen[i] || seen[i] != seen[0];
        losses += handed[i];
    }
    as_ledger_totals(seen[0]->segments, -1, &segments);
    actswap_stats(&stats);
    faults += fault("live", stats.live_bytes, 0);
    faults += fault("taken and not given back", segments.live_bytes, 0);
    faults += fault("taken", segments.allocations, THREADS * ROUNDS);
    faults += fault("given back", segments.frees, THREADS * ROUNDS);
    faults += fault("steps", stats.steps, ROUNDS / 50);
    faults +=
        fault("notes", as_notes_add(&seen[0]->notes, "round"), THREADS * ROUNDS + 1);
    faults += fault("losses", losses_read(), losses);
    faults += access(report, R_OK) != 0;
    return faults;
}

// After the engine's own exit handler, which writes the report.
static void clean(void)
{
    unlink(report);
    rmdir(folder);
}

int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];

    if (!mkdtemp(folder) || atexit(clean))
        return 2;
    snprintf(report, sizeof(report), "%s/report.json", folder);
    setenv("ACTSWAP_REPORT", report, 1);
    setenv("ACTSWAP_LOG", "warn", 1);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, work, &numbers[i]))
            return 2;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    fake_finish();
    actswap_detach();
    return check() ? 1 : 0;
}
