// SPDX-License-Identifier: Apache-2.0
#include "track/steps.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

struct as_steps {
    pthread_mutex_t lock;
    uint64_t count;
    uint64_t ended_ns; // when the last one did, or the start
    uint64_t ended_device_ns;
    // The kept ones; the current step is among them from its first root on.
    struct as_step kept[AS_STEPS_FIRST + AS_STEPS_LAST];
};

struct as_steps *as_steps_create(void)
{
    struct as_steps *steps = calloc(1, sizeof(*steps));

    if (!steps)
        return NULL;
    pthread_mutex_init(&steps->lock, NULL);
    steps->ended_ns = as_clock_started_ns();
    return steps;
}

void as_steps_destroy(struct as_steps *steps)
{
    if (!steps)
        return;
    pthread_mutex_destroy(&steps->lock);
    free(steps);
}

static struct as_step *slot(struct as_steps *steps, uint64_t number)
{
    if (number < AS_STEPS_FIRST)
        return &steps->kept[number];
    return &steps->kept[AS_STEPS_FIRST + (number - AS_STEPS_FIRST) % AS_STEPS_LAST];
}

// The current step's slot still shows an older one, so that one is not kept.
static bool is_kept(const struct as_steps *steps, uint64_t number)
{
    return number <= steps->count &&
           (number < AS_STEPS_FIRST || number + AS_STEPS_LAST > steps->count);
}

uint64_t as_steps_count(struct as_steps *steps)
{
    pthread_mutex_lock(&steps->lock);
    const uint64_t count = steps->count;
    pthread_mutex_unlock(&steps->lock);
    return count;
}

static uint64_t since(uint64_t before_ns, uint64_t now_ns)
{
    return now_ns > before_ns ? now_ns - before_ns : 0;
}

void as_steps_end(struct as_steps *steps, const struct as_step *figures)
{
    pthread_mutex_lock(&steps->lock);
    struct as_step *step = slot(steps, steps->count);
    const unsigned root_count = step->root_count;
    struct as_root roots[AS_ROOTS];

    memcpy(roots, step->roots, sizeof(roots));
    *step = *figures;
    step->time_ns = figures->device_ns ? since(steps->ended_device_ns, figures->device_ns)
                                       : since(steps->ended_ns, figures->end_ns);
    steps->ended_ns = figures->end_ns;
    steps->ended_device_ns = figures->device_ns;
    step->root_count = root_count;
    memcpy(step->roots, roots, sizeof(roots));

    steps->count++;
    memset(slot(steps, steps->count), 0, sizeof(*step));
    pthread_mutex_unlock(&steps->lock);
}

int as_steps_expect_root(struct as_steps *steps, uint64_t *step)
{
    pthread_mutex_lock(&steps->lock);
    const unsigned place = slot(steps, steps->count)->root_count++;

    *step = steps->count;
    pthread_mutex_unlock(&steps->lock);
    return place < AS_ROOTS ? (int)place : -ENOSPC;
}

void as_steps_root(struct as_steps *steps, uint64_t step, int place, const void *bits,
                   size_t bytes)
{
    pthread_mutex_lock(&steps->lock);
    if (is_kept(steps, step)) {
        struct as_root *root = &slot(steps, step)->roots[place];

        memcpy(root->bits, bits, bytes);
        root->bytes = (uint8_t)bytes;
    }
    pthread_mutex_unlock(&steps->lock);
}

bool as_steps_read(struct as_steps *steps, uint64_t number, struct as_step *step)
{
    pthread_mutex_lock(&steps->lock);
    const bool kept = is_kept(steps, number);
    if (kept)
        *step = *slot(steps, number);
    pthread_mutex_unlock(&steps->lock);
    return kept;
}

static int by_time(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

uint64_t as_steps_median_ns(struct as_steps *steps)
{
    uint64_t times[AS_STEPS_FIRST + AS_STEPS_LAST];
    size_t kept = 0;

    pthread_mutex_lock(&steps->lock);
    for (uint64_t number = steps->count > 1; number < steps->count; number++) {
        if (is_kept(steps, number))
            times[kept++] = slot(steps, number)->time_ns;
    }
    pthread_mutex_unlock(&steps->lock);
    if (!kept)
        return 0;
    qsort(times, kept, sizeof(times[0]), by_time);
    return times[kept / 2];
}
