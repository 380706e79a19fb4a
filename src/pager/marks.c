// SPDX-License-Identifier: Apache-2.0
//
// What the moments of a step mean to pages.
#include "core/settings.h"
#include "cuda/runtime.h"
#include "pager/keep.h"
#include "pager/lane.h"
#include "pager/spill.h"
#include "pager/state.h"

static void count_elsewhere(struct as_pager *pager, struct actswap_page *page)
{
    if (page->elsewhere)
        return;
    page->elsewhere = true;
    pager->totals.held_elsewhere++;
    pager->totals.kept[ACTSWAP_KEPT_HELD]++;
    pager->totals.kept_bytes[ACTSWAP_KEPT_HELD] += page->bytes;
}

// For a framework that does not say who holds what.
static void find_elsewhere(struct actswap_page *page, void *context)
{
    struct as_pager *pager = context;
    struct as_block block;
    if (!page->ref &&
        as_ledger_find(pager->ledger, (int)page->key.device, page->key.address, &block) &&
        block.generation == page->key.generation)
        count_elsewhere(pager, page);
}

static void begin_backward(struct as_pager *pager)
{
    as_evict(pager, &pager->shared);
    as_evict(pager, &pager->outside);
    pthread_mutex_lock(&pager->lock);
    pager->backwards++;
    pager->backward_count++;
    for (struct actswap_page *page = pager->shared.first; page;
         page = page->nodes[AS_PAGE_WAITS].next) {
        count_elsewhere(pager, page);
        if (page->step == pager->step)
            as_held_found(&pager->helds[page->lane->device], page->number);
    }
    as_page_table_each(pager->table, find_elsewhere, pager);
    pthread_mutex_unlock(&pager->lock);
    as_spill_ahead(pager);
}

static void end_backward(struct as_pager *pager)
{
    pthread_mutex_lock(&pager->lock);
    if (pager->backwards)
        pager->backwards--;
    bool quiet = !pager->backwards;
    pthread_mutex_unlock(&pager->lock);
    if (quiet)
        as_evict(pager, &pager->back);
}

// A backward that raised has not said that it ended.
static void begin_forward(struct as_pager *pager)
{
    pthread_mutex_lock(&pager->lock);
    pager->backwards = 0;
    as_keep_begin(pager);
    for (int i = 0; i < AS_LEDGER_DEVICES; i++)
        pager->forward_generations[i] = as_ledger_now(pager->ledger, i);
    pthread_mutex_unlock(&pager->lock);
}

static int refuse_captured(void *stream, void *context)
{
    (void)context;
    return as_stream_captured(stream);
}

static int pass(void *event, void *context)
{
    (void)event;
    (void)context;
    return 0;
}

bool as_pager_captures(struct as_pager *pager)
{
    static const struct as_streams_visitor visitor = {refuse_captured, pass, NULL};
    bool found = false;
    for (int device = 0; device < AS_LEDGER_DEVICES && !found; device++)
        found =
            pager->lanes[device] && as_streams_visit(pager->streams, device, 0, &visitor);
    return found;
}

static void give_back_spare(struct as_pager *pager)
{
    struct as_buffer buffer;
    if (as_slab_has_spare(pager->slab) && as_pager_captures(pager))
        return;
    while (as_slab_spare(pager->slab, &buffer))
        as_move_unpin(pager, &buffer);
    as_slab_step(pager->slab);
}

static void end_step(struct as_pager *pager)
{
    as_keep_end_step(pager);
    pthread_mutex_lock(&pager->lock);
    pager->step++;
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        const struct as_swing swing = as_ledger_swing(pager->ledger, i, AS_SWING_AHEAD);
        as_order_step(&pager->orders[i]);
        as_ahead_step(&pager->aheads[i], &swing);
        as_held_end_step(&pager->helds[i]);
    }
    pthread_mutex_unlock(&pager->lock);
    give_back_spare(pager);
}

void as_pager_mark(struct as_pager *pager, enum actswap_moment moment)
{
    switch (moment) {
    case ACTSWAP_FORWARD:
        begin_forward(pager);
        break;
    case ACTSWAP_BACKWARD:
        begin_backward(pager);
        break;
    case ACTSWAP_BACKWARD_END:
        end_backward(pager);
        break;
    case ACTSWAP_OPTIMIZER:
        break;
    case ACTSWAP_STEP:
        end_step(pager);
        break;
    case ACTSWAP_AGAIN:
    case ACTSWAP_AGAIN_END:
        break;
    }
    as_evict_finish(pager);
}
