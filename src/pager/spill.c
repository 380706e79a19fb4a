// SPDX-License-Identifier: Apache-2.0
#include "pager/spill.h"

#include <errno.h>
#include <stdlib.h>

#include "core/settings.h"
#include "pager/lane.h"
#include "pager/pause.h"
#include "pager/state.h"

// Written ahead: this share of what is pinned. Read ahead: so many at a time.
enum { AHEAD_SHARE = 4, READS_AHEAD = 4 };

static struct actswap_page *next_of(const struct actswap_page *page)
{
    return page->nodes[AS_PAGE_TIER].next;
}

// --- Whose buffer (the lock is held)

// Copies of the buffer that are in flight end before the lane uses it again, but of a page
// that was brought in and is there its event is still asked for.
static bool may_leave(const struct actswap_page *page)
{
    return !page->arriving && !(page->arrived && page->ref);
}

static bool is_writable(const struct actswap_page *page)
{
    return !page->on_disk && !page->unwritten && !page->job;
}

// Whether `page` is the better one to take a buffer of `bytes` from than one that went to
// the host earlier: one that fits closely, one that is on the disk, a smaller one.
static bool is_better(const struct actswap_page *page, const struct actswap_page *best,
                      size_t bytes)
{
    const size_t near = bytes + bytes / 8;
    const bool fits = page->buffer.bytes <= near, best_fits = best->buffer.bytes <= near;
    if (fits != best_fits)
        return fits;
    return fits ? page->on_disk && !best->on_disk
                : page->buffer.bytes < best->buffer.bytes;
}

static struct actswap_page *choose(struct as_pager *pager, size_t bytes)
{
    struct actswap_page *best = NULL;
    const bool open = as_disk_is_open(pager->disk);
    for (struct actswap_page *page = pager->hosted.first; page; page = next_of(page)) {
        const bool possible = page->on_disk || page->job || (open && is_writable(page));
        if (page->buffer.bytes < bytes || !possible || !may_leave(page))
            continue;
        if (!best || is_better(page, best, bytes))
            best = page;
        if (best->on_disk && best->buffer.bytes <= bytes + bytes / 8)
            break;
    }
    return best;
}

static struct as_buffer steal(struct as_pager *pager, struct actswap_page *page)
{
    struct as_buffer buffer = page->buffer;
    as_page_unlink(page, AS_PAGE_TIER);
    as_page_append(&pager->away, page);
    page->buffer.host = NULL;
    if (!page->arrived)
        return buffer;
    // The buffer's last use was the copy in, which the lane waits for.
    as_lane_give(pager->lanes[buffer.device], buffer.event);
    buffer.event = page->arrived;
    buffer.device = page->lane->device;
    page->arrived = NULL;
    return buffer;
}

// --- Writing (the lock is held)

static void write_ahead(struct as_pager *pager)
{
    struct as_slab_totals slab;
    as_slab_totals(pager->slab, &slab);
    uint64_t ready = 0;
    if (!as_disk_is_open(pager->disk))
        return;
    for (struct actswap_page *page = pager->hosted.first;
         page && ready < slab.bytes / AHEAD_SHARE; page = next_of(page)) {
        if (is_writable(page) && as_jobs_write(pager->jobs, page))
            return;
        ready += page->on_disk || page->job ? page->buffer.bytes : 0;
    }
}

// 0: taken. -EAGAIN: not yet. -ENOMEM: never.
static int try_take(struct as_pager *pager, size_t bytes, struct as_buffer *buffer)
{
    struct actswap_page *page = choose(pager, bytes);
    if (!page)
        return -ENOMEM;
    if (!page->on_disk && !page->job && as_jobs_write(pager->jobs, page))
        return -ENOMEM;
    if (page->on_disk)
        *buffer = steal(pager, page);
    write_ahead(pager);
    return page->on_disk ? 0 : -EAGAIN;
}

static int await_take(struct as_pager *pager, size_t bytes, struct as_buffer *buffer)
{
    int err;
    const struct as_pause pause = as_pause_begin(pager);
    pthread_mutex_lock(&pager->lock);
    while ((err = try_take(pager, bytes, buffer)) == -EAGAIN)
        if (!as_jobs_wait(pager->jobs)) {
            as_disk_blame(pager->disk, "for too long nothing was written to", 0);
            break;
        }
    pthread_mutex_unlock(&pager->lock);
    as_pause_end(&pause);
    return err;
}

static int steal_any(struct as_pager *pager, size_t bytes, struct as_buffer *buffer)
{
    pthread_mutex_lock(&pager->lock);
    int err = try_take(pager, bytes, buffer);
    pthread_mutex_unlock(&pager->lock);
    if (err == -EAGAIN)
        err = await_take(pager, bytes, buffer);
    return err ? -ENOMEM : 0;
}

// No buffer there is is large enough: smaller ones make room for one that is. Buffers only
// grow by this, so that it comes to an end.
static int exchange(struct as_pager *pager, size_t bytes, struct as_buffer *buffer)
{
    if (!as_slab_fits(pager->slab, bytes, true) || as_pager_captures(pager))
        return -ENOMEM;
    struct as_buffer smaller;
    while (!as_slab_fits(pager->slab, bytes, false)) {
        if (as_slab_reuse(pager->slab, 1, &smaller) && steal_any(pager, 1, &smaller))
            return -ENOMEM;
        as_move_unpin(pager, &smaller);
        as_slab_forget(pager->slab, &smaller);
    }
    return as_slab_take(pager->slab, bytes, buffer);
}

