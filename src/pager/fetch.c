// SPDX-License-Identifier: Apache-2.0
#include "pager/fetch.h"

#include <stdlib.h>

#include "cuda/runtime.h"
#include "pager/keep.h"
#include "pager/lane.h"
#include "pager/spill.h"
#include "pager/state.h"
#include "track/ledger.h"

enum { LOOK_AHEAD = 256 }; // needs, of which most may be on the device already

// --- What comes next (the lock is held)

// Where the search is: among the ranks of the last step, or behind them by number, in the
// reverse of saving.
struct place {
    struct as_order *order;
    uint64_t rank; // 0: by number
    uint32_t number;
};

static struct place place_of(struct as_pager *pager, const struct actswap_page *page)
{
    struct as_order *order = &pager->orders[page->lane->device];
    const uint64_t rank = as_order_rank(order, page->number);
    const bool known = rank <= order->sequence_count;
    return (struct place){order, known ? rank : 0, page->number};
}

static bool move_on(struct place *place)
{
    if (place->rank && place->rank < place->order->sequence_count) {
        place->rank++;
        return true;
    }
    place->rank = 0;
    return place->number-- > 0;
}

static struct actswap_page *page_at(const struct place *place)
{
    return place->rank ? as_order_page(place->order, place->rank)
                       : as_order_saved(place->order, place->number);
}

static bool can_come(const struct actswap_page *page)
{
    return page && page->users && !page->ref && !page->arriving && page->buffer.host;
}

// --- Whether there is room (the lock is held)

enum fit { UNKNOWN, FITS, DOES_NOT_FIT };

static enum fit fit_of(struct as_pager *pager, const struct place *now,
                       const struct place *then, size_t bytes, uint64_t limit_bytes)
{
    const int device = (int)(now->order - pager->orders);
    const struct as_ahead *ahead = &pager->aheads[device];
    struct as_ledger_totals totals;
    as_ledger_totals(pager->ledger, device, &totals);
    int64_t rise, early = (int64_t)(ahead->bytes + bytes);
    const int64_t level = (int64_t)totals.live_bytes - (int64_t)ahead->bytes;
    bool fits = now->rank && then->rank;
    if (!fits)
        return UNKNOWN;
    for (uint64_t at = now->rank; fits && at < then->rank; at++) {
        const struct actswap_page *page = as_order_page(now->order, at);
        if (at > now->rank && page && page->early)
            early -= (int64_t)page->bytes;
        if (!as_ahead_rise(ahead, now->rank, at, &rise))
            return UNKNOWN;
        fits = level + rise + early <= (int64_t)limit_bytes;
    }
    return fits ? FITS : DOES_NOT_FIT;
}

// Without a budget one block's pages may come on top of what the step takes where nearly
// all of it is as high, but not at a peak that passes.
static bool has_room(struct as_pager *pager, const struct place *now,
                     const struct place *then, size_t bytes)
{
    const struct as_ahead *ahead = &pager->aheads[now->order - pager->orders];
    const uint64_t budget = as_ledger_budget_bytes(pager->ledger);
    if (ahead->bytes && ahead->bytes + bytes > ahead->window_bytes)
        return false;
    const enum fit fit =
        fit_of(pager, now, then, bytes, budget ? budget : ahead->last_top_bytes);
    return fit == FITS || (!budget && (fit == UNKNOWN || ahead->level));
}

// The next page that may come now, held; NULL: none.
static struct actswap_page *hold_next(struct as_pager *pager, const struct place *now,
                                      struct place *place)
{
    struct actswap_page *found = NULL;
    pthread_mutex_lock(&pager->lock);
    const struct as_ahead *ahead = &pager->aheads[now->order - pager->orders];
    bool more = pager->backwards && ahead->window_bytes && !ahead->refused;
    for (int looked = 0; more && !found && looked < LOOK_AHEAD; looked++) {
        more = move_on(place);
        struct actswap_page *page = more ? page_at(place) : NULL;
        if (!can_come(page))
            continue;
        if (has_room(pager, now, place, page->bytes))
            found = page;
        else
            more = false;
    }
    if (found)
        found->holds++;
    pthread_mutex_unlock(&pager->lock);
    return found;
}

// --- Bringing it in

// To ask the framework for what the device does not have would cost it all its caches.
static bool device_has(struct as_pager *pager, const struct actswap_page *page)
{
    const int device = page->lane->device;
    struct as_ledger_totals totals;
    struct as_before before;
    size_t free_bytes = 0, total_bytes = 0;
    as_ledger_totals(pager->ledger, device, &totals);
    if (totals.live_bytes + 2 * page->bytes <= totals.reserved_bytes)
        return true;
    const int err =
        as_device_enter(device, &before) || as_cuda_memory(&free_bytes, &total_bytes);
    as_device_leave(&before);
    return !err && free_bytes > 2 * page->bytes + total_bytes / 64;
}

static bool claim(struct as_pager *pager, struct actswap_page *page)
{
    pthread_mutex_lock(&pager->lock);
    const bool mine = can_come(page);
    if (mine)
        page->arriving = true;
    pthread_mutex_unlock(&pager->lock);
    return mine;
}

// `ref`: NULL: the copy could not be queued.
static void finish(struct as_pager *pager, struct actswap_page *page, void *ref,
                   void *address, void *owner)
{
    struct as_ahead *ahead = &pager->aheads[page->lane->device];
    pthread_mutex_lock(&pager->lock);
    page->arriving = false;
    ahead->refused |= !ref;
    if (ref) {
        as_need_install(pager, page, ref, address, owner);
        page->early = page->unawaited = true;
        ahead->bytes += page->bytes;
        pager->totals.ahead++;
    }
    pthread_cond_broadcast(&pager->moved);
    pthread_mutex_unlock(&pager->lock);
}

static bool bring(struct as_pager *pager, struct actswap_page *page, void *stream)
{
    void *address = NULL;
    void *ref = device_has(pager, page) ? as_need_allocate(page, stream, &address) : NULL;
    if (!ref) {
        pthread_mutex_lock(&pager->lock);
        pager->aheads[page->lane->device].refused = true;
        pthread_mutex_unlock(&pager->lock);
        return false;
    }
    if (!claim(pager, page)) {
        page->verbs->release(page->context, ref);
        return true;
    }
    as_ledger_tag(pager->ledger, page->lane->device, address, ACTSWAP_ACTIVATION);
    as_keep_needed(pager, page);
    const int err = as_move_in(page, NULL, address, stream, false);
    finish(pager, page, err ? NULL : ref, address, stream);
    if (err)
        page->verbs->release(page->context, ref);
    return !err;
}

void as_fetch_ahead(struct as_pager *pager, const struct actswap_page *page, void *stream)
{
    if (page->step != pager->step || as_stream_captured(stream))
        return;
    pthread_mutex_lock(&pager->lock);
    const struct place now = place_of(pager, page);
    pthread_mutex_unlock(&pager->lock);
    struct place place = now;
    struct actswap_page *next;
    bool more = true;
    while (more && (next = hold_next(pager, &now, &place))) {
        more = bring(pager, next, stream);
        as_evict_unhold(pager, next);
    }
}
