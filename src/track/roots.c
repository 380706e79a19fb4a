// SPDX-License-Identifier: Apache-2.0
#include "track/roots.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "cuda/runtime.h"
#include "cuda/thread.h"
#include "track/steps.h"

enum { SLOTS = 256, CUDA_NOT_READY = 600, LAST_WAIT_NS = 1000000000 };

// FREE -> BUSY (one thread works on it, without the lock) -> QUEUED -> BUSY -> FREE
enum state { FREE, BUSY, QUEUED };

struct slot {
    enum state state;
    int device; // of the event
    void *event; // NULL until first used
    uint64_t step;
    int place;
    size_t bytes;
};

struct as_roots {
    pthread_mutex_t lock; // never held over a CUDA call
    struct as_steps *steps;
    void *pinned; // AS_ROOT_BYTES a slot
    struct slot slots[SLOTS];
};

struct as_roots *as_roots_create(struct as_steps *steps)
{
    struct as_roots *roots = calloc(1, sizeof(*roots));
    if (!roots)
        return NULL;

    pthread_mutex_init(&roots->lock, NULL);
    roots->steps = steps;
    return roots;
}

void as_roots_destroy(struct as_roots *roots)
{
    if (!roots)
        return;
    for (size_t i = 0; i < SLOTS; i++) {
        if (roots->slots[i].event)
            as_cuda_event_destroy(roots->slots[i].event);
    }
    if (roots->pinned)
        as_cuda_host_free(roots->pinned);
    pthread_mutex_destroy(&roots->lock);
    free(roots);
}

static struct slot *take(struct as_roots *roots, enum state from, size_t first)
{
    struct slot *taken = NULL;

    pthread_mutex_lock(&roots->lock);
    for (size_t i = first; i < SLOTS && !taken; i++) {
        if (roots->slots[i].state == from) {
            taken = &roots->slots[i];
            taken->state = BUSY;
        }
    }
    pthread_mutex_unlock(&roots->lock);
    return taken;
}

static void put(struct as_roots *roots, struct slot *slot, enum state state)
{
    pthread_mutex_lock(&roots->lock);
    slot->state = state;
    pthread_mutex_unlock(&roots->lock);
}

static bool ensure_pinned(struct as_roots *roots)
{
    if (__atomic_load_n(&roots->pinned, __ATOMIC_ACQUIRE))
        return true;

    void *fresh = NULL, *none = NULL;
    if (as_cuda_host_alloc(&fresh, (size_t)SLOTS * AS_ROOT_BYTES))
        return false;
    if (!__atomic_compare_exchange_n(&roots->pinned, &none, fresh, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        as_cuda_host_free(fresh); // another thread was faster
    return true;
}

static void *host_of(const struct as_roots *roots, const struct slot *slot)
{
    return (char *)roots->pinned + (size_t)(slot - roots->slots) * AS_ROOT_BYTES;
}

// An event belongs to the device that was current when it was made.
static int ensure_event(struct slot *slot, int device)
{
    if (slot->event && slot->device == device)
        return 0;
    if (slot->event)
        as_cuda_event_destroy(slot->event);
    slot->event = NULL;
    slot->device = device;
    return as_cuda_event_create(&slot->event) ? -EIO : 0;
}

static int queue_copy(struct as_roots *roots, struct slot *slot, const void *address,
                      void *stream)
{
    if (as_cuda_copy_out(host_of(roots, slot), address, slot->bytes, stream) ||
        as_cuda_event_record(slot->event, stream))
        return -EIO;
    return 0;
}

static int add_on_device(struct as_roots *roots, int device, const void *address,
                         size_t bytes, void *stream)
{
    if (!ensure_pinned(roots))
        return -EIO;
    struct slot *slot = take(roots, FREE, 0);
    if (!slot)
        return -ENOSPC;

    int err = ensure_event(slot, device);
    if (!err) {
        slot->place = as_steps_expect_root(roots->steps, &slot->step);
        slot->bytes = bytes;
        err = slot->place < 0 ? slot->place : queue_copy(roots, slot, address, stream);
    }
    put(roots, slot, err ? FREE : QUEUED);
    return err;
}

// The step has a root that nobody can read.
static int expect_nothing(struct as_roots *roots)
{
    uint64_t step;
    const int place = as_steps_expect_root(roots->steps, &step);
    return place < 0 ? place : 0;
}

int as_roots_add(struct as_roots *roots, int device, const void *address, size_t bytes,
                 void *stream)
{
    struct as_before before;
    int err = -EIO;

    if (!address || !bytes || bytes > AS_ROOT_BYTES)
        return -EINVAL;
    if (as_stream_captured(stream))
        return -EBUSY;
    as_roots_collect(roots);
    if (!as_cuda_computed(address, bytes))
        return expect_nothing(roots);
    if (!as_device_enter(device, &before))
        err = add_on_device(roots, device, address, bytes, stream);
    as_device_leave(&before);
    return err;
}

// false: it has not arrived yet.
static bool collect(struct as_roots *roots, const struct slot *slot)
{
    const int answer = as_cuda_event_query(slot->event);

    if (answer == 0)
        as_steps_root(roots->steps, slot->step, slot->place, host_of(roots, slot),
                      slot->bytes);
    return answer != CUDA_NOT_READY;
}

size_t as_roots_collect(struct as_roots *roots)
{
    struct as_before before;
    size_t waiting = 0;
    struct slot *slot = take(roots, QUEUED, 0);

    if (!slot)
        return 0;
    as_guard_enter(&before);
    for (; slot; slot = take(roots, QUEUED, (size_t)(slot - roots->slots) + 1)) {
        const bool arrived = collect(roots, slot);

        put(roots, slot, arrived ? FREE : QUEUED);
        waiting += !arrived;
    }
    as_guard_leave(&before);
    return waiting;
}

void as_roots_collect_last(struct as_roots *roots)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const uint64_t start = as_clock_ns();

    while (as_roots_collect(roots) && as_clock_ns() - start < LAST_WAIT_NS)
        nanosleep(&pause, NULL);
}
