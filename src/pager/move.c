// SPDX-License-Identifier: Apache-2.0
#include "cuda/runtime.h"
#include "pager/edges.h"
#include "pager/lane.h"
#include "pager/spill.h"
#include "pager/state.h"

// Waits until a failed move left nothing behind, so that its memory can go elsewhere.
static int drained(void *stream, int err)
{
    if (err)
        as_cuda_stream_synchronize(stream);
    return err;
}

static int queue_out(struct actswap_page *page, void *producer)
{
    struct as_lane *lane = page->lane;
    int err = as_lane_take(lane, &page->copied);
    if (!err)
        err = as_edge_produced(lane, producer);
    if (!err)
        err = as_edge_host_reuse(lane, page->buffer.event);
    if (!err)
        err = as_cuda_copy_out(page->buffer.host, page->address, page->bytes, lane->out);
    if (!err)
        err = as_cuda_event_record(page->copied, lane->out);
    return drained(lane->out, err);
}

int as_move_out(struct actswap_page *page, void *producer)
{
    struct as_before before;
    int err = as_device_enter(page->lane->device, &before);
    if (!err)
        err = queue_out(page, producer);
    as_device_leave(&before);
    return err;
}

static int queue_in(struct actswap_page *page, const void *host, void *address,
                    void *stream, bool await)
{
    struct as_lane *lane = page->lane;
    int err = page->arrived ? 0 : as_lane_take(lane, &page->arrived);
    if (!err)
        err = as_edge_allocated(lane, stream);
    if (!err)
        err = page->copied ? as_edge_filled(lane, page->copied) : 0;
    if (!err)
        err = as_cuda_copy_in(address, host, page->bytes, lane->in);
    if (!err)
        err = as_cuda_event_record(page->arrived, lane->in);
    if (!err && await)
        err = as_edge_arrived(stream, page->arrived);
    return drained(lane->in, err);
}

static int wait_for_stream(struct as_lane *lane, void *stream)
{
    void *event;
    if (as_cuda_stream_synchronize(stream) == 0)
        return 0;
    int err = as_lane_take(lane, &event);
    if (err)
        return err;
    err = as_cuda_event_record(event, stream);
    if (!err)
        err = as_cuda_event_synchronize(event);
    as_lane_give(lane, event);
    return err;
}

// The device refused a call of ours, and the tensor is nowhere else: the host waits for all
// that the copy has to come behind, and for the copy.
static int copy_by_host(struct actswap_page *page, const void *host, void *address,
                        void *stream)
{
    struct as_lane *lane = page->lane;
    int err = as_stream_captured(stream) ? -1 : wait_for_stream(lane, stream);
    if (!err && page->copied)
        err = as_cuda_event_synchronize(page->copied) && wait_for_stream(lane, lane->out);
    if (!err)
        err = as_cuda_copy_now(address, host, page->bytes);
    if (err)
        return err;
    as_lane_give(lane, page->arrived);
    page->arrived = NULL;
    return 0;
}

int as_move_by_host(struct actswap_page *page, const void *loose, void *address,
                    void *stream)
{
    struct as_before before;
    as_guard_enter(&before);
    const int err =
        copy_by_host(page, loose ? loose : page->buffer.host, address, stream);
    as_guard_leave(&before);
    return err;
}

// What is not pinned is the caller's to free at once.
int as_move_in(struct actswap_page *page, const void *loose, void *address, void *stream,
               bool await)
{
    struct as_before before;
    const void *host = loose ? loose : page->buffer.host;
    int err = as_device_enter(page->lane->device, &before);
    if (!err)
        err = queue_in(page, host, address, stream, await);
    if (!err && loose)
        err = as_cuda_stream_synchronize(page->lane->in);
    as_device_leave(&before);
    return err;
}

// A copy in is ordered after the copy out, so that its event speaks for both. The lock is
// held: until the page is in no list, its buffer may become another one's.
static struct as_buffer detach(struct as_pager *pager, struct actswap_page *page)
{
    as_page_unlink(page, AS_PAGE_TIER);
    struct as_buffer buffer = page->buffer;
    void *last = page->arrived ? page->arrived : page->copied;
    void *other = page->arrived ? page->copied : NULL;
    as_lane_give(page->lane, other);
    page->copied = page->arrived = NULL;
    page->buffer.host = NULL;
    if (buffer.host) {
        // The out lane waited for the event of the buffer's last user when this page took
        // it.
        as_lane_give(pager->lanes[buffer.device], buffer.event);
        buffer.event = last;
        buffer.device = page->lane->device;
    } else {
        as_lane_give(page->lane, last);
    }
    return buffer;
}

void as_move_forget(struct as_pager *pager, struct actswap_page *page)
{
    pthread_mutex_lock(&pager->lock);
    struct as_buffer buffer = detach(pager, page);
    const bool freed = as_spill_forget(pager, page, &buffer);
    pthread_mutex_unlock(&pager->lock);
    if (freed)
        as_spill_ahead(pager);
}

void as_move_unpin(struct as_pager *pager, const struct as_buffer *buffer)
{
    struct as_before before;
    as_guard_enter(&before);
    if (buffer->event)
        as_cuda_event_synchronize(buffer->event);
    as_lane_give(pager->lanes[buffer->device], buffer->event);
    as_cuda_host_free(buffer->host);
    as_guard_leave(&before);
}
