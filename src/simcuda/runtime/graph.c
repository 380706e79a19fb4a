// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "simcuda/order/entry.h"
#include "simcuda/order/graph.h"
#include "simcuda/runtime/device.h"
#include "simcuda/runtime/newer.h"

// Runs `action`, which returns a cudaError_t, with the queue's lock held, and what it
// dropped is ended after that.
#define LOCKED(action)                                                                   \
    do {                                                                                 \
        sim_queue_lock();                                                                \
        const cudaError_t locked_ = (action);                                            \
        sim_queue_unlock();                                                              \
        sim_works_sweep();                                                               \
        return sim_error(locked_);                                                       \
    } while (0)

static cudaError_t memory_unless(bool there)
{
    return there ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t name_new(struct sim_graph *graph, cudaGraph_t *handle)
{
    *handle = graph ? sim_graph_name(graph) : NULL;
    if (graph && !*handle)
        sim_graph_destroy(graph);
    return memory_unless(*handle);
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    SIM_ENTER();
    if (!graph || flags)
        return sim_error(cudaErrorInvalidValue);
    LOCKED(name_new(sim_graph_create(), graph));
}

static cudaError_t clone(cudaGraph_t *copy, const struct sim_graph *graph)
{
    return graph ? name_new(sim_graph_clone(graph), copy) : cudaErrorInvalidValue;
}

cudaError_t cudaGraphClone(cudaGraph_t *copy, cudaGraph_t graph)
{
    SIM_ENTER();
    if (!copy)
        return sim_error(cudaErrorInvalidValue);
    LOCKED(clone(copy, sim_graph_find(graph)));
}

static cudaError_t destroy(struct sim_graph *graph)
{
    if (!graph || graph->captures)
        return cudaErrorInvalidValue;
    sim_graph_destroy(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    SIM_ENTER();
    LOCKED(destroy(sim_graph_find(graph)));
}

// --- Nodes

static bool same_graph(const struct sim_graph *graph, const cudaGraphNode_t *nodes,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!nodes[i] || nodes[i]->graph != graph)
            return false;
    return true;
}

struct place {
    cudaGraphNode_t *node;
    cudaGraph_t graph;
    const cudaGraphNode_t *before;
    size_t count;
};

// A child graph is cloned.
static cudaError_t add(const struct place *place, const struct sim_shared_work *what,
                       const struct sim_graph *child)
{
    struct sim_graph *graph = sim_graph_find(place->graph);

    if (!place->node || !graph || (place->count && !place->before) ||
        !same_graph(graph, place->before, place->count))
        return cudaErrorInvalidValue;

    const struct sim_nodes before = {(cudaGraphNode_t *)(uintptr_t)place->before,
                                     place->count, place->count};
    struct sim_shared_work *work = sim_shared_work_create(&what->task);
    struct sim_graph *copy = child ? sim_graph_clone(child) : NULL;

    if (!work || (child && !copy) ||
        !(*place->node = sim_graph_add(graph, work, &before))) {
        sim_shared_work_release(work);
        sim_graph_destroy(copy);
        return cudaErrorMemoryAllocation;
    }
    work->event = what->event;
    (*place->node)->child = copy;
    return cudaSuccess;
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, size_t count)
{
    SIM_ENTER();
    const struct place place = {node, graph, dependencies, count};
    const struct sim_shared_work work = {
        .task = {.name = "empty", .type = cudaGraphNodeTypeEmpty}};

    LOCKED(add(&place, &work, NULL));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *dependencies, size_t count,
                                 const struct cudaHostNodeParams *params)
{
    SIM_ENTER();
    const struct place place = {node, graph, dependencies, count};

    if (!params || !params->fn)
        return sim_error(cudaErrorInvalidValue);

    const struct sim_shared_work work = {.task = {.name = "host function",
                                                  .run = params->fn,
                                                  .arg = params->userData,
                                                  .calls_user = true,
                                                  .type = cudaGraphNodeTypeHost}};

    LOCKED(add(&place, &work, NULL));
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node,
                                       struct cudaHostNodeParams *params)
{
    SIM_ENTER();
    if (!node || !params || node->work->task.type != cudaGraphNodeTypeHost)
        return sim_error(cudaErrorInvalidValue);
    *params = (struct cudaHostNodeParams){.fn = node->work->task.run,
                                          .userData = node->work->task.arg};
    return cudaSuccess;
}

static cudaError_t add_event(const struct place *place, cudaEvent_t event,
                             enum cudaGraphNodeType type)
{
    const struct sim_shared_work work = {
        .task = {.name = sim_node_type_name(type), .type = type}, .event = event};

    return add(place, &work, NULL);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count,
                                        cudaEvent_t event)
{
    SIM_ENTER();
    const struct place place = {node, graph, dependencies, count};

    LOCKED(add_event(&place, event, cudaGraphNodeTypeEventRecord));
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                      const cudaGraphNode_t *dependencies, size_t count,
                                      cudaEvent_t event)
{
    SIM_ENTER();
    const struct place place = {node, graph, dependencies, count};

    LOCKED(add_event(&place, event, cudaGraphNodeTypeWaitEvent));
}

static cudaError_t add_child(const struct place *place, const struct sim_graph *child)
{
    const struct sim_shared_work work = {
        .task = {.name = "graph", .type = cudaGraphNodeTypeGraph}};

    return child ? add(place, &work, child) : cudaErrorInvalidValue;
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *dependencies, size_t count,
                                       cudaGraph_t child)
{
    SIM_ENTER();
    const struct place place = {node, graph, dependencies, count};

    LOCKED(add_child(&place, sim_graph_find(child)));
}

static cudaError_t child_of(cudaGraphNode_t node, cudaGraph_t *graph)
{
    *graph = node && node->child ? sim_graph_name(node->child) : NULL;
    return *graph ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
    SIM_ENTER();
    if (!graph)
        return sim_error(cudaErrorInvalidValue);
    LOCKED(child_of(node, graph));
}

static cudaError_t remove_node(cudaGraphNode_t node)
{
    if (node->graph->captures)
        return cudaErrorInvalidValue;
    sim_graph_remove(node);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
    SIM_ENTER();
    if (!node)
        return sim_error(cudaErrorInvalidValue);
    LOCKED(remove_node(node));
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    SIM_ENTER();
    if (!node || !type)
        return sim_error(cudaErrorInvalidValue);
    *type = node->work->task.type;
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetLocalId(cudaGraphNode_t node, unsigned int *id)
{
    SIM_ENTER();
    if (!node || !id)
        return sim_error(cudaErrorInvalidValue);
    *id = node->number;
    return cudaSuccess;
}

static cudaError_t graph_of(cudaGraphNode_t node, cudaGraph_t *graph)
{
    *graph = sim_graph_name(node->graph);
    return memory_unless(*graph);
}

cudaError_t cudaGraphNodeGetContainingGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
    SIM_ENTER();
    if (!node || !graph)
        return sim_error(cudaErrorInvalidValue);
    LOCKED(graph_of(node, graph));
}

// --- Edges

static cudaError_t connect(const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                           size_t count)
{
    bool there = true;

    for (size_t i = 0; i < count && there; i++)
        there = sim_node_after(to[i], from[i]);
    return memory_unless(there);
}

static cudaError_t disconnect(const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                              size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!sim_nodes_hold(&to[i]->before, from[i]))
            return cudaErrorInvalidValue;
    for (size_t i = 0; i < count; i++)
        sim_node_not_after(to[i], from[i]);
    return cudaSuccess;
}

