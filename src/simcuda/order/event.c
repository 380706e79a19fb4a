// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "simcuda/order/capture.h"
#include "simcuda/order/handles.h"
#include "simcuda/order/stream.h"

struct event {
    int device;
    unsigned flags;
    unsigned polls;
    struct sim_entry *record; // the last one, or NULL
    struct sim_mark mark; // if the last one was captured
};

static struct sim_handles handles = {.tag = 8};

// With the queue's lock held.
static struct event *find(cudaEvent_t handle)
{
    return sim_handles_find(&handles, handle);
}

cudaError_t sim_event_create(int device, unsigned flags, cudaEvent_t *handle)
{
    struct event *event = calloc(1, sizeof(*event));

    if (!event)
        return cudaErrorMemoryAllocation;
    event->device = device;
    event->flags = flags;
    sim_queue_lock();
    *handle = sim_handles_add(&handles, event);
    sim_queue_unlock();
    if (!*handle) {
        free(event);
        return cudaErrorMemoryAllocation;
    }
    return cudaSuccess;
}

cudaError_t sim_event_destroy(cudaEvent_t handle)
{
    sim_queue_lock();
    struct event *event = find(handle);

    if (event) {
        sim_handles_remove(&handles, handle);
        sim_entry_release(event->record);
        sim_mark_finish(&event->mark);
        free(event);
    }
    sim_queue_unlock();
    return event ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

// The record, held for the caller; *error says when there is no such event.
static struct sim_entry *hold_record(cudaEvent_t handle, cudaError_t *error)
{
    const struct event *event = find(handle);

    *error = event ? cudaSuccess : cudaErrorInvalidResourceHandle;
    return event && event->record ? sim_entry_hold(event->record) : NULL;
}

// `entry` is NULL where the record is captured.
static void set_record(struct event *event, struct sim_entry *entry)
{
    sim_entry_release(event->record);
    event->record = entry ? sim_entry_hold(entry) : NULL;
    event->polls = 0;
    event->mark.id = 0;
}

void sim_event_replayed(cudaEvent_t handle, struct sim_entry *entry)
{
    struct event *event = find(handle);

    if (event)
        set_record(event, entry);
}

struct sim_entry *sim_event_recorded(cudaEvent_t handle)
{
    cudaError_t error;

    return hold_record(handle, &error);
}

static cudaError_t record_captured(struct event *event, struct sim_stream *stream)
{
    set_record(event, NULL);
    return sim_capture_record(stream, &event->mark);
}

static cudaError_t record_queued(cudaEvent_t handle, struct sim_stream *stream)
{
    static const struct sim_task task = {.name = "cudaEventRecord"};
    struct sim_entry *entry = sim_stream_submit(stream, &task, NULL);

    if (!entry)
        return cudaErrorMemoryAllocation;

    // Looked up again: the lock was let go of while the submission waited.
    struct event *event = find(handle);

    if (event)
        set_record(event, entry);
    sim_entry_release(entry);
    return event ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

static cudaError_t record(cudaEvent_t handle, cudaStream_t stream_handle, bool external)
{
    static const struct sim_task task = {.name = "event record",
                                         .type = cudaGraphNodeTypeEventRecord};
    struct sim_stream *stream = sim_stream_find(stream_handle);
    struct event *event = find(handle);

    if (!stream || !event || stream->device != event->device)
        return cudaErrorInvalidResourceHandle;

    const cudaError_t error = sim_capture_admit(stream);

    if (error)
        return error;
    if (!stream->capture)
        return record_queued(handle, stream);
    return external ? sim_capture_add(stream, &task, handle)
                    : record_captured(event, stream);
}

cudaError_t sim_event_record(cudaEvent_t handle, cudaStream_t stream, bool external)
{
    if (sim_queue_inside())
        return cudaErrorNotPermitted;
    sim_queue_lock();
    sim_timeline_spend(SIM_HOST_EVENT_NS);
    const cudaError_t error = record(handle, stream, external);
    sim_queue_unlock();
    return error;
}

static cudaError_t wait_queued(struct sim_stream *stream, struct sim_entry *record)
{
    static const struct sim_task task = {.name = "cudaStreamWaitEvent"};
    struct sim_entry *before = sim_entry_hold(record);
    struct sim_entry *entry = sim_stream_submit(stream, &task, before);

    sim_entry_release(before);
    sim_entry_release(entry);
    return entry ? cudaSuccess : cudaErrorMemoryAllocation;
}

// Only a wait that says so may depend on work that its capture does not see.
static cudaError_t wait_captured(cudaEvent_t handle, struct sim_stream *stream,
                                 bool external)
{
    static const struct sim_task task = {.name = "event wait",
                                         .type = cudaGraphNodeTypeWaitEvent};

    if (external)
        return sim_capture_add(stream, &task, handle);
    if (!find(handle)->record)
        return cudaSuccess;
    return sim_capture_refuse(stream) ? cudaErrorStreamCaptureIsolation : cudaSuccess;
}

static cudaError_t wait_for(cudaEvent_t handle, cudaStream_t stream_handle, bool external)
{
    struct sim_stream *stream = sim_stream_find(stream_handle);
    const struct event *event = find(handle);

    if (!stream || !event)
        return cudaErrorInvalidResourceHandle;

    const cudaError_t error = sim_capture_admit(stream);

    if (error)
        return error;
    if (event->mark.id && !external)
        return sim_capture_join(stream, &event->mark);
    if (stream->capture)
        return wait_captured(handle, stream, external);
    return event->record ? wait_queued(stream, event->record) : cudaSuccess;
}

cudaError_t sim_event_wait(cudaEvent_t handle, cudaStream_t stream_handle, bool external)
{
    if (sim_queue_inside())
        return cudaErrorNotPermitted;
    sim_queue_lock();
    sim_timeline_spend(SIM_HOST_EVENT_NS);
    const cudaError_t error = wait_for(handle, stream_handle, external);
    sim_queue_unlock();
    return error;
}

cudaError_t sim_event_synchronize(cudaEvent_t handle)
{
    cudaError_t error;

    if (sim_queue_inside())
        return cudaErrorNotPermitted;
    sim_queue_lock();
    struct sim_entry *entry = hold_record(handle, &error);

    if (!error)
        error = sim_capture_observe_mark(&find(handle)->mark);
    if (!error && entry) {
        sim_entry_await(entry);
        sim_timeline_reach(entry->when.end_ns);
    }
    sim_entry_release(entry);
    sim_queue_unlock();
    return error;
}

cudaError_t sim_event_query(cudaEvent_t handle)
{
    if (sim_queue_inside())
        return cudaErrorNotPermitted;
    sim_queue_lock();
    sim_queue_stir();
    struct event *event = find(handle);
    cudaError_t error =
        event ? sim_capture_observe_mark(&event->mark) : cudaErrorInvalidResourceHandle;

    if (!error)
        error = sim_entry_poll(event->record, &event->polls);
    sim_queue_unlock();
    return error;
}

cudaError_t sim_event_elapsed(cudaEvent_t from_handle, cudaEvent_t to_handle,
                              uint64_t *ns)
{
    cudaError_t error = cudaSuccess;

    sim_queue_lock();
    const struct event *from = find(from_handle), *to = find(to_handle);

    if (from && to && (from->mark.id || to->mark.id))
        error = cudaErrorCapturedEvent;
    else if (!from || !to || (from->flags | to->flags) & cudaEventDisableTiming ||
             !from->record || !to->record)
        error = cudaErrorInvalidResourceHandle;
    else if (!from->record->done || !to->record->done)
        error = cudaErrorNotReady;
    else
        *ns = to->record->when.end_ns - from->record->when.end_ns;
    sim_queue_unlock();
    return error;
}
