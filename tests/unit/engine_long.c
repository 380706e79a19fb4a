// SPDX-License-Identifier: Apache-2.0
//
// A run of any length needs no more memory than a short one, and its report stays small:
// 10,000 steps, 2,000,000 allocations and as many frees, each at a call site and in a
// block of its own, as many losses as are kept, and figures as high as they get. A program
// of its own, as what it counts is all of the process. Exit 0: nothing grew.
//
// Also prints what an event took in the first and the last tenth, which nothing asserts.
#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <actswap/actswap.h>

#include "engine.h"
#include "fake_cuda.h"
#include "track/steps.h"

enum { STEPS = 10000, SAVES = 200, DEPTH = 12 };

#define REPORT_MOST 1000000
#define BYTES (UINT64_C(3) << 30)

static char folder[] = "/tmp/actswap-long-XXXXXX";
static char report[64];
static uint64_t events;

static void *address_of(uint64_t block)
{
    return (void *)(uintptr_t)((block + 1) << 32);
}

// As deep as a stack is shown, with frames as long as those of packages are.
static uint32_t call_site(uint64_t number)
{
    char frames[DEPTH * 128];
    size_t used = 0;

    for (int i = 0; i < DEPTH; i++)
        used += (size_t)snprintf(frames + used, sizeof(frames) - used,
                                 "%smodeling_of_some_architecture.py:%" PRIu64
                                 " SomeArchitectureDecoderLayer.forward",
                                 i ? "\n" : "", i == DEPTH - 1 ? number : 100);
    return actswap_stack(frames);
}

static void allocate(uint64_t block)
{
    actswap_allocated(0, address_of(block), BYTES, (SAVES + 1) * BYTES, NULL);
    events++;
}

static void give_back(uint64_t block)
{
    actswap_freed(0, address_of(block), BYTES, (SAVES + 1) * BYTES);
    events++;
}

static void forward(uint64_t step)
{
    static char storage;
    struct actswap_page *page;

    actswap_mark(ACTSWAP_FORWARD);
    for (uint64_t i = 0; i < SAVES; i++) {
        struct actswap_saved saved = {
            .size = sizeof(saved),
            .address = address_of(i),
            .bytes = BYTES,
            .used_bytes = BYTES,
            .ref = &storage,
            .category = ACTSWAP_ACTIVATION,
            .stack = call_site(step * SAVES + i),
        };

        actswap_block(ACTSWAP_ENTER, step * SAVES + i, NULL);
        allocate(i);
        if (actswap_save(&saved, &page) == 0) // the policy is off
            abort();
        actswap_block(ACTSWAP_EXIT, step * SAVES + i, NULL);
    }
}

// Losses in the first and the last tenth, whose steps are kept: the stand-in for CUDA
// remembers all that was queued, and would be what grows.
static void go_step(uint64_t step, void *stream)
{
    static float loss[AS_ROOTS];
    const bool kept = step < STEPS / 10 || step >= STEPS * 9 / 10;

    forward(step);
    for (int i = 0; kept && i < AS_ROOTS; i++)
        actswap_root(0, &loss[i], sizeof(loss[i]), stream);
    actswap_mark(ACTSWAP_BACKWARD);
    for (uint64_t i = SAVES; i-- > 0;) {
        actswap_used(0, address_of(i));
        give_back(i);
    }
    actswap_mark(ACTSWAP_BACKWARD_END);
    actswap_mark(ACTSWAP_STEP);
}

// Something of every category lives on, so that no column of the report is empty.
static void hold_all_categories(void)
{
    for (int category = ACTSWAP_PARAMETER; category < ACTSWAP_CATEGORIES; category++) {
        const uint64_t block = SAVES + (uint64_t)category;

        allocate(block);
        actswap_tag(0, address_of(block), (enum actswap_category)category);
    }
}

static uint64_t used_ns(void)
{
    struct timespec used = {0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

// Steps from `first` up to `last`; nanoseconds an event.
static double go(uint64_t first, uint64_t last, void *stream)
{
    const uint64_t start = used_ns(), before = events;

    for (uint64_t step = first; step < last; step++)
        go_step(step, stream);
    return (double)(used_ns() - start) / (double)(events - before);
}

// After the engine's own exit handler, which writes the report.
static void look(void)
{
    struct stat status = {0};
    const int missing = stat(report, &status);

    unlink(report);
    rmdir(folder);
    printf("report: %lld bytes\n", (long long)status.st_size);
    fflush(stdout);
    if (missing || status.st_size > REPORT_MOST)
        _exit(1);
}

int main(void)
{
    if (!mkdtemp(folder) || atexit(look))
        return 2;
    snprintf(report, sizeof(report), "%s/report.json", folder);
    setenv("ACTSWAP_REPORT", report, 1);
    setenv("ACTSWAP_LOG", "warn", 1);

    void *stream = fake_stream(FAKE_EAGER);
    hold_all_categories();
    const double early = go(0, STEPS / 10, stream);
    go(STEPS / 10, STEPS / 2, stream); // all that is kept is full by then
    const size_t half = mallinfo2().uordblks;
    go(STEPS / 2, STEPS * 9 / 10, stream);
    const size_t whole = mallinfo2().uordblks;
    const double late = go(STEPS * 9 / 10, STEPS, stream);

    printf("events: %" PRIu64 ", with all around it %.0f ns each at first, %.0f at last; "
           "heap: %zu bytes at half, %zu at nine tenths\n",
           events, early, late, half, whole);
    fake_finish();
    actswap_detach();
    return whole == half ? 0 : 1;
}
