// SPDX-License-Identifier: Apache-2.0
#include "pager/slab.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/path.h"
#include "core/settings.h"
#include "cuda/runtime.h"
#include "pager/host.h"
#include "pager/lane.h"

enum { PLENTY = 4 }; // free, that share of what was used at most

struct as_slab {
    pthread_mutex_t lock;
    const struct as_settings *settings;
    struct as_buffer *free; // by size, smallest first; the most recently given last
    size_t free_count, room; // room for every buffer there is, so that give cannot fail
    size_t count; // of buffers, free or not
    uint64_t bytes, peak_bytes, cap_bytes;
    uint64_t free_bytes, used_peak_bytes; // of those that nobody has, and that others had
    uint64_t step; // counts from 1
    uint64_t refused_bytes; // at the cap, in this step
};

struct as_slab *as_slab_create(const struct as_settings *settings)
{
    struct as_slab *slab = calloc(1, sizeof(*slab));
    if (!slab)
        return NULL;
    pthread_mutex_init(&slab->lock, NULL);
    slab->settings = settings;
    slab->step = 1;
    return slab;
}

void as_slab_destroy(struct as_slab *slab)
{
    if (!slab)
        return;
    for (size_t i = 0; i < slab->free_count; i++)
        as_cuda_host_free(slab->free[i].host);
    free(slab->free);
    pthread_mutex_destroy(&slab->lock);
    free(slab);
}

static uint64_t measured_cap(const struct as_settings *settings)
{
    // A rehearsal says what the rented machine must have, not what this one has.
    if (as_cuda_skips_bytes() && !settings->host_memory_percent)
        return settings->host_memory_bytes ? settings->host_memory_bytes : UINT64_MAX;
    uint64_t cap =
        as_host_cap(settings, as_host_available(""), (unsigned)as_path_local_world());
    if (settings->host_memory_bytes > cap)
        as_log(AS_LOG_WARN,
               "pager: pinned memory is capped at %llu MiB, not %llu MiB: %s",
               (unsigned long long)(cap >> 20),
               (unsigned long long)(settings->host_memory_bytes >> 20),
               "the machine or the control group has no more");
    return cap ? cap : 1;
}

// Two threads may both measure; the first result stays.
static uint64_t cap_of(struct as_slab *slab)
{
    pthread_mutex_lock(&slab->lock);
    uint64_t cap = slab->cap_bytes;
    pthread_mutex_unlock(&slab->lock);
    if (cap)
        return cap;
    uint64_t measured = measured_cap(slab->settings);
    pthread_mutex_lock(&slab->lock);
    if (!slab->cap_bytes)
        slab->cap_bytes = measured;
    cap = slab->cap_bytes;
    pthread_mutex_unlock(&slab->lock);
    return cap;
}

