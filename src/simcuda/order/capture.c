// SPDX-License-Identifier: Apache-2.0
#include "simcuda/order/capture.h"

#include <stdlib.h>

#include "simcuda/runtime/device.h"

static struct sim_capture *captures;
static uint64_t ids;
static __thread enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

static struct sim_capture *find(uint64_t id)
{
    struct sim_capture *capture = captures;

    while (capture && capture->id != id)
        capture = capture->next;
    return capture;
}

// What uses the legacy stream would depend on a captured blocking stream.
static struct sim_capture *implicit(const struct sim_stream *legacy)
{
    for (struct sim_capture *capture = captures; capture; capture = capture->next)
        for (struct sim_stream *at = capture->streams; at; at = at->next_captured)
            if (at->blocking && at->device == legacy->device)
                return capture;
    return NULL;
}

static cudaError_t refuse_implicit(const struct sim_stream *stream)
{
    struct sim_capture *capture = stream->legacy ? implicit(stream) : NULL;

    if (!capture)
        return cudaSuccess;
    capture->invalid = true;
    return cudaErrorStreamCaptureImplicit;
}

cudaError_t sim_capture_admit(const struct sim_stream *stream)
{
    if (stream->capture && stream->capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    return refuse_implicit(stream);
}

// Calls that a capture does not see, so that what it records may be wrong.
static cudaError_t refuse_unsafe(void)
{
    cudaError_t error = cudaSuccess;

    if (thread_mode == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    for (struct sim_capture *capture = captures; capture; capture = capture->next) {
        const bool own = pthread_equal(capture->thread, pthread_self());
        const bool all = capture->mode == cudaStreamCaptureModeGlobal &&
                         thread_mode == cudaStreamCaptureModeGlobal;

        if (own ? capture->mode == cudaStreamCaptureModeRelaxed : !all)
            continue;
        capture->invalid = true;
        error = cudaErrorStreamCaptureUnsupported;
    }
    return error;
}

cudaError_t sim_capture_refuse(const struct sim_stream *stream)
{
    if (!stream->capture)
        return cudaSuccess;
    if (stream->capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    stream->capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
}

cudaError_t sim_capture_observe(const struct sim_stream *stream)
{
    cudaError_t error = sim_capture_refuse(stream);

    if (!error)
        error = refuse_implicit(stream);
    return error ? error : refuse_unsafe();
}

cudaError_t sim_capture_observe_mark(const struct sim_mark *mark)
{
    struct sim_capture *capture = mark->id ? find(mark->id) : NULL;

    if (capture)
        capture->invalid = true;
    return mark->id ? cudaErrorCapturedEvent : refuse_unsafe();
}

cudaError_t sim_capture_unsafe(void)
{
    sim_queue_lock();
    const cudaError_t error = refuse_unsafe();
    sim_queue_unlock();
    return error;
}

cudaError_t sim_capture_observe_device(int device)
{
    cudaError_t error = cudaSuccess;

    sim_queue_lock();
    for (struct sim_capture *capture = captures; capture; capture = capture->next)
        for (struct sim_stream *at = capture->streams; at; at = at->next_captured)
            if (at->device == device) {
                capture->invalid = true;
                error = cudaErrorStreamCaptureUnsupported;
            }
    if (!error)
        error = refuse_unsafe();
    sim_queue_unlock();
    return error;
}

enum cudaStreamCaptureMode sim_capture_exchange(enum cudaStreamCaptureMode mode)
{
    const enum cudaStreamCaptureMode before = thread_mode;

    thread_mode = mode;
    return before;
}

static cudaError_t append(struct sim_stream *stream, struct sim_shared_work *work,
                          struct sim_graph *child)
{
    struct CUgraphNode_st *node =
        sim_graph_add(stream->capture->graph, work, &stream->before);

    if (!node)
        return cudaErrorMemoryAllocation;
    node->child = child;
    stream->before.count = 0;
    if (sim_nodes_add(&stream->before, node))
        return cudaSuccess;
    stream->capture->invalid = true;
    return cudaSuccess;
}

cudaError_t sim_capture_add(struct sim_stream *stream, const struct sim_task *task,
                            cudaEvent_t event)
{
    struct sim_shared_work *work;
    cudaError_t error = task->uncapturable ? sim_capture_refuse(stream) : cudaSuccess;

    if (error)
        return error;
    work = sim_shared_work_create(task);
    if (!work)
        return cudaErrorMemoryAllocation;
    work->event = event;
    error = append(stream, work, NULL);
    if (error)
        free(work);
    return error;
}

cudaError_t sim_capture_add_child(struct sim_stream *stream,
                                  const struct sim_graph *graph)
{
    static const struct sim_task task = {.name = "graph", .type = cudaGraphNodeTypeGraph};
    struct sim_shared_work *work = sim_shared_work_create(&task);
    struct sim_graph *child = work ? sim_graph_clone(graph) : NULL;
    const cudaError_t error =
        child ? append(stream, work, child) : cudaErrorMemoryAllocation;

    if (error) {
        sim_graph_destroy(child);
        sim_shared_work_release(work);
    }
    return error;
}

cudaError_t sim_capture_record(const struct sim_stream *stream, struct sim_mark *mark)
{
    mark->id = stream->capture->id;
    mark->nodes.count = 0;
    return sim_nodes_add_all(&mark->nodes, &stream->before) ? cudaSuccess
                                                            : cudaErrorMemoryAllocation;
}

void sim_mark_finish(struct sim_mark *mark)
{
    mark->id = 0;
    sim_nodes_finish(&mark->nodes);
}

static void enlist(struct sim_capture *capture, struct sim_stream *stream)
{
    stream->capture = capture;
    stream->next_captured = capture->streams;
    capture->streams = stream;
}

cudaError_t sim_capture_join(struct sim_stream *stream, const struct sim_mark *mark)
{
    struct sim_capture *capture = find(mark->id);

    if (!capture)
        return cudaErrorCapturedEvent;
    if (capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (stream->legacy) {
        capture->invalid = true;
        return cudaErrorStreamCaptureImplicit;
    }
    if (stream->capture && stream->capture != capture) {
        capture->invalid = stream->capture->invalid = true;
        return cudaErrorStreamCaptureMerge;
    }
    if (!stream->capture)
        enlist(capture, stream);
    return sim_nodes_add_all(&stream->before, &mark->nodes) ? cudaSuccess
                                                            : cudaErrorMemoryAllocation;
}

static cudaError_t begin(struct sim_stream *stream, const struct sim_capture *how,
                         const struct sim_nodes *before)
{
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (stream->legacy)
        return cudaErrorStreamCaptureUnsupported;
    if (stream->capture)
        return cudaErrorIllegalState;

    struct sim_capture *capture = malloc(sizeof(*capture));

    if (!capture)
        return cudaErrorMemoryAllocation;
    *capture = *how;
    capture->thread = pthread_self();
    capture->origin = stream;
    if (!capture->given)
        capture->graph = sim_graph_create();
    if (!capture->graph || !sim_nodes_add_all(&stream->before, before)) {
        if (!capture->given)
            sim_graph_destroy(capture->graph);
        sim_nodes_finish(&stream->before);
        free(capture);
        return cudaErrorMemoryAllocation;
    }
    capture->id = ++ids;
    capture->graph->captures++;
    capture->next = captures;
    captures = capture;
    enlist(capture, stream);
    return cudaSuccess;
}

cudaError_t sim_capture_begin(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    const struct sim_capture how = {.mode = mode};
    const struct sim_nodes none = {NULL, 0, 0};

    sim_queue_lock();
    const cudaError_t error = begin(sim_stream_find(handle), &how, &none);
    sim_queue_unlock();
    return error;
}

cudaError_t sim_capture_begin_in(cudaStream_t handle, enum cudaStreamCaptureMode mode,
                                 cudaGraph_t graph, const struct sim_nodes *before)
{
    cudaError_t error = cudaErrorInvalidValue;

    sim_queue_lock();
    const struct sim_capture how = {
        .mode = mode, .graph = sim_graph_find(graph), .given = true};

    if (how.graph)
        error = begin(sim_stream_find(handle), &how, before);
    sim_queue_unlock();
    return error;
}

static void finish(struct sim_capture *capture)
{
    struct sim_capture **at = &captures;

    while (*at != capture)
        at = &(*at)->next;
    *at = capture->next;
    for (struct sim_stream *stream = capture->streams; stream;) {
        struct sim_stream *next = stream->next_captured;

        stream->capture = NULL;
        stream->next_captured = NULL;
        sim_nodes_finish(&stream->before);
        stream = next;
    }
    capture->graph->captures--;
    free(capture);
}

// Whether all that the other streams did leads back to the one where it began.
static cudaError_t check_joined(const struct sim_capture *capture)
{
    if (!sim_graph_mark(capture->graph, &capture->origin->before))
        return cudaErrorMemoryAllocation;
    for (struct sim_stream *at = capture->streams; at; at = at->next_captured)
        for (size_t i = 0; i < at->before.count; i++)
            if (!at->before.at[i]->marked)
                return cudaErrorStreamCaptureUnjoined;
    return cudaSuccess;
}

static cudaError_t end(const struct sim_stream *stream, cudaGraph_t *graph)
{
    if (!stream)
        return cudaErrorInvalidResourceHandle;

    struct sim_capture *capture = stream->capture;

    if (!capture)
        return cudaErrorIllegalState;
    if (capture->origin != stream) {
        capture->invalid = true;
        return cudaErrorStreamCaptureUnmatched;
    }
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        !pthread_equal(capture->thread, pthread_self()))
        return cudaErrorStreamCaptureWrongThread;

    struct sim_graph *made = capture->graph;
    const bool given = capture->given;
    const cudaError_t error =
        capture->invalid ? cudaErrorStreamCaptureInvalidated : check_joined(capture);

    finish(capture);
    if (!error)
        *graph = made->handle;
    else if (!given)
        sim_graph_destroy(made);
    return error;
}

cudaError_t sim_capture_end(cudaStream_t handle, cudaGraph_t *graph)
{
    *graph = NULL;
    sim_queue_lock();
    const cudaError_t error = end(sim_stream_find(handle), graph);
    sim_queue_unlock();
    sim_works_sweep();
    return error;
}

cudaError_t sim_capture_info(cudaStream_t handle, struct sim_capture_info *info)
{
    cudaError_t error = cudaSuccess;

    *info = (struct sim_capture_info){.status = cudaStreamCaptureStatusNone};
    sim_queue_lock();
    const struct sim_stream *stream = sim_stream_find(handle);
    const struct sim_capture *capture = stream ? stream->capture : NULL;

    if (!stream)
        error = cudaErrorInvalidResourceHandle;
    else if (stream->legacy && implicit(stream))
        error = cudaErrorStreamCaptureImplicit;
    if (capture && capture->invalid)
        info->status = cudaStreamCaptureStatusInvalidated;
    else if (capture)
        *info = (struct sim_capture_info){
            .status = cudaStreamCaptureStatusActive,
            .id = capture->id,
            .graph = capture->graph->handle,
            .before = stream->before.at,
            .count = stream->before.count,
        };
    sim_queue_unlock();
    return error;
}

cudaError_t sim_capture_update(cudaStream_t handle, const struct sim_nodes *nodes,
                               bool replace)
{
    cudaError_t error = cudaSuccess;

    sim_queue_lock();
    struct sim_stream *stream = sim_stream_find(handle);

    if (!stream)
        error = cudaErrorInvalidResourceHandle;
    else if (!stream->capture)
        error = cudaErrorIllegalState;
    else
        error = sim_capture_admit(stream);
    for (size_t i = 0; i < nodes->count && !error; i++)
        if (nodes->at[i]->graph != stream->capture->graph)
            error = cudaErrorInvalidValue;
    if (!error && replace)
        stream->before.count = 0;
    if (!error && !sim_nodes_add_all(&stream->before, nodes))
        error = cudaErrorMemoryAllocation;
    sim_queue_unlock();
    return error;
}

cudaError_t sim_capture_refuse_on(cudaStream_t handle)
{
    sim_queue_lock();
    const struct sim_stream *stream = sim_stream_find(handle);
    const cudaError_t error =
        stream ? sim_capture_refuse(stream) : cudaErrorInvalidResourceHandle;
    sim_queue_unlock();
    return error;
}

bool sim_stream_is_captured(cudaStream_t handle)
{
    sim_queue_lock();
    const struct sim_stream *stream = sim_stream_find(handle);
    const bool captured = stream && stream->capture;
    sim_queue_unlock();
    return captured;
}
