// SPDX-License-Identifier: Apache-2.0
#include "pager/pager.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "core/clock.h"
#include "cuda/runtime.h"
#include "pager/admission.h"
#include "pager/frame.h"
#include "pager/keep.h"
#include "pager/lane.h"
#include "pager/spill.h"
#include "pager/state.h"
#include "track/place.h"

// As many as one layer's saves, or so: their copies have had time to go out meanwhile.
enum { OUTSIDE_PAGES = 8 };

enum { HOLLOW_BYTES = 1 << 20 };

// --- Life

struct as_pager *as_pager_create(const struct as_settings *settings,
                                 struct as_ledger *ledger)
{
    struct as_pager *pager = calloc(1, sizeof(*pager));
    if (!pager)
        return NULL;
    pthread_mutex_init(&pager->lock, NULL);
    pthread_cond_init(&pager->moved, NULL);
    pager->settings = settings;
    pager->ledger = ledger;
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) // before the first forward all is old
        pager->forward_generations[i] = UINT64_MAX;
    pager->hosted.use = pager->away.use = pager->kept.use = AS_PAGE_TIER;
    pager->slab = as_slab_create(settings);
    pager->disk = as_disk_create(settings);
    pager->jobs = as_jobs_create(pager);
    pager->streams = as_streams_create();
    pager->table = as_page_table_create();
    if (pager->slab && pager->disk && pager->jobs && pager->streams && pager->table)
        return pager;
    as_pager_destroy(pager);
    return NULL;
}

// The lanes are drained before anything that their copies use goes.
static void destroy_lanes(struct as_pager *pager)
{
    void *event;
    struct as_lane *any = NULL;
    for (int i = 0; i < AS_LEDGER_DEVICES; i++)
        any = pager->lanes[i] ? pager->lanes[i] : any;
    while (any && (event = as_slab_event(pager->slab)))
        as_lane_give(any, event);
    for (int i = 0; i < AS_LEDGER_DEVICES; i++)
        as_lane_destroy(pager->lanes[i]);
}

void as_pager_destroy(struct as_pager *pager)
{
    if (!pager)
        return;
    as_evict_finish(pager);
    as_jobs_destroy(pager->jobs);
    if (pager->slab)
        destroy_lanes(pager);
    as_slab_destroy(pager->slab);
    as_disk_destroy(pager->disk);
    as_streams_destroy(pager->streams);
    as_page_table_destroy(pager->table);
    for (int i = 0; i < AS_LEDGER_DEVICES; i++)
        as_course_destroy(pager->courses[i]);
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        as_order_finish(&pager->orders[i]);
        as_ahead_finish(&pager->aheads[i]);
        as_held_finish(&pager->helds[i]);
    }
    pthread_cond_destroy(&pager->moved);
    pthread_mutex_destroy(&pager->lock);
    free(pager);
}

void as_pager_forked(struct as_pager *pager)
{
    as_disk_forked(pager->disk);
}

void as_pager_attach(struct as_pager *pager, const struct actswap_verbs *verbs,
                     void *context)
{
    pthread_mutex_lock(&pager->lock);
    pager->verbs = verbs;
    pager->context = context;
    pthread_mutex_unlock(&pager->lock);
}

// --- Saving

// One save on its way.
struct request {
    const struct actswap_saved *saved;
    struct as_block block;
    struct as_frame *frame; // of this thread, or NULL
    const struct actswap_verbs *verbs;
    void *context;
    struct as_page_key key;
};

static struct as_page_list *list_of(struct as_pager *pager, struct request *request)
{
    return request->frame ? &request->frame->pages : &pager->outside;
}

static bool keeps(const struct request *request)
{
    return request->frame && request->frame->verdict == ACTSWAP_KEEP;
}

// The storage of a page that was let go is alive after all: somebody else held it, and
// the new save brings a reference to it.
static void adopt(struct as_pager *pager, struct actswap_page *page,
                  struct request *request)
{
    page->ref = request->saved->ref;
    page->address = request->saved->address;
    page->owner = request->block.stream;
    page->restored = false;
    page->since = as_streams_now(pager->streams);
    page->generation = page->block = request->block.generation;
    if (!page->stays)
        as_page_append(list_of(pager, request), page);
}

// Joins the page that the storage has already. False: it has none.
static bool join(struct as_pager *pager, struct request *request,
                 struct actswap_page **out)
{
    bool extra = false;
    pthread_mutex_lock(&pager->lock);
    struct actswap_page *page = as_page_table_find(pager->table, &request->key);
    if (page) {
        page->users++;
        if (keeps(request)) {
            page->stays = true;
            as_page_unlink(page, AS_PAGE_WAITS);
        }
        extra = page->ref || page->arriving;
        if (!extra)
            adopt(pager, page, request);
    }
    pthread_mutex_unlock(&pager->lock);
    if (extra)
        request->verbs->release(request->context, request->saved->ref);
    *out = page;
    return page;
}