// The first place of the free list whose buffer has at least `bytes`.
static size_t lower_bound(const struct as_slab *slab, size_t bytes)
{
    size_t low = 0, high = slab->free_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slab->free[middle].bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct as_buffer take_at(struct as_slab *slab, size_t at)
{
    struct as_buffer buffer = slab->free[at];
    slab->free_count--;
    slab->free_bytes -= buffer.bytes;
    memmove(&slab->free[at], &slab->free[at + 1],
            (slab->free_count - at) * sizeof(*slab->free));
    return buffer;
}

static void note_use(struct as_slab *slab)
{
    const uint64_t used = slab->bytes - slab->free_bytes;
    slab->used_peak_bytes = used > slab->used_peak_bytes ? used : slab->used_peak_bytes;
}

// Where sizes change from step to step, as many as there are would be pinned in the end.
static bool has_plenty(struct as_slab *slab)
{
    pthread_mutex_lock(&slab->lock);
    const bool plenty = slab->free_bytes > slab->used_peak_bytes / PLENTY;
    pthread_mutex_unlock(&slab->lock);
    return plenty;
}

// Takes the smallest free buffer of at least `bytes` and at most `most`.
static bool take_free(struct as_slab *slab, size_t bytes, size_t most,
                      struct as_buffer *buffer)
{
    pthread_mutex_lock(&slab->lock);
    size_t at = lower_bound(slab, bytes);
    bool found = at < slab->free_count && slab->free[at].bytes <= most;
    if (found) {
        *buffer = take_at(slab, at);
        buffer->used = slab->step;
        note_use(slab);
    }
    pthread_mutex_unlock(&slab->lock);
    return found;
}

static bool make_room(struct as_slab *slab)
{
    if (slab->count < slab->room)
        return true;
    size_t room = slab->room ? 2 * slab->room : 64;
    struct as_buffer *grown = realloc(slab->free, room * sizeof(*grown));
    if (!grown)
        return false;
    slab->free = grown;
    slab->room = room;
    return true;
}

// Counts a buffer before it is there, so that no lock is held while it is made.
static bool reserve(struct as_slab *slab, size_t bytes, uint64_t cap)
{
    pthread_mutex_lock(&slab->lock);
    bool fits = bytes <= cap && slab->bytes <= cap - bytes && make_room(slab);
    if (fits) {
        slab->count++;
        slab->bytes += bytes;
        note_use(slab);
        if (slab->bytes > slab->peak_bytes)
            slab->peak_bytes = slab->bytes;
    }
    pthread_mutex_unlock(&slab->lock);
    return fits;
}

static void unreserve(struct as_slab *slab, size_t bytes)
{
    pthread_mutex_lock(&slab->lock);
    slab->count--;
    slab->bytes -= bytes;
    pthread_mutex_unlock(&slab->lock);
}

static bool take_new(struct as_slab *slab, size_t bytes, struct as_buffer *buffer)
{
    if (!reserve(slab, bytes, cap_of(slab)))
        return false;
    void *host = NULL;
    struct as_before before;
    as_guard_enter(&before);
    int err = as_cuda_host_alloc(&host, bytes);
    as_guard_leave(&before);
    if (err) {
        unreserve(slab, bytes);
        as_log(AS_LOG_WARN, "pager: cannot pin %zu KiB: cuda error %d", bytes >> 10, err);
        return false;
    }
    pthread_mutex_lock(&slab->lock);
    *buffer = (struct as_buffer){.host = host, .bytes = bytes, .used = slab->step};
    pthread_mutex_unlock(&slab->lock);
    return true;
}

// What is larger than the cap finds no room whatever is given back.
static void note_refused(struct as_slab *slab, size_t bytes)
{
    pthread_mutex_lock(&slab->lock);
    slab->refused_bytes += bytes <= slab->cap_bytes ? bytes : 0;
    pthread_mutex_unlock(&slab->lock);
}

int as_slab_take(struct as_slab *slab, size_t bytes, struct as_buffer *buffer)
{
    size_t near = bytes + bytes / 8; // what else fits wastes less than an eighth
    bool taken = take_free(slab, bytes, near, buffer) ||
                 (has_plenty(slab) && take_free(slab, bytes, 2 * bytes, buffer)) ||
                 take_new(slab, bytes, buffer) ||
                 take_free(slab, bytes, SIZE_MAX, buffer);
    if (!taken)
        note_refused(slab, bytes);
    return taken ? 0 : -ENOMEM;
}

int as_slab_reuse(struct as_slab *slab, size_t bytes, struct as_buffer *buffer)
{
    return take_free(slab, bytes, SIZE_MAX, buffer) ? 0 : -ENOMEM;
}

void as_slab_forget(struct as_slab *slab, const struct as_buffer *buffer)
{
    unreserve(slab, buffer->bytes);
}

bool as_slab_fits(struct as_slab *slab, size_t bytes, bool alone)
{
    pthread_mutex_lock(&slab->lock);
    const uint64_t taken = alone ? 0 : slab->bytes;
    const bool fits = bytes <= slab->cap_bytes && taken <= slab->cap_bytes - bytes;
    pthread_mutex_unlock(&slab->lock);
    return fits;
}

void as_slab_give(struct as_slab *slab, const struct as_buffer *buffer)
{
    pthread_mutex_lock(&slab->lock);
    assert(slab->free_count < slab->room);
    size_t at = lower_bound(slab, buffer->bytes + 1);
    memmove(&slab->free[at + 1], &slab->free[at],
            (slab->free_count - at) * sizeof(*slab->free));
    slab->free[at] = *buffer;
    slab->free_count++;
    slab->free_bytes += buffer->bytes;
    pthread_mutex_unlock(&slab->lock);
}

// The largest free buffer that nobody took for long enough, while there is no room for
// what was refused; or free_count.
static size_t find_spare(const struct as_slab *slab)
{
    size_t at = slab->free_count;
    if (slab->refused_bytes <= slab->cap_bytes - slab->bytes)
        return at;
    while (at > 0)
        if (slab->step - slab->free[--at].used >= AS_SLAB_IDLE_STEPS)
            return at;
    return slab->free_count;
}

bool as_slab_has_spare(struct as_slab *slab)
{
    pthread_mutex_lock(&slab->lock);
    bool found = find_spare(slab) < slab->free_count;
    pthread_mutex_unlock(&slab->lock);
    return found;
}

bool as_slab_spare(struct as_slab *slab, struct as_buffer *buffer)
{
    pthread_mutex_lock(&slab->lock);
    size_t at = find_spare(slab);
    bool found = at < slab->free_count;
    if (found) {
        *buffer = take_at(slab, at);
        slab->count--;
        slab->bytes -= buffer->bytes;
    }
    pthread_mutex_unlock(&slab->lock);
    return found;
}

void as_slab_step(struct as_slab *slab)
{
    pthread_mutex_lock(&slab->lock);
    slab->step++;
    slab->refused_bytes = 0;
    pthread_mutex_unlock(&slab->lock);
}

void *as_slab_event(struct as_slab *slab)
{
    void *event = NULL;
    pthread_mutex_lock(&slab->lock);
    for (size_t i = 0; i < slab->free_count && !event; i++) {
        event = slab->free[i].event;
        slab->free[i].event = NULL;
    }
    pthread_mutex_unlock(&slab->lock);
    return event;
}

void as_slab_totals(struct as_slab *slab, struct as_slab_totals *totals)
{
    pthread_mutex_lock(&slab->lock);
    *totals = (struct as_slab_totals){.bytes = slab->bytes,
                                      .peak_bytes = slab->peak_bytes,
                                      .cap_bytes = slab->cap_bytes};
    pthread_mutex_unlock(&slab->lock);
}
