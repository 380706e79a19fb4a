// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "simcuda/order/graph.h"
#include "simcuda/order/queue.h"
#include "simcuda/runtime/device.h"

static bool is_mode(enum cudaStreamCaptureMode mode)
{
    return (unsigned)mode <= cudaStreamCaptureModeRelaxed;
}

// Edges have no data here, so only zeroes are taken and told.
static bool plain(const cudaGraphEdgeData *edges, size_t count)
{
    for (size_t i = 0; edges && i < count; i++)
        if (edges[i].from_port || edges[i].to_port || edges[i].type)
            return false;
    return true;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    SIM_ENTER();
    if (!is_mode(mode))
        return sim_error(cudaErrorInvalidValue);
    sim_device_activate();
    return sim_error(sim_capture_begin(stream, mode));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies,
                                          const cudaGraphEdgeData *edges, size_t count,
                                          enum cudaStreamCaptureMode mode)
{
    SIM_ENTER();
    const struct sim_nodes before = {(cudaGraphNode_t *)(uintptr_t)dependencies, count,
                                     count};

    if (!is_mode(mode) || (count && !dependencies) || !plain(edges, count))
        return sim_error(cudaErrorInvalidValue);
    sim_device_activate();
    return sim_error(sim_capture_begin_in(stream, mode, graph, &before));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    SIM_ENTER();
    if (!graph)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_capture_end(stream, graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus *status)
{
    SIM_ENTER();
    struct sim_capture_info info;

    if (!status)
        return sim_error(cudaErrorInvalidValue);

    const cudaError_t error = sim_capture_info(stream, &info);

    *status = info.status;
    return sim_error(error);
}

// Nodes have few edges; more than these are told to the one thread that asks.
static const cudaGraphEdgeData *no_data(size_t count)
{
    static const cudaGraphEdgeData none[64];
    static __thread cudaGraphEdgeData *more;

    if (count <= sizeof(none) / sizeof(none[0]))
        return none;
    free(more);
    more = calloc(count, sizeof(*more));
    return more;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count)
{
    SIM_ENTER();
    struct sim_capture_info info;

    if (!status || (edges && !dependencies))
        return sim_error(cudaErrorInvalidValue);

    const cudaError_t error = sim_capture_info(stream, &info);

    *status = info.status;
    if (error || info.status != cudaStreamCaptureStatusActive)
        return sim_error(error);
    if (id)
        *id = info.id;
    if (graph)
        *graph = info.graph;
    if (dependencies)
        *dependencies = info.before;
    if (edges)
        *edges = no_data(info.count);
    if (count)
        *count = info.count;
    return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *edges,
                                                size_t count, unsigned int flags)
{
    SIM_ENTER();
    const struct sim_nodes nodes = {dependencies, count, count};

    if (flags > cudaStreamSetCaptureDependencies || (count && !dependencies) ||
        !plain(edges, count))
        return sim_error(cudaErrorInvalidValue);
    return sim_error(
        sim_capture_update(stream, &nodes, flags == cudaStreamSetCaptureDependencies));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    SIM_ENTER();
    if (!mode || !is_mode(*mode))
        return sim_error(cudaErrorInvalidValue);
    *mode = sim_capture_exchange(*mode);
    return cudaSuccess;
}