// The lane of a device, made when it is first asked for; of two threads' the first stays.
static struct as_lane *lane_of(struct as_pager *pager, int device)
{
    pthread_mutex_lock(&pager->lock);
    struct as_lane *lane = pager->lanes[device];
    pthread_mutex_unlock(&pager->lock);
    if (lane)
        return lane;
    struct as_before before;
    int err = as_device_enter(device, &before);
    struct as_lane *fresh = err ? NULL : as_lane_create(device);
    as_device_leave(&before);
    if (!fresh)
        return NULL;
    pthread_mutex_lock(&pager->lock);
    if (!pager->lanes[device]) {
        pager->lanes[device] = fresh;
        fresh = NULL;
    }
    lane = pager->lanes[device];
    pthread_mutex_unlock(&pager->lock);
    as_lane_destroy(fresh);
    return lane;
}

// Of small ones even a placeholder is kept.
static bool is_hollow(const struct actswap_saved *saved)
{
    return saved->bytes >= HOLLOW_BYTES && as_cuda_skips_bytes() &&
           !as_cuda_computed(saved->address, saved->bytes);
}

static struct actswap_page *new_page(struct as_pager *pager, struct request *request,
                                     struct as_lane *lane)
{
    struct actswap_page *page = calloc(1, sizeof(*page));
    if (!page)
        return NULL;
    page->key = request->key;
    page->bytes = request->saved->bytes;
    page->verbs = request->verbs;
    page->context = request->context;
    page->lane = lane;
    page->place = as_place_now();
    page->stack = request->saved->stack;
    page->saved_ns = as_clock_ns();
    page->hollow = is_hollow(request->saved);
    page->producer = request->saved->stream;
    page->users = 1;
    page->stays = true; // until its copy out is queued
    page->ref = request->saved->ref;
    page->address = request->saved->address;
    page->owner = request->block.stream;
    page->since = as_streams_now(pager->streams);
    page->generation = page->block = request->block.generation;
    return page;
}

enum actswap_reason as_pager_copy_out(struct as_pager *pager, struct actswap_page *page)
{
    if (as_slab_take(pager->slab, page->bytes, &page->buffer) &&
        as_spill_take(pager, page->bytes, &page->buffer))
        return pager->settings->disk ? ACTSWAP_KEPT_DISK : ACTSWAP_KEPT_HOST_FULL;
    return as_move_out(page, page->producer) ? ACTSWAP_KEPT_DEVICE : ACTSWAP_KEPT_NOT;
}

bool as_pager_lost_memory(struct as_pager *pager, const struct actswap_page *page)
{
    struct as_block block;
    return page->block &&
           !(as_ledger_find(pager->ledger, page->lane->device, page->address, &block) &&
             block.generation == page->block);
}

// The stream that it was saved on may have ended since, or may be captured now.
static enum actswap_reason obstacle_to(struct as_pager *pager,
                                       const struct actswap_page *page)
{
    if (as_pager_lost_memory(pager, page))
        return ACTSWAP_KEPT_UNKNOWN;
    if (!as_streams_lives(pager->streams, page->lane->device, page->producer, page->ends))
        return ACTSWAP_KEPT_DEVICE;
    return as_stream_captured(page->producer) ? ACTSWAP_KEPT_CAPTURE : ACTSWAP_KEPT_NOT;
}

enum actswap_reason as_pager_copy_late(struct as_pager *pager, struct actswap_page *page)
{
    enum actswap_reason reason = obstacle_to(pager, page);
    if (!reason)
        reason = as_pager_copy_out(pager, page);
    if (!reason)
        return ACTSWAP_KEPT_NOT;
    as_move_forget(pager, page);
    as_pager_count_kept(pager, reason, page->bytes);
    return reason;
}

void as_pager_went_out(struct as_pager *pager, struct actswap_page *page)
{
    pager->totals.out_bytes += page->bytes;
    as_page_append(&pager->hosted, page);
}

// The copy is queued, or the page stays as long as the budget allows: it may be let go
// from now on.
static void open_page(struct as_pager *pager, struct actswap_page *page,
                      struct request *request)
{
    pthread_mutex_lock(&pager->lock);
    pager->totals.pages_made++;
    page->stays = keeps(request);
    if (page->buffer.host)
        as_pager_went_out(pager, page);
    if (!page->needs && !page->stays)
        as_page_append(list_of(pager, request), page);
    pthread_mutex_unlock(&pager->lock);
}

// Nobody finds the page any more. The lock is held.
static void forget(struct as_pager *pager, struct actswap_page *page)
{
    as_page_table_remove(pager->table, page);
    if (page->step == pager->step)
        as_order_over(&pager->orders[page->lane->device], page->number);
    if (page->early)
        pager->aheads[page->lane->device].bytes -= page->bytes;
    page->early = false;
}

