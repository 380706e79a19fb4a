// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdlib.h>

#include "cuda/runtime.h"
#include "pager/edges.h"
#include "pager/keep.h"
#include "pager/lane.h"
#include "pager/state.h"
#include "track/ledger.h"

// As many as the ledger remembers: when there are so many, some may be missing.
enum { READERS_MAX = 32 };

// Whose readers were waited for last: the pages of a block mostly share an owner, and a
// page that became ours later has no reader that an earlier one does not have.
struct batch {
    const struct as_lane *lane; // NULL: none yet
    const void *owner;
    uint64_t since, generation;
};

static bool covers(const struct batch *batch, const struct actswap_page *page)
{
    return batch->lane == page->lane && batch->owner == page->owner &&
           batch->since <= page->since && batch->generation <= page->generation;
}

static int wait_for(struct actswap_page *page, void *stream)
{
    if (stream == page->owner)
        return 0;
    return as_stream_captured(stream) || as_edge_readers(page->lane, page->owner, stream);
}

// Of a stream that has nothing in flight nothing is to be waited for.
static int wait_for_rest(void *stream, void *context)
{
    struct actswap_page *page = context;
    if (stream == page->owner)
        return 0;
    int err = as_stream_captured(stream) ? -1 : as_cuda_stream_query(stream);
    return err == AS_CUDA_NOT_READY ? as_edge_readers(page->lane, page->owner, stream)
                                    : err;
}

static int wait_for_end(void *event, void *context)
{
    const struct actswap_page *page = context;
    return as_edge_reuse(page->owner, event);
}

// Streams that the runtime did not make before our eyes, but that something was allocated
// on while the memory was in use.
static int wait_for_strangers(struct as_pager *pager, struct actswap_page *page)
{
    void *streams[READERS_MAX];
    int device = page->lane->device, err = 0;
    size_t count =
        as_ledger_streams(pager->ledger, device, page->generation, streams, READERS_MAX);
    if (count >= READERS_MAX)
        return -1;
    for (size_t i = 0; i < count && !err; i++)
        if (!as_streams_knows(pager->streams, device, streams[i]))
            err = wait_for(page, streams[i]);
    return err;
}

// What is let go early may be read by work on any stream, also one that nobody named.
static int wait_for_all(struct as_pager *pager, struct actswap_page *page)
{
    const struct as_streams_visitor visitor = {wait_for_rest, wait_for_end, page};
    int err = wait_for_strangers(pager, page);
    return err ? err
               : as_streams_visit(pager->streams, page->lane->device, page->since,
                                  &visitor);
}

// At a page's end: consumers of ours, on streams that were named.
static int wait_for_consumers(struct as_pager *pager, struct actswap_page *page)
{
    void *streams[READERS_MAX];
    size_t count = as_streams_since(pager->streams, page->lane->device, page->since,
                                    streams, READERS_MAX);
    int err = count >= READERS_MAX ? -1 : 0;
    for (size_t i = 0; i < count && !err; i++)
        err = wait_for(page, streams[i]);
    return err;
}

// A copy that came back arrived on its owner after it had gone out, unless it came ahead of
// a need that its owner never had.
static int wait_for_copy(struct actswap_page *page)
{
    if (page->restored)
        return page->unawaited ? as_edge_reuse(page->owner, page->arrived) : 0;
    return as_edge_reuse(page->owner, page->copied);
}

static int order_let_go(struct as_pager *pager, struct actswap_page *page,
                        struct batch *batch)
{
    if (!covers(batch, page)) {
        int err = as_stream_captured(page->owner) || wait_for_all(pager, page);
        if (err)
            return err;
        *batch = (struct batch){page->lane, page->owner, page->since, page->generation};
    }
    return wait_for_copy(page);
}

// Passes the device copy on to the framework. Its allocator may report the free to us
// before this returns.
static void release(struct as_pager *pager, struct actswap_page *page, void *ref,
                    const void *address)
{
    struct as_block block;
    int device = page->lane->device;
    if (as_ledger_find(pager->ledger, device, address, &block))
        as_ledger_expect_free(pager->ledger, device, block.address, block.generation);
    page->verbs->release(page->context, ref);
}

