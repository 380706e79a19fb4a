// SPDX-License-Identifier: Apache-2.0
#include "pager/pager.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "core/clock.h"
#include "cuda/runtime.h"
#include "pager/admission.h"
#include "pager/frame.h"
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
    pager->hosted.use = pager->away.use = AS_PAGE_TIER;
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

static void count_kept(struct as_pager *pager, enum actswap_reason reason, size_t bytes)
{
    pthread_mutex_lock(&pager->lock);
    pager->totals.kept[reason]++;
    pager->totals.kept_bytes[reason] += bytes;
    pthread_mutex_unlock(&pager->lock);
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
    page->users = 1;
    page->stays = true; // until its copy out is queued
    page->ref = request->saved->ref;
    page->address = request->saved->address;
    page->owner = request->block.stream;
    page->since = as_streams_now(pager->streams);
    page->generation = page->block = request->block.generation;
    return page;
}

static enum actswap_reason copy_out(struct as_pager *pager, struct actswap_page *page,
                                    void *producer)
{
    if (as_streams_see(pager->streams, page->lane->device, producer))
        return ACTSWAP_KEPT_DEVICE;
    if (as_slab_take(pager->slab, page->bytes, &page->buffer) &&
        as_spill_take(pager, page->bytes, &page->buffer))
        return pager->settings->disk ? ACTSWAP_KEPT_DISK : ACTSWAP_KEPT_HOST_FULL;
    return as_move_out(page, producer) ? ACTSWAP_KEPT_DEVICE : ACTSWAP_KEPT_NOT;
}

// The copy is queued: the page may be let go from now on.
static void open_page(struct as_pager *pager, struct actswap_page *page,
                      struct request *request)
{
    pthread_mutex_lock(&pager->lock);
    pager->totals.out_bytes += page->bytes;
    pager->totals.pages_made++;
    page->stays = keeps(request);
    as_page_append(&pager->hosted, page);
    if (!page->needs && !page->stays)
        as_page_append(list_of(pager, request), page);
    pthread_mutex_unlock(&pager->lock);
}

// The copy failed: the page goes, unless other saves joined it meanwhile; then it stays on
// the device for good. True: it is gone, and the reference is the framework's again.
static bool close_page(struct as_pager *pager, struct actswap_page *page)
{
    as_move_forget(pager, page);
    pthread_mutex_lock(&pager->lock);
    bool gone = page->users == 1;
    if (gone)
        as_page_table_remove(pager->table, page);
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
    pthread_mutex_unlock(&pager->lock);
    if (err) {
        free(page);
        return err == -EEXIST && join(pager, request, out) ? ACTSWAP_KEPT_NOT
                                                           : ACTSWAP_KEPT_HOST_FULL;
    }
    *out = page;
    enum actswap_reason reason = copy_out(pager, page, request->saved->stream);
    if (!reason)
        open_page(pager, page, request);
    else if (close_page(pager, page))
        *out = NULL;
    return reason;
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
    if (!reason && !request->frame)
        let_go_outside(pager);
    return reason;
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
        count_kept(pager, reason, saved->bytes);
    return *page ? 0 : (int)reason;
}

// --- Dropping

void as_pager_drop(struct as_pager *pager, struct actswap_page *page)
{
    if (!page)
        return;
    pthread_mutex_lock(&pager->lock);
    assert(page->users);
    page->holds++;
    if (--page->users == 0) {
        as_page_table_remove(pager->table, page);
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

static void count_elsewhere(struct as_pager *pager, struct actswap_page *page)
{
    pager->totals.held_elsewhere += !page->elsewhere;
    page->elsewhere = true;
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
    for (struct actswap_page *page = pager->shared.first; page;
         page = page->nodes[AS_PAGE_WAITS].next)
        count_elsewhere(pager, page);
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
        give_back_spare(pager);
        break;
    case ACTSWAP_AGAIN:
    case ACTSWAP_AGAIN_END:
        break;
    }
    as_evict_finish(pager);
}

void as_pager_stream_made(struct as_pager *pager, int device, void *stream)
{
    if (pager->settings->policy == AS_POLICY_OFFLOAD)
        as_streams_made(pager->streams, device, stream);
}

void as_pager_stream_ending(struct as_pager *pager, void *stream)
{
    if (pager->settings->policy == AS_POLICY_OFFLOAD)
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
    totals->pinned_bytes = slab.bytes;
    totals->pinned_peak_bytes = slab.peak_bytes;
    totals->pinned_cap_bytes = slab.cap_bytes;
}
