// SPDX-License-Identifier: Apache-2.0
//
// How a page is found on the device or comes in again.
#include <errno.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/log.h"
#include "cuda/runtime.h"
#include "pager/edges.h"
#include "pager/fetch.h"
#include "pager/keep.h"
#include "pager/lane.h"
#include "pager/pause.h"
#include "pager/spill.h"
#include "pager/state.h"
#include "track/ledger.h"
#include "track/place.h"

// How a page was found.
struct found {
    void *arrived; // of its copy in, or NULL
    void *owner;
    bool unawaited;
};

// The stream has waited for the copy in if it brought the page in itself, when it was
// needed; else it does so here. A captured one may wait for nothing outside of its capture:
// the host waits.
static int answer(struct as_pager *pager, struct actswap_page *page,
                  const struct found *found, void *stream)
{
    const bool owner = found->owner == stream;
    if (!found->arrived || (owner && !found->unawaited))
        return 0;
    struct as_before before;
    int err = as_device_enter(page->lane->device, &before);
    if (!err)
        err = as_stream_captured(stream) ? as_cuda_event_synchronize(found->arrived)
                                         : as_edge_arrived(stream, found->arrived);
    as_device_leave(&before);
    if (err && as_cuda_event_synchronize(found->arrived) &&
        as_cuda_stream_synchronize(page->lane->in))
        return -EIO;
    pthread_mutex_lock(&pager->lock);
    page->unawaited &= !owner;
    pthread_mutex_unlock(&pager->lock);
    return 0;
}

// The lock is held.
static void note_order(struct as_pager *pager, const struct actswap_page *page)
{
    const int device = page->lane->device;
    struct as_ahead *ahead = &pager->aheads[device];
    const size_t early_bytes = page->early ? page->bytes : 0;
    if (page->step == pager->step &&
        as_order_need(&pager->orders[device], page->number)) {
        const struct as_swing swing =
            as_ledger_swing(pager->ledger, device, AS_SWING_AHEAD);
        as_ahead_need(ahead, &swing, early_bytes, page->ref ? 0 : page->bytes);
    } else {
        ahead->bytes -= early_bytes;
    }
}

// A backward is at work where the page was saved. The lock is held.
static void note_use(struct as_pager *pager, const struct actswap_page *page)
{
    as_place_set(page->place);
    as_ledger_waited(pager->ledger, page->lane->device, page->stack, page->bytes,
                     as_clock_ns() - page->saved_ns);
}

// Whoever brings it in may wait for a disk, and then for what this thread holds.
static void await_arrival(struct as_pager *pager, struct actswap_page *page)
{
    pthread_mutex_lock(&pager->lock);
    const bool arriving = page->arriving;
    pthread_mutex_unlock(&pager->lock);
    if (!arriving)
        return;
    const struct as_pause pause = as_pause_begin(pager);
    pthread_mutex_lock(&pager->lock);
    while (page->arriving)
        pthread_cond_wait(&pager->moved, &pager->lock);
    pthread_mutex_unlock(&pager->lock);
    as_pause_end(&pause);
}

// True if the page is on the device: *out is filled in and the page is in use from now.
static bool find_resident(struct as_pager *pager, struct actswap_page *page,
                          struct actswap_resident *out, struct found *found)
{
    await_arrival(pager, page);
    pthread_mutex_lock(&pager->lock);
    bool resident = page->ref;
    if (page->early || !page->needs)
        note_order(pager, page);
    page->early = false;
    if (!page->needs++)
        note_use(pager, page);
    as_page_unlink(page, AS_PAGE_WAITS);
    if (page->restored && resident && page->users && !page->stays)
        as_page_append(&pager->back, page);
    out->address = page->address;
    out->ref = page->ref;
    *found = (struct found){page->restored ? page->arrived : NULL, page->owner,
                            page->unawaited};
    pthread_mutex_unlock(&pager->lock);
    return resident;
}