static cudaError_t change_edges(cudaGraph_t handle, const cudaGraphNode_t *from,
                                const cudaGraphNode_t *to, size_t count,
                                cudaError_t (*change)(const cudaGraphNode_t *from,
                                                      const cudaGraphNode_t *to,
                                                      size_t count))
{
    const struct sim_graph *graph = sim_graph_find(handle);

    if (!graph || (count && (!from || !to)) || !same_graph(graph, from, count) ||
        !same_graph(graph, to, count))
        return cudaErrorInvalidValue;
    return change(from, to, count);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edges, size_t count)
{
    SIM_ENTER();
    (void)edges;
    LOCKED(change_edges(graph, from, to, count, connect));
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *edges, size_t count)
{
    SIM_ENTER();
    (void)edges;
    LOCKED(change_edges(graph, from, to, count, disconnect));
}

// Without `to` only the number; with it at most *count, the rest of it NULL.
static void tell(cudaGraphNode_t *to, size_t *count, const struct sim_nodes *nodes)
{
    for (size_t i = 0; to && i < *count; i++)
        to[i] = i < nodes->count ? nodes->at[i] : NULL;
    if (!to || nodes->count < *count)
        *count = nodes->count;
}

static cudaError_t tell_nodes(const struct sim_graph *graph, cudaGraphNode_t *nodes,
                              size_t *count, bool roots)
{
    struct sim_nodes found = {NULL, 0, 0};
    bool there = true;

    if (!graph)
        return cudaErrorInvalidValue;
    if (!roots) {
        tell(nodes, count, &graph->nodes);
        return cudaSuccess;
    }
    for (size_t i = 0; there && i < graph->nodes.count; i++)
        if (!graph->nodes.at[i]->before.count)
            there = sim_nodes_add(&found, graph->nodes.at[i]);
    tell(nodes, count, &found);
    sim_nodes_finish(&found);
    return memory_unless(there);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    SIM_ENTER();
    if (!count)
        return sim_error(cudaErrorInvalidValue);
    LOCKED(tell_nodes(sim_graph_find(graph), nodes, count, false));
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes,
                                  size_t *count)
{
    SIM_ENTER();
    if (!count)
        return sim_error(cudaErrorInvalidValue);
    LOCKED(tell_nodes(sim_graph_find(graph), nodes, count, true));
}