// Takes the device copy away from the page, unless it was needed or kept meanwhile.
static void *take_ref(struct as_pager *pager, struct actswap_page *page, unsigned needs,
                      void **address)
{
    pthread_mutex_lock(&pager->lock);
    void *ref = NULL;
    if (page->needs == needs && !page->stays && !page->uncopied) {
        ref = page->ref;
        *address = page->address;
        page->ref = page->address = NULL;
        page->unawaited = false;
        if (page->early)
            pager->aheads[page->lane->device].bytes -= page->bytes;
        page->early = false;
        pager->totals.let_go += ref != NULL;
    }
    pthread_mutex_unlock(&pager->lock);
    return ref;
}

// What others were expected to hold, and do not, goes out as if it had been saved just now.
// False: it cannot, or another thread is at it.
static bool copy_first(struct as_pager *pager, struct actswap_page *page)
{
    pthread_mutex_lock(&pager->lock);
    const bool copied = !page->uncopied, mine = !copied && !page->leaving;
    page->leaving |= mine;
    pthread_mutex_unlock(&pager->lock);
    if (!mine)
        return copied;
    const enum actswap_reason reason = as_pager_copy_late(pager, page);
    pthread_mutex_lock(&pager->lock);
    page->leaving = false;
    page->uncopied = reason;
    if (!reason)
        as_pager_went_out(pager, page);
    pthread_mutex_unlock(&pager->lock);
    return !reason;
}

static bool lost_memory(struct as_pager *pager, const struct actswap_page *page)
{
    if (!as_pager_lost_memory(pager, page))
        return false;
    pthread_mutex_lock(&pager->lock);
    if (page->step == pager->step)
        as_held_found(&pager->helds[page->lane->device], page->number);
    pthread_mutex_unlock(&pager->lock);
    return true;
}

// Returns the bytes that went.
static size_t let_go(struct as_pager *pager, struct actswap_page *page, unsigned needs,
                     struct batch *batch)
{
    if (lost_memory(pager, page) || !copy_first(pager, page))
        return 0;
    struct as_before before;
    int err = as_device_enter(page->lane->device, &before);
    if (!err)
        err = order_let_go(pager, page, batch);
    as_device_leave(&before);
    if (err)
        return 0; // it stays until its last drop
    void *address = NULL;
    void *ref = take_ref(pager, page, needs, &address);
    if (!ref)
        return 0;
    release(pager, page, ref, address);
    as_keep_left(pager, page);
    return page->bytes;
}

// Verbs may drop pages of the same list, so that it is read anew for each.
static struct actswap_page *hold_first(struct as_pager *pager, struct as_page_list *list,
                                       unsigned *needs)
{
    pthread_mutex_lock(&pager->lock);
    struct actswap_page *page = list->first;
    if (page) {
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a page that ended is in no list
        as_page_unlink(page, AS_PAGE_WAITS);
        page->holds++;
        *needs = page->needs;
    }
    pthread_mutex_unlock(&pager->lock);
    return page;
}

// Whether a holder of the storage is left that is not us.
static bool is_shared(const struct actswap_page *page)
{
    const struct actswap_verbs *verbs = page->verbs;
    bool can_say =
        verbs->size >= offsetof(struct actswap_verbs, holders) + sizeof(verbs->holders) &&
        verbs->holders;
    return can_say && page->ref && verbs->holders(page->context, page->ref);
}

// Puts a page into a list, unless it was needed, kept or dropped meanwhile.
static void put(struct as_pager *pager, struct as_page_list *list,
                struct actswap_page *page, unsigned needs)
{
    pthread_mutex_lock(&pager->lock);
    if (page->users && page->needs == needs && !page->stays &&
        !page->nodes[AS_PAGE_WAITS].list)
        as_page_append(list, page);
    pthread_mutex_unlock(&pager->lock);
    as_evict_unhold(pager, page);
}

static void move_all(struct as_pager *pager, struct as_page_list *from,
                     struct as_page_list *to)
{
    pthread_mutex_lock(&pager->lock);
    while (from->first) {
        struct actswap_page *page = from->first;
        as_page_unlink(page, AS_PAGE_WAITS);
        as_page_append(to, page);
    }
    pthread_mutex_unlock(&pager->lock);
}

static void note_left(struct as_pager *pager, const uint64_t bytes[], bool block)
{
    pthread_mutex_lock(&pager->lock);
    for (int i = 0; i < AS_LEDGER_DEVICES; i++)
        as_ahead_left(&pager->aheads[i], bytes[i], block);
    pthread_mutex_unlock(&pager->lock);
}