// The copy failed: the page goes, unless other saves joined it meanwhile; then it stays on
// the device for good. True: it is gone, and the reference is the framework's again.
static bool close_page(struct as_pager *pager, struct actswap_page *page)
{
    as_move_forget(pager, page);
    pthread_mutex_lock(&pager->lock);
    bool gone = page->users == 1;
    if (gone)
        forget(pager, page);
    pthread_mutex_unlock(&pager->lock);
    if (gone)
        free(page);
    return gone;
}

// Others may join the page from the moment that it is in the table.
static enum actswap_reason make_page(struct as_pager *pager, struct request *request,
                                     struct actswap_page **out)
{
    struct as_lane *lane = lane_of(pager, request->saved->device);
    if (!lane)
        return ACTSWAP_KEPT_DEVICE;
    struct actswap_page *page = new_page(pager, request, lane);
    if (!page)
        return ACTSWAP_KEPT_HOST_FULL;
    pthread_mutex_lock(&pager->lock);
    int err = as_page_table_add(pager->table, page);
    page->step = pager->step;
    page->number = err ? 0 : as_order_add(&pager->orders[lane->device], page);
    page->uncopied = !err && as_held_add(&pager->helds[lane->device], page->number,
                                         page->bytes, page->place);
    pthread_mutex_unlock(&pager->lock);
    if (err) {
        free(page);
        return err == -EEXIST && join(pager, request, out) ? ACTSWAP_KEPT_NOT
                                                           : ACTSWAP_KEPT_HOST_FULL;
    }
    *out = page;
    const bool named = !as_streams_see(pager->streams, lane->device, page->producer);
    page->ends = as_streams_ends(pager->streams);
    if (named && as_keep_ask(pager, page, request->block.bytes)) {
        open_page(pager, page, request);
        return ACTSWAP_KEPT_BUDGET;
    }
    if (named && page->uncopied) {
        open_page(pager, page, request);
        return ACTSWAP_KEPT_NOT;
    }
    enum actswap_reason reason = as_pager_copy_out(pager, page);
    if (!reason)
        open_page(pager, page, request);
    else if (close_page(pager, page))
        *out = NULL;
    return reason;
}

void as_pager_count_kept(struct as_pager *pager, enum actswap_reason reason, size_t bytes)
{
    pthread_mutex_lock(&pager->lock);
    pager->totals.kept[reason]++;
    pager->totals.kept_bytes[reason] += bytes;
    pthread_mutex_unlock(&pager->lock);
}

// Whoever held a storage may have let go of it meanwhile.
static void retry_shared(struct as_pager *pager)
{
    pthread_mutex_lock(&pager->lock);
    bool any = pager->shared.first && !pager->backwards;
    pthread_mutex_unlock(&pager->lock);
    if (any)
        as_evict(pager, &pager->shared);
}

// A model without repeated blocks has no exit at which to let go, so some saves after a
// page was made outside of blocks it goes. Those that the running code still holds are
// shared until it does not.
static void let_go_outside(struct as_pager *pager)
{
    pthread_mutex_lock(&pager->lock);
    bool due = ++pager->outside_made % OUTSIDE_PAGES == 0 && !pager->backwards;
    pthread_mutex_unlock(&pager->lock);
    if (!due)
        return;
    as_evict(pager, &pager->outside);
    retry_shared(pager);
}

// `off` wants to know what holds the memory, too.
static void name_by_use(struct as_pager *pager, const struct actswap_saved *saved,
                        enum actswap_reason reason)
{
    enum actswap_category category = saved->category;
    if (!category && reason == ACTSWAP_KEPT_OLD)
        category = ACTSWAP_INPUT;
    else if (!category && reason != ACTSWAP_KEPT_DETACHED)
        category = ACTSWAP_ACTIVATION;
    if (category && reason != ACTSWAP_KEPT_UNKNOWN)
        as_ledger_save(pager->ledger, saved->device, saved->address, category,
                       saved->stack);
}

static enum actswap_reason admit(struct as_pager *pager, struct request *request,
                                 struct as_admission *admission,
                                 struct actswap_page **out)
{
    enum actswap_reason reason = as_admission_allowed(admission);
    name_by_use(pager, request->saved, reason);
    if (reason || join(pager, request, out))
        return reason;
    reason = as_admission_worth(admission);
    if (!reason)
        reason = make_page(pager, request, out);
    if (*out && !request->frame)
        let_go_outside(pager);
    return reason;
}