// Of several threads that have memory for the page, the first brings it in.
static bool claim(struct as_pager *pager, struct actswap_page *page)
{
    pthread_mutex_lock(&pager->lock);
    bool mine = !page->arriving && !page->ref;
    if (mine)
        page->arriving = true;
    pthread_mutex_unlock(&pager->lock);
    return mine;
}

static uint64_t block_of(struct as_pager *pager, const struct actswap_page *page)
{
    struct as_block block;
    bool known = as_ledger_find(pager->ledger, page->lane->device, page->address, &block);
    return known ? block.generation : 0;
}

void as_need_install(struct as_pager *pager, struct actswap_page *page, void *ref,
                     void *address, void *owner)
{
    page->unawaited = false;
    page->ref = ref;
    page->address = address;
    page->owner = owner;
    page->restored = true;
    page->since = as_streams_now(pager->streams);
    page->generation = as_ledger_now(pager->ledger, page->lane->device);
    page->block = block_of(pager, page);
    pager->totals.in_bytes += page->bytes;
    pager->totals.brought++;
    if (page->users && !page->stays)
        as_page_append(&pager->back, page);
}

void *as_need_allocate(struct actswap_page *page, void *owner, void **address)
{
    struct as_before before;
    as_guard_enter(&before);
    void *ref = page->verbs->allocate(page->context, page->lane->device, page->bytes,
                                      owner, address);
    as_guard_leave(&before);
    return ref;
}

// What a capture of the user's records must not have the copy in it: each replay would
// copy again, from a buffer that is another page's by then. So the page comes in outside,
// into memory that is not the capture's, and the host waits for it (answer). It stays
// until its end, as the graph has its address now.
static int bring_in(struct as_pager *pager, struct actswap_page *page, void *stream)
{
    void *address = NULL;
    bool captured = as_stream_captured(stream);
    void *owner = captured ? page->lane->in : stream;
    void *ref = as_need_allocate(page, owner, &address);
    if (!ref)
        return -ENOMEM;
    if (!claim(pager, page)) {
        page->verbs->release(page->context, ref);
        return 0; // nothing was queued on it
    }
    as_ledger_tag(pager->ledger, page->lane->device, address, ACTSWAP_ACTIVATION);
    void *loose;
    int err = as_spill_fetch(pager, page, &loose);
    const bool lost = err;
    if (!err)
        err = as_move_in(page, loose, address, owner, true);
    const bool refused = err && !lost && !captured;
    if (refused)
        err = as_move_by_host(page, loose, address, owner);
    free(loose);
    pthread_mutex_lock(&pager->lock);
    page->arriving = false;
    pager->totals.by_host += refused && !err;
    page->stays |= captured && !err;
    if (!err)
        as_need_install(pager, page, ref, address, owner);
    pthread_cond_broadcast(&pager->moved);
    pthread_mutex_unlock(&pager->lock);
    if (err)
        page->verbs->release(page->context, ref);
    if (lost)
        return -EBADMSG;
    return err ? -EIO : 0;
}

static int need(struct as_pager *pager, struct actswap_page *page, void *stream,
                struct actswap_resident *out)
{
    struct found found;
    as_keep_needed(pager, page);
    while (!find_resident(pager, page, out, &found)) {
        int err = bring_in(pager, page, stream);
        if (err)
            return err;
    }
    as_streams_see(pager->streams, page->lane->device, stream);
    return answer(pager, page, &found, stream);
}

int as_pager_need(struct as_pager *pager, struct actswap_page *page, void *stream,
                  struct actswap_resident *out)
{
    int err = need(pager, page, stream, out);
    if (!err)
        as_fetch_ahead(pager, page, stream);
    if (err == -EIO)
        as_log(AS_LOG_WARN,
               "pager: cannot bring %zu KiB of a saved tensor back%s: the device refused",
               page->bytes >> 10,
               as_stream_captured(stream) ? " while its stream is captured" : "");
    if (err != -EBADMSG)
        return err;
    as_log(AS_LOG_ERROR,
           "pager: %zu KiB of a saved tensor are lost: the disk does not give back what "
           "was written to it. Run again without ACTSWAP_DISK, or with another folder",
           page->bytes >> 10);
    return -EIO;
}
