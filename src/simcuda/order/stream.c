// SPDX-License-Identifier: Apache-2.0
#include "simcuda/order/stream.h"

#include <pthread.h>
#include <stdlib.h>

#include "simcuda/check/check.h"
#include "simcuda/check/thread.h"
#include "simcuda/order/capture.h"
#include "simcuda/order/handles.h"
#include "simcuda/order/schedule.h"
#include "simcuda/runtime/device.h"

// All streams of a device but its legacy one, also destroyed ones with work left.
static struct sim_stream *streams[SIM_DEVICES_MAX];
static struct sim_stream legacy[SIM_DEVICES_MAX];
static struct sim_handles handles;

// What was on streams that are gone: for the checker, and when it ended.
static struct {
    struct sim_clock all, blocking;
    uint64_t all_ns, blocking_ns;
} gone[SIM_DEVICES_MAX];

static unsigned lanes = SIM_DEVICES_MAX; // below: the legacy streams

// Each thread's cudaStreamPerThread, a handle a device, made at first use.
static pthread_key_t per_thread_key;
static pthread_once_t per_thread_once = PTHREAD_ONCE_INIT;

static void destroy_per_thread(void *own)
{
    cudaStream_t *stream = own;

    for (int i = 0; i < SIM_DEVICES_MAX; i++)
        if (stream[i])
            sim_stream_destroy(stream[i]);
    free(stream);
}

static void create_key(void)
{
    if (pthread_key_create(&per_thread_key, destroy_per_thread))
        abort();
}

static struct sim_stream *create(int device, unsigned flags, int priority,
                                 cudaStream_t *handle)
{
    struct sim_stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    *handle = sim_handles_add(&handles, stream);
    if (!*handle) {
        free(stream);
        return NULL;
    }
    stream->device = device;
    stream->lane = ++lanes;
    stream->handle = *handle;
    stream->flags = flags;
    stream->blocking = !(flags & cudaStreamNonBlocking);
    stream->priority = priority;
    stream->next = streams[device];
    streams[device] = stream;
    return stream;
}

static struct sim_stream *per_thread(int device)
{
    pthread_once(&per_thread_once, create_key);

    cudaStream_t *own = pthread_getspecific(per_thread_key);

    if (!own) {
        own = calloc(SIM_DEVICES_MAX, sizeof(cudaStream_t));
        if (!own || pthread_setspecific(per_thread_key, own)) {
            free(own);
            return NULL;
        }
    }
    if (!own[device])
        return create(device, 0, 0, &own[device]);
    return sim_handles_find(&handles, own[device]);
}

struct sim_stream *sim_stream_find(cudaStream_t handle)
{
    const int device = sim_device_current()->index;

    if (!handle || handle == cudaStreamLegacy) {
        legacy[device].device = device;
        legacy[device].lane = (unsigned)device;
        legacy[device].legacy = true;
        return &legacy[device];
    }
    if (handle == cudaStreamPerThread)
        return per_thread(device);
    return sim_handles_find(&handles, handle);
}

static void raise_to(uint64_t *latest_ns, uint64_t ns)
{
    if (ns > *latest_ns)
        *latest_ns = ns;
}

static void remember_gone(const struct sim_stream *stream)
{
    if (!stream->tail)
        return;
    raise_to(&gone[stream->device].all_ns, stream->tail->when.end_ns);
    if (stream->blocking)
        raise_to(&gone[stream->device].blocking_ns, stream->tail->when.end_ns);
    if (!stream->tail->stamp)
        return;
    sim_clock_join(&gone[stream->device].all, &stream->tail->stamp->past);
    if (stream->blocking)
        sim_clock_join(&gone[stream->device].blocking, &stream->tail->stamp->past);
}

// Frees destroyed streams whose work is done.
static void prune(int device)
{
    struct sim_stream **at = &streams[device];

    while (*at) {
        struct sim_stream *stream = *at;

        if (!stream->destroyed || (stream->tail && !stream->tail->done)) {
            at = &stream->next;
            continue;
        }
        *at = stream->next;
        remember_gone(stream);
        sim_entry_release(stream->tail);
        free(stream);
    }
}

// The legacy stream comes after all blocking streams, and they after it.
static bool after_others(struct sim_entry *entry, const struct sim_stream *stream)
{
    if (!stream->legacy)
        return !stream->blocking || sim_entry_after(entry, legacy[stream->device].tail);
    raise_to(&entry->when.ready_ns, gone[stream->device].blocking_ns);
    if (entry->stamp)
        sim_clock_join(&entry->stamp->past, &gone[stream->device].blocking);
    for (struct sim_stream *at = streams[stream->device]; at; at = at->next)
        if (at->blocking && !sim_entry_after(entry, at->tail))
            return false;
    return true;
}