// The answer never changes, so that two threads may both ask.
static bool is_coherent(struct as_pager *pager, int device)
{
    if (pager->settings->policy == AS_POLICY_OFF)
        return false;
    pthread_mutex_lock(&pager->lock);
    int memory = pager->memories[device];
    pthread_mutex_unlock(&pager->lock);
    if (memory != AS_NOT_ASKED)
        return memory == AS_COHERENT;
    const bool coherent = as_cuda_shares_memory(device);
    pthread_mutex_lock(&pager->lock);
    pager->memories[device] = coherent ? AS_COHERENT : AS_APART;
    pthread_mutex_unlock(&pager->lock);
    return coherent;
}

static bool is_sound(const struct actswap_saved *saved)
{
    return saved->size >= sizeof(*saved) && saved->device >= 0 &&
           saved->device < AS_LEDGER_DEVICES && saved->ref;
}

int as_pager_save(struct as_pager *pager, const struct actswap_saved *saved,
                  struct actswap_page **page)
{
    *page = NULL;
    if (!is_sound(saved))
        return -EINVAL;
    struct request request = {.saved = saved, .frame = as_frame_innermost(pager)};
    bool known =
        as_ledger_find(pager->ledger, saved->device, saved->address, &request.block);
    struct as_admission admission = {
        .saved = saved,
        .settings = pager->settings,
        .block = known ? &request.block : NULL,
        .verdict = request.frame ? request.frame->verdict : ACTSWAP_OFFLOAD,
    };
    request.key = (struct as_page_key){
        .address = saved->address,
        .generation = request.block.generation,
        .version = saved->version,
        .device = saved->device,
    };
    const struct as_frame *outermost = as_frame_outermost(pager);
    admission.coherent = is_coherent(pager, saved->device);
    admission.block_generation = outermost ? outermost->generations[saved->device] : 0;
    pthread_mutex_lock(&pager->lock);
    request.verbs = pager->verbs;
    request.context = pager->context;
    admission.attached = pager->verbs;
    admission.backward = pager->backwards;
    admission.forward_generation = pager->forward_generations[saved->device];
    pthread_mutex_unlock(&pager->lock);

    enum actswap_reason reason = admit(pager, &request, &admission, page);
    if (reason)
        as_pager_count_kept(pager, reason, saved->bytes);
    return *page ? 0 : (int)reason;
}

// --- Dropping

void as_pager_drop(struct as_pager *pager, struct actswap_page *page)
{
    if (!page)
        return;
    pthread_mutex_lock(&pager->lock);
    assert(page->users);
    if (page->users == 1)
        as_keep_over(pager, page);
    page->holds++;
    if (--page->users == 0) {
        forget(pager, page);
        as_page_unlink(page, AS_PAGE_WAITS);
    }
    pthread_mutex_unlock(&pager->lock);
    as_evict_unhold(pager, page);
}

// --- Blocks and marks

static void leave_block(struct as_pager *pager, uint64_t block)
{
    if (!as_frame_inside(pager, block))
        return;
    struct as_frame *frame;
    bool last;
    retry_shared(pager);
    do {
        frame = as_frame_pop(pager);
        last = frame->block == block;
        if (!as_frame_innermost(pager))
            as_evict(pager, &pager->outside);
        as_evict(pager, &frame->pages);
        free(frame);
    } while (!last);
}

void as_pager_block(struct as_pager *pager, enum actswap_edge edge, uint64_t block,
                    enum actswap_verdict verdict, void *stream)
{
    (void)stream;
    if (edge == ACTSWAP_EXIT) {
        leave_block(pager, block);
        return;
    }
    retry_shared(pager);
    if (as_frame_push(pager, block, verdict) || !pager->settings->offload_boundary)
        return;
    struct as_frame *frame = as_frame_innermost(pager);
    for (int i = 0; i < AS_LEDGER_DEVICES; i++)
        frame->generations[i] = as_ledger_now(pager->ledger, i);
}

void as_pager_stream_made(struct as_pager *pager, int device, void *stream)
{
    if (pager->settings->policy != AS_POLICY_OFF)
        as_streams_made(pager->streams, device, stream);
}

void as_pager_stream_ending(struct as_pager *pager, void *stream)
{
    if (pager->settings->policy != AS_POLICY_OFF)
        as_streams_ending(pager->streams, stream);
}

void as_pager_totals(struct as_pager *pager, struct as_pager_totals *totals)
{
    struct as_slab_totals slab;
    as_slab_totals(pager->slab, &slab);
    struct as_disk_totals disk;
    as_disk_totals(pager->disk, &disk);
    pthread_mutex_lock(&pager->lock);
    *totals = pager->totals;
    totals->pages = as_page_table_count(pager->table);
    pthread_mutex_unlock(&pager->lock);
    totals->disk = disk;
    as_cuda_refused(totals->refused);
    totals->pinned_bytes = slab.bytes;
    totals->pinned_peak_bytes = slab.peak_bytes;
    totals->pinned_cap_bytes = slab.cap_bytes;
}