int as_spill_take(struct as_pager *pager, size_t bytes, struct as_buffer *buffer)
{
    if (!pager->settings->disk)
        return -ENOMEM;
    return steal_any(pager, bytes, buffer) ? exchange(pager, bytes, buffer) : 0;
}

// --- Reading

// As the last step needed it, what is of an earlier step last. The lock is held.
static uint64_t rank_of(const struct as_pager *pager, const struct actswap_page *page)
{
    return page->step == pager->step
               ? as_order_rank(&pager->orders[page->lane->device], page->number)
               : UINT64_MAX;
}

// What is to be read next. The lock is held.
static struct actswap_page *next_away(struct as_pager *pager)
{
    struct actswap_page *next = NULL, *page = pager->away.last;
    for (; page; page = page->nodes[AS_PAGE_TIER].previous) {
        if (page->job || page->unread || page->arriving || page->ref)
            continue;
        if (!next || rank_of(pager, page) < rank_of(pager, next))
            next = page;
    }
    return next;
}

static struct actswap_page *find_next(struct as_pager *pager)
{
    pthread_mutex_lock(&pager->lock);
    struct actswap_page *page = NULL;
    if (pager->backwards && as_jobs_reading(pager->jobs) < READS_AHEAD)
        page = next_away(pager);
    pthread_mutex_unlock(&pager->lock);
    return page;
}

// The page may have come to its end or been fetched meanwhile. False: so it was.
static bool begin_read(struct as_pager *pager, const struct actswap_page *expected,
                       const struct as_buffer *buffer)
{
    pthread_mutex_lock(&pager->lock);
    struct actswap_page *page = next_away(pager);
    const bool begun = page == expected && page->bytes <= buffer->bytes &&
                       !as_jobs_read(pager->jobs, page, buffer);
    pthread_mutex_unlock(&pager->lock);
    if (!begun)
        as_slab_give(pager->slab, buffer);
    return begun;
}

void as_spill_ahead(struct as_pager *pager)
{
    const struct actswap_page *page;
    struct as_buffer buffer;
    if (!pager->settings->disk)
        return;
    do
        page = find_next(pager);
    while (page && as_slab_reuse(pager->slab, page->bytes, &buffer) == 0 &&
           begin_read(pager, page, &buffer));
}

static bool is_hosted(struct as_pager *pager, const struct actswap_page *page)
{
    pthread_mutex_lock(&pager->lock);
    const bool hosted = !page->job && page->buffer.host;
    pthread_mutex_unlock(&pager->lock);
    return hosted;
}

// Waits for a read that has begun; one that has not leaves its buffer.
static bool join_read(struct as_pager *pager, struct actswap_page *page,
                      struct as_buffer *buffer)
{
    buffer->host = NULL;
    const struct as_pause pause = as_pause_begin(pager);
    pthread_mutex_lock(&pager->lock);
    while (page->job && !as_jobs_cancel_read(pager->jobs, page, buffer))
        as_jobs_wait(pager->jobs);
    const bool there = page->buffer.host;
    pthread_mutex_unlock(&pager->lock);
    as_pause_end(&pause);
    return there;
}

static void install(struct as_pager *pager, struct actswap_page *page,
                    const struct as_buffer *buffer)
{
    pthread_mutex_lock(&pager->lock);
    page->buffer = *buffer;
    as_page_unlink(page, AS_PAGE_TIER);
    as_page_prepend(&pager->hosted, page);
    pthread_mutex_unlock(&pager->lock);
}

static int read_loose(struct as_pager *pager, struct actswap_page *page, void **loose)
{
    const struct as_buffer buffer = {.host = malloc(page->bytes), .bytes = page->bytes};
    if (!buffer.host)
        return -ENOMEM;
    const int err = as_jobs_read_now(pager, page, &buffer);
    if (err)
        free(buffer.host);
    else
        *loose = buffer.host;
    return err;
}

static int fetch(struct as_pager *pager, struct actswap_page *page, void **loose)
{
    struct as_buffer buffer;
    if (join_read(pager, page, &buffer))
        return 0;
    if (!buffer.host && as_slab_take(pager->slab, page->bytes, &buffer) &&
        as_spill_take(pager, page->bytes, &buffer))
        return read_loose(pager, page, loose) ? -EIO : 0;
    if (as_jobs_read_now(pager, page, &buffer)) {
        as_slab_give(pager->slab, &buffer);
        return -EIO;
    }
    install(pager, page, &buffer);
    return 0;
}

int as_spill_fetch(struct as_pager *pager, struct actswap_page *page, void **loose)
{
    *loose = NULL;
    if (!pager->settings->disk || is_hosted(pager, page))
        return 0;
    return fetch(pager, page, loose);
}

// --- The end

bool as_spill_forget(struct as_pager *pager, struct actswap_page *page,
                     struct as_buffer *buffer)
{
    const bool ours = !page->job || as_jobs_leave(pager->jobs, page, buffer);
    if (page->on_disk)
        as_disk_give(pager->disk, &page->extent);
    page->on_disk = false;
    if (ours && buffer->host)
        as_slab_give(pager->slab, buffer);
    return ours && buffer->host;
}