struct sim_entry *sim_stream_prepare(struct sim_stream *stream,
                                     const struct sim_task *task,
                                     struct sim_entry *also_after)
{
    struct sim_entry *entry = sim_entry_create(task);

    if (!entry)
        return NULL;
    entry->lane = stream->lane;
    entry->stream = stream->handle;
    entry->device = stream->device;
    if (!sim_entry_after(entry, stream->tail) || !after_others(entry, stream) ||
        !sim_entry_after(entry, also_after)) {
        sim_entry_abandon(entry);
        return NULL;
    }
    sim_check_place(entry, stream->tail);
    sim_entry_release(stream->tail);
    stream->tail = sim_entry_hold(entry);
    return entry;
}

struct sim_entry *sim_stream_submit(struct sim_stream *stream,
                                    const struct sim_task *task,
                                    struct sim_entry *also_after)
{
    struct sim_entry *entry = sim_stream_prepare(stream, task, also_after);

    if (entry) {
        sim_entry_enqueue(entry);
        sim_entry_throttle(entry);
    }
    return entry;
}

static cudaError_t submit_entry(struct sim_stream *stream, const struct sim_task *task,
                                bool wait)
{
    struct sim_entry *entry = sim_stream_submit(stream, task, NULL);

    if (entry && wait) {
        sim_entry_await(entry);
        sim_timeline_reach(entry->when.end_ns);
    }
    sim_entry_release(entry);
    return entry ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t submit(cudaStream_t handle, const struct sim_task *task, bool wait)
{
    cudaError_t error = cudaErrorInvalidResourceHandle;

    sim_queue_lock();
    struct sim_stream *stream = sim_stream_find(handle);

    if (stream)
        error = sim_capture_admit(stream);
    if (!error)
        sim_timeline_spend(task->cost.host_ns);
    if (!error)
        error = stream->capture ? sim_capture_add(stream, task, NULL)
                                : submit_entry(stream, task, wait);
    sim_queue_unlock();
    if (error && task->destroy)
        task->destroy(task->arg);
    return error;
}

cudaError_t sim_queue_submit(cudaStream_t stream, const struct sim_task *task)
{
    return sim_queue_inside() ? cudaErrorNotPermitted : submit(stream, task, false);
}

cudaError_t sim_queue_perform(cudaStream_t stream, const struct sim_task *task)
{
    return sim_queue_inside() ? cudaErrorNotPermitted : submit(stream, task, true);
}

// What must be done for `stream` to have synchronised; NULL is the whole device.
static bool covers(const struct sim_stream *stream, const struct sim_stream *other)
{
    return !stream || stream == other || (stream->legacy && other->blocking);
}

struct tails {
    struct sim_entry **entries; // not done
    size_t count;
    uint64_t end_ns; // of them and of those that are done
    struct sim_clock past; // what is known once they are done: the checker's
};

static bool add_tail(struct tails *tails, struct sim_entry *tail)
{
    if (tail)
        raise_to(&tails->end_ns, tail->when.end_ns);
    if (tail && tail->stamp)
        sim_clock_join(&tails->past, &tail->stamp->past);
    if (!tail || tail->done)
        return true;

    struct sim_entry **entries =
        realloc(tails->entries, (tails->count + 1) * sizeof(struct sim_entry *));

    if (!entries)
        return false;
    tails->entries = entries;
    entries[tails->count++] = sim_entry_hold(tail);
    return true;
}

// The unfinished tails now: what is submitted later is not waited for.
static bool collect(struct tails *tails, int device, const struct sim_stream *stream)
{
    bool all = true;

    prune(device);
    if (!stream || stream->legacy) {
        sim_clock_join(&tails->past, stream ? &gone[device].blocking : &gone[device].all);
        tails->end_ns = stream ? gone[device].blocking_ns : gone[device].all_ns;
    }
    if (covers(stream, &legacy[device]))
        all = add_tail(tails, legacy[device].tail);
    for (struct sim_stream *at = streams[device]; at; at = at->next)
        if (covers(stream, at))
            all = add_tail(tails, at->tail) && all;
    return all;
}

static void release_tails(struct tails *tails)
{
    for (size_t i = 0; i < tails->count; i++)
        sim_entry_release(tails->entries[i]);
    free(tails->entries);
    sim_clock_finish(&tails->past);
}

static void await_tails(const struct tails *tails)
{
    for (size_t i = 0; i < tails->count; i++)
        sim_entry_want(tails->entries[i]);
    for (size_t i = 0; i < tails->count; i++)
        sim_entry_await(tails->entries[i]);
    if (tails->past.count)
        sim_thread_tell(&tails->past);
}

static cudaError_t synchronize(int device, const struct sim_stream *stream)
{
    struct tails tails = {.count = 0};
    const bool all = collect(&tails, device, stream);

    if (all) {
        await_tails(&tails);
        sim_timeline_reach(tails.end_ns);
    }
    release_tails(&tails);
    return all ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t sim_queue_synchronize(cudaStream_t handle)
{
    cudaError_t error = cudaErrorInvalidResourceHandle;

    if (sim_queue_inside())
        return cudaErrorNotPermitted;
    sim_queue_lock();
    struct sim_stream *stream = sim_stream_find(handle);

    if (stream)
        error = sim_capture_observe(stream);
    if (!error)
        error = synchronize(stream->device, stream);
    sim_queue_unlock();
    return error;
}

cudaError_t sim_queue_synchronize_device(int device)
{
    if (sim_queue_inside())
        return cudaErrorNotPermitted;
    sim_queue_lock();
    const cudaError_t error = synchronize(device, NULL);
    sim_queue_unlock();
    return error;
}

cudaError_t sim_queue_synchronize_all(void)
{
    cudaError_t error = cudaSuccess;

    for (int i = 0; i < sim_device_count() && !error; i++)
        error = sim_queue_synchronize_device(i);
    return error;
}

// Whether the program is told once more that work is not done.
static bool refuses(const struct sim_entry *entry, unsigned polls)
{
    return polls <= SIM_POLLS_MAX && sim_entry_age(entry) < SIM_POLLS_AGE &&
           (sim_order() != SIM_SEEDED || sim_schedule_choose(2));
}

cudaError_t sim_entry_poll(struct sim_entry *entry, unsigned *polls)
{
    if (entry && !entry->done && refuses(entry, ++*polls))
        return cudaErrorNotReady;
    *polls = 0;
    if (entry)
        sim_entry_await(entry);
    return cudaSuccess;
}

static cudaError_t query(struct sim_stream *stream)
{
    struct tails tails = {.count = 0};
    cudaError_t error = cudaErrorMemoryAllocation;

    if (collect(&tails, stream->device, stream)) {
        error =
            tails.count ? sim_entry_poll(tails.entries[0], &stream->polls) : cudaSuccess;
        if (!error)
            await_tails(&tails);
    }
    release_tails(&tails);
    return error;
}

cudaError_t sim_queue_query(cudaStream_t handle)
{
    cudaError_t error = cudaErrorInvalidResourceHandle;

    if (sim_queue_inside())
        return cudaErrorNotPermitted;
    sim_queue_lock();
    sim_queue_stir();
    struct sim_stream *stream = sim_stream_find(handle);

    if (stream)
        error = sim_capture_observe(stream);
    if (!error)
        error = query(stream);
    sim_queue_unlock();
    return error;
}

cudaError_t sim_stream_create(int device, unsigned flags, int priority,
                              cudaStream_t *handle)
{
    sim_queue_lock();
    prune(device);
    const struct sim_stream *stream = create(device, flags, priority, handle);
    sim_queue_unlock();
    return stream ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t sim_stream_destroy(cudaStream_t handle)
{
    cudaError_t error = cudaErrorInvalidResourceHandle;

    sim_queue_lock();
    struct sim_stream *stream = sim_handles_find(&handles, handle);

    if (stream)
        error = sim_capture_refuse(stream);
    if (!error) {
        sim_handles_remove(&handles, handle);
        stream->destroyed = true;
        prune(stream->device);
    }
    sim_queue_unlock();
    return error;
}

cudaError_t sim_stream_get(cudaStream_t handle, int *device, unsigned *flags,
                           int *priority)
{
    sim_queue_lock();
    const struct sim_stream *stream = sim_stream_find(handle);

    if (stream && device)
        *device = stream->device;
    if (stream && flags)
        *flags = stream->flags;
    if (stream && priority)
        *priority = stream->priority;
    sim_queue_unlock();
    return stream ? cudaSuccess : cudaErrorInvalidResourceHandle;
}
