// SPDX-License-Identifier: Apache-2.0
#include "pager/edges.h"

#include "cuda/runtime.h"
#include "pager/lane.h"

// The event is used between record and wait only; a wait keeps what it saw.
static int order(struct as_lane *lane, void *later, void *earlier)
{
    if (later == earlier)
        return 0;
    void *event;
    int err = as_lane_take(lane, &event);
    if (err)
        return err;
    err = as_cuda_event_record(event, earlier);
    if (!err)
        err = as_cuda_stream_wait(later, event);
    as_lane_give(lane, event);
    return err;
}

int as_edge_produced(struct as_lane *lane, void *producer)
{
    return order(lane, lane->out, producer);
}

int as_edge_host_reuse(struct as_lane *lane, void *used)
{
    return used ? as_cuda_stream_wait(lane->out, used) : 0;
}

int as_edge_reuse(void *owner, void *copied)
{
    return copied ? as_cuda_stream_wait(owner, copied) : 0;
}

int as_edge_readers(struct as_lane *lane, void *owner, void *reader)
{
    return order(lane, owner, reader);
}

int as_edge_allocated(struct as_lane *lane, void *owner)
{
    return order(lane, lane->in, owner);
}

int as_edge_filled(struct as_lane *lane, void *copied)
{
    return as_cuda_stream_wait(lane->in, copied);
}

int as_edge_arrived(void *consumer, void *arrived)
{
    return as_cuda_stream_wait(consumer, arrived);
}