// All pages are looked at before the first stream is waited for: what nobody else holds by
// then gets no new reader.
void as_evict(struct as_pager *pager, struct as_page_list *list)
{
    struct as_page_list all = {0}, alone = {0};
    struct batch batch = {0};
    struct actswap_page *page;
    unsigned needs;
    move_all(pager, list, &all);
    while ((page = hold_first(pager, &all, &needs))) {
        const bool shared = is_shared(page);
        if (!shared && as_keep_stays(pager, page))
            as_evict_unhold(pager, page);
        else
            put(pager, shared ? &pager->shared : &alone, page, needs);
    }
    const bool block =
        list != &pager->outside && list != &pager->shared && list != &pager->back;
    uint64_t bytes[AS_LEDGER_DEVICES] = {0};
    while ((page = hold_first(pager, &alone, &needs))) {
        bytes[page->lane->device] += let_go(pager, page, needs, &batch);
        as_evict_unhold(pager, page);
    }
    note_left(pager, bytes, block);
    as_keep_check(pager);
}

// What the device would not order, the host waits for.
static void wait_on_host(struct as_pager *pager, struct actswap_page *page)
{
    void *streams[READERS_MAX];
    size_t count = as_streams_since(pager->streams, page->lane->device, page->since,
                                    streams, READERS_MAX);
    as_cuda_stream_synchronize(page->lane->out);
    for (size_t i = 0; i < count && i < READERS_MAX; i++)
        if (!as_stream_captured(streams[i])) // asking it to end would end the capture
            as_cuda_stream_synchronize(streams[i]);
}

// The framework frees the memory now as it would have without us, except that copies of
// ours and consumers on other streams than the new owner's are unknown to it.
static void order_end(struct as_pager *pager, struct actswap_page *page)
{
    struct as_before before;
    int err = as_device_enter(page->lane->device, &before);
    if (!err)
        err = wait_for_copy(page);
    if (!err && page->restored)
        err = wait_for_consumers(pager, page);
    if (err)
        wait_on_host(pager, page);
    as_device_leave(&before);
}

// Whether a stream that used the page, beside its owner, is there, or one that is captured.
static bool has_consumer(struct as_pager *pager, const struct actswap_page *page,
                         bool captured)
{
    void *streams[READERS_MAX];
    size_t count = as_streams_since(pager->streams, page->lane->device, page->since,
                                    streams, READERS_MAX);
    bool found = count >= READERS_MAX && !captured;
    for (size_t i = 0; i < count && i < READERS_MAX && !found; i++)
        found =
            streams[i] != page->owner && (!captured || as_stream_captured(streams[i]));
    return found;
}

static bool needs_order(struct as_pager *pager, const struct actswap_page *page)
{
    return page->ref && page->copied &&
           (!page->restored || page->unawaited || has_consumer(pager, page, false));
}

// A captured stream may wait for nothing outside of its capture, nor be waited for.
static bool put_off(struct as_pager *pager, struct actswap_page *page)
{
    bool now = !as_stream_captured(page->owner) &&
               !(page->restored && has_consumer(pager, page, true));
    if (now)
        return false;
    pthread_mutex_lock(&pager->lock);
    as_page_append(&pager->put_off, page);
    pthread_mutex_unlock(&pager->lock);
    return true;
}

static void end_page(struct as_pager *pager, struct actswap_page *page)
{
    if (needs_order(pager, page)) {
        if (put_off(pager, page))
            return;
        order_end(pager, page);
    }
    if (page->ref)
        page->verbs->release(page->context, page->ref);
    as_move_forget(pager, page);
    free(page);
}

static struct actswap_page *take_first(struct as_pager *pager, struct as_page_list *list)
{
    pthread_mutex_lock(&pager->lock);
    struct actswap_page *page = list->first;
    if (page)
        as_page_unlink(page, AS_PAGE_WAITS);
    pthread_mutex_unlock(&pager->lock);
    return page;
}

void as_evict_finish(struct as_pager *pager)
{
    // Each once: one that is put off again is behind the last of now.
    pthread_mutex_lock(&pager->lock);
    size_t count = 0;
    for (struct actswap_page *page = pager->put_off.first; page;
         page = page->nodes[AS_PAGE_WAITS].next)
        count++;
    pthread_mutex_unlock(&pager->lock);
    while (count--) {
        struct actswap_page *page = take_first(pager, &pager->put_off);
        if (page)
            end_page(pager, page);
    }
}

void as_evict_unhold(struct as_pager *pager, struct actswap_page *page)
{
    pthread_mutex_lock(&pager->lock);
    bool over = --page->holds == 0 && page->users == 0;
    pthread_mutex_unlock(&pager->lock);
    if (over)
        end_page(pager, page);
}