static void no_data(cudaGraphEdgeData *edges, size_t count)
{
    for (size_t i = 0; edges && i < count; i++)
        edges[i] = (cudaGraphEdgeData){.type = 0};
}

static cudaError_t tell_neighbours(const struct sim_nodes *nodes, cudaGraphNode_t *to,
                                   cudaGraphEdgeData *edges, size_t *count)
{
    tell(to, count, nodes);
    no_data(edges, to ? *count : 0);
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                         cudaGraphEdgeData *edges, size_t *count)
{
    SIM_ENTER();
    if (!node || !count)
        return sim_error(cudaErrorInvalidValue);
    LOCKED(tell_neighbours(&node->before, nodes, edges, count));
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                           cudaGraphEdgeData *edges, size_t *count)
{
    SIM_ENTER();
    if (!node || !count)
        return sim_error(cudaErrorInvalidValue);
    LOCKED(tell_neighbours(&node->after, nodes, edges, count));
}

static cudaError_t tell_edges(const struct sim_graph *graph, cudaGraphNode_t *from,
                              cudaGraphNode_t *to, size_t *count)
{
    size_t found = 0;

    if (!graph)
        return cudaErrorInvalidValue;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct sim_nodes *before = &graph->nodes.at[i]->before;

        for (size_t j = 0; j < before->count; j++, found++)
            if (from && found < *count) {
                from[found] = before->at[j];
                to[found] = graph->nodes.at[i];
            }
    }
    for (size_t i = found; from && i < *count; i++)
        from[i] = to[i] = NULL;
    if (!from || found < *count)
        *count = found;
    return cudaSuccess;
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from,
                              cudaGraphNode_t *to, cudaGraphEdgeData *edges,
                              size_t *count)
{
    SIM_ENTER();
    if (!count || !from != !to)
        return sim_error(cudaErrorInvalidValue);
    no_data(edges, from ? *count : 0);
    LOCKED(tell_edges(sim_graph_find(graph), from, to, count));
}

static cudaError_t print(const struct sim_graph *graph, FILE *file)
{
    if (graph)
        sim_graph_print(graph, file);
    return graph ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path,
                                   unsigned int flags)
{
    SIM_ENTER();
    (void)flags;
    FILE *file = path ? fopen(path, "we") : NULL;

    if (!file)
        return sim_error(path ? cudaErrorOperatingSystem : cudaErrorInvalidValue);
    sim_queue_lock();
    const cudaError_t error = print(sim_graph_find(graph), file);
    sim_queue_unlock();
    return sim_error(fclose(file) && !error ? cudaErrorOperatingSystem : error);
}

static cudaError_t tell_id(const struct sim_graph *graph, unsigned int *id)
{
    if (graph)
        *id = graph->id;
    return graph ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphGetId(cudaGraph_t graph, unsigned int *id)
{
    SIM_ENTER();
    if (!id)
        return sim_error(cudaErrorInvalidValue);
    LOCKED(tell_id(sim_graph_find(graph), id));
}
