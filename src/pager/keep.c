// SPDX-License-Identifier: Apache-2.0
#include "pager/keep.h"

#include "pager/lane.h"
#include "pager/state.h"
#include "track/ledger.h"

static uint64_t budget_of(const struct as_pager *pager)
{
    return as_ledger_budget_bytes(pager->ledger);
}

// NULL: out of memory. The lock is held.
static struct as_course *course_of(struct as_pager *pager, int device)
{
    if (!pager->courses[device])
        pager->courses[device] = as_course_create(pager->first_levels[device]);
    return pager->courses[device];
}

// --- Those that stay

// The next one of a device that nobody has needed yet. The lock is held.
static struct actswap_page *next_kept(struct as_pager *pager, int device)
{
    struct actswap_page *page = pager->kept.first;
    while (page && (page->lane->device != device || page->needs || page->holds))
        page = page->nodes[AS_PAGE_TIER].next;
    return page;
}

// As if it had been saved just now; where it waits for the exit of its block it still does.
static void send_out(struct as_pager *pager, struct actswap_page *page,
                     struct as_page_list *due)
{
    const enum actswap_reason reason = as_pager_copy_late(pager, page);
    pthread_mutex_lock(&pager->lock);
    page->stays = reason;
    if (!reason)
        as_pager_went_out(pager, page);
    if (!reason && page->users && !page->needs && !page->nodes[AS_PAGE_WAITS].list)
        as_page_append(due, page);
    pthread_mutex_unlock(&pager->lock);
    as_evict_unhold(pager, page);
}

static void give_up(struct as_pager *pager, int device)
{
    struct as_page_list due = {0};
    struct actswap_page *page;
    pthread_mutex_lock(&pager->lock);
    while ((page = next_kept(pager, device))) {
        as_page_unlink(page, AS_PAGE_TIER);
        page->kept = false;
        page->stays = true; // until its copy out is queued
        page->holds++;
        as_course_moved(pager->courses[device], &page->ticket);
        pthread_mutex_unlock(&pager->lock);
        send_out(pager, page, &due);
        pthread_mutex_lock(&pager->lock);
    }
    pthread_mutex_unlock(&pager->lock);
    as_evict(pager, &due);
}

bool as_keep_ask(struct as_pager *pager, struct actswap_page *page, size_t bytes)
{
    bool stays = false, expected = true;
    if (!budget_of(pager))
        return false;
    pthread_mutex_lock(&pager->lock);
    struct as_course *course = course_of(pager, page->lane->device);
    if (course)
        expected = as_course_add(course, bytes, &page->ticket, &stays);
    page->kept = stays;
    page->uncopied &= !stays; // one way to have no copy at a time
    if (stays)
        as_page_append(&pager->kept, page);
    pthread_mutex_unlock(&pager->lock);
    if (!expected)
        give_up(pager, page->lane->device);
    return stays;
}

void as_keep_check(struct as_pager *pager)
{
    pthread_mutex_lock(&pager->lock);
    const bool over = pager->over;
    pager->over = false;
    pthread_mutex_unlock(&pager->lock);
    for (int device = 0; over && device < AS_LEDGER_DEVICES; device++)
        if (pager->courses[device])
            give_up(pager, device);
}

// --- Points (the lock is held)

static void note_left(struct as_pager *pager, struct actswap_page *page)
{
    const int device = page->lane->device;
    const struct as_swing swing = as_ledger_swing(pager->ledger, device, AS_SWING_COURSE);
    as_course_leave(pager->courses[device], &page->ticket, swing.peak_bytes);
    pager->over |= pager->kept.first && swing.peak_bytes > budget_of(pager);
}

static void note_came(struct as_pager *pager, struct actswap_page *page)
{
    const int device = page->lane->device;
    const struct as_swing swing = as_ledger_swing(pager->ledger, device, AS_SWING_COURSE);
    as_course_come(pager->courses[device], &page->ticket, swing.peak_bytes);
    page->came = pager->backward_count ? pager->backward_count : 1;
}

void as_keep_left(struct as_pager *pager, struct actswap_page *page)
{
    pthread_mutex_lock(&pager->lock);
    if (page->ticket.step)
        note_left(pager, page);
    pthread_mutex_unlock(&pager->lock);
}

bool as_keep_stays(struct as_pager *pager, struct actswap_page *page)
{
    pthread_mutex_lock(&pager->lock);
    const bool stays = page->kept;
    if (stays)
        note_left(pager, page);
    pthread_mutex_unlock(&pager->lock);
    return stays;
}

// One that stays is as if it came in with the first need of each backward.
void as_keep_needed(struct as_pager *pager, struct actswap_page *page)
{
    pthread_mutex_lock(&pager->lock);
    const bool comes = page->kept ? page->came != pager->backward_count : !page->ref;
    if (page->ticket.step && comes)
        note_came(pager, page);
    pthread_mutex_unlock(&pager->lock);
}

void as_keep_over(struct as_pager *pager, struct actswap_page *page)
{
    if (page->ticket.step && !page->came)
        note_came(pager, page);
}

// --- Steps

void as_keep_begin(struct as_pager *pager)
{
    for (int i = 0; i < AS_LEDGER_DEVICES && !pager->begun; i++)
        pager->first_levels[i] =
            as_ledger_swing(pager->ledger, i, AS_SWING_COURSE).live_bytes;
    pager->begun = true;
}

void as_keep_end_step(struct as_pager *pager)
{
    pthread_mutex_lock(&pager->lock);
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        if (!pager->courses[i])
            continue;
        const struct as_swing swing = as_ledger_swing(pager->ledger, i, AS_SWING_COURSE);
        const uint64_t stayed = as_course_end(pager->courses[i], swing.peak_bytes,
                                              swing.live_bytes, budget_of(pager));
        if (stayed > pager->totals.stayed_over_bytes)
            pager->totals.stayed_over_bytes = stayed;
    }
    pager->over = false;
    pthread_mutex_unlock(&pager->lock);
}
