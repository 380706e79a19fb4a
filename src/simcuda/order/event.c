// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "simcuda/order/handles.h"
#include "simcuda/order/stream.h"

struct event {
    int device;
    unsigned flags;
    unsigned polls;
    struct sim_entry *record; // the last one, or NULL
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

static cudaError_t record(cudaEvent_t handle, cudaStream_t stream_handle)
{
    static const struct sim_task task = {.name = "cudaEventRecord"};
    struct sim_stream *stream = sim_stream_find(stream_handle);
    const struct event *event = find(handle);

    if (!stream || !event || stream->device != event->device)
        return cudaErrorInvalidResourceHandle;

    struct sim_entry *entry = sim_stream_submit(stream, &task, NULL);

    if (!entry)
        return cudaErrorMemoryAllocation;

    // Looked up again: the lock was let go of while the submission waited.
    struct event *again = find(handle);

    if (again) {
        sim_entry_release(again->record);
        again->record = sim_entry_hold(entry);
        again->polls = 0;
    }
    sim_entry_release(entry);
    return again ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t sim_event_record(cudaEvent_t handle, cudaStream_t stream)
{
    if (sim_queue_inside())
        return cudaErrorNotPermitted;
    sim_queue_lock();
    const cudaError_t error = record(handle, stream);
    sim_queue_unlock();
    return error;
}

cudaError_t sim_event_wait(cudaEvent_t handle, cudaStream_t stream_handle)
{
    static const struct sim_task task = {.name = "cudaStreamWaitEvent"};
    cudaError_t error;

    if (sim_queue_inside())
        return cudaErrorNotPermitted;
    sim_queue_lock();
    struct sim_stream *stream = sim_stream_find(stream_handle);
    struct sim_entry *before = hold_record(handle, &error);

    if (!stream)
        error = cudaErrorInvalidResourceHandle;
    if (!error && before) {
        struct sim_entry *entry = sim_stream_submit(stream, &task, before);

        error = entry ? cudaSuccess : cudaErrorMemoryAllocation;
        sim_entry_release(entry);
    }
    sim_entry_release(before);
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

    if (entry)
        sim_entry_await(entry);
    sim_entry_release(entry);
    sim_queue_unlock();
    return error;
}

cudaError_t sim_event_query(cudaEvent_t handle)
{
    if (sim_queue_inside())
        return cudaErrorNotPermitted;
    sim_queue_lock();
    struct event *event = find(handle);
    const cudaError_t error = event ? sim_entry_poll(event->record, &event->polls)
                                    : cudaErrorInvalidResourceHandle;
    sim_queue_unlock();
    return error;
}

cudaError_t sim_event_elapsed(cudaEvent_t from_handle, cudaEvent_t to_handle,
                              uint64_t *ns)
{
    cudaError_t error = cudaSuccess;

    sim_queue_lock();
    const struct event *from = find(from_handle), *to = find(to_handle);

    if (!from || !to || (from->flags | to->flags) & cudaEventDisableTiming ||
        !from->record || !to->record)
        error = cudaErrorInvalidResourceHandle;
    else if (!from->record->done || !to->record->done)
        error = cudaErrorNotReady;
    else
        *ns = sim_entry_end_ns(to->record) - sim_entry_end_ns(from->record);
    sim_queue_unlock();
    return error;
}
