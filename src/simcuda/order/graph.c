// SPDX-License-Identifier: Apache-2.0
#include "simcuda/order/graph.h"

#include <stdlib.h>
#include <string.h>

#include "simcuda/order/entry.h"
#include "simcuda/order/handles.h"
#include "simcuda/simcuda.h"

static struct sim_handles handles = {.tag = 4};
static unsigned ids;
static struct sim_shared_work *dropped;

struct sim_shared_work *sim_shared_work_create(const struct sim_task *task)
{
    struct sim_shared_work *work = calloc(1, sizeof(*work));

    if (!work)
        return NULL;
    work->references = 1;
    work->task = *task;
    if (!task->lost.count)
        return work;

    const size_t bytes = task->lost.count * sizeof(*task->lost.accesses);
    struct sim_access *accesses = malloc(bytes);

    if (!accesses) {
        free(work);
        return NULL;
    }
    memcpy(accesses, task->lost.accesses, bytes);
    work->task.lost.accesses = accesses;
    return work;
}

struct sim_shared_work *sim_shared_work_hold(struct sim_shared_work *work)
{
    work->references++;
    return work;
}

void sim_shared_work_release(struct sim_shared_work *work)
{
    if (!work || --work->references)
        return;
    work->dropped = dropped;
    dropped = work;
}

void sim_works_sweep(void)
{
    sim_queue_lock();
    struct sim_shared_work *first = dropped;

    dropped = NULL;
    sim_queue_unlock();
    while (first) {
        struct sim_shared_work *work = first;

        first = work->dropped;
        if (work->task.destroy)
            work->task.destroy(work->task.arg);
        if (work->task.lost.count)
            free((void *)work->task.lost.accesses);
        free(work);
    }
}

bool sim_nodes_hold(const struct sim_nodes *nodes, const struct CUgraphNode_st *node)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->at[i] == node)
            return true;
    return false;
}

static bool append(struct sim_nodes *nodes, struct CUgraphNode_st *node)
{
    if (nodes->count == nodes->capacity) {
        const size_t capacity = nodes->capacity ? nodes->capacity * 2 : 2;
        struct CUgraphNode_st **at =
            realloc(nodes->at, capacity * sizeof(struct CUgraphNode_st *));

        if (!at)
            return false;
        nodes->at = at;
        nodes->capacity = capacity;
    }
    nodes->at[nodes->count++] = node;
    return true;
}

bool sim_nodes_add(struct sim_nodes *nodes, struct CUgraphNode_st *node)
{
    return sim_nodes_hold(nodes, node) || append(nodes, node);
}

bool sim_nodes_add_all(struct sim_nodes *nodes, const struct sim_nodes *more)
{
    for (size_t i = 0; i < more->count; i++)
        if (!sim_nodes_add(nodes, more->at[i]))
            return false;
    return true;
}

void sim_nodes_remove(struct sim_nodes *nodes, const struct CUgraphNode_st *node)
{
    size_t kept = 0;

    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->at[i] != node)
            nodes->at[kept++] = nodes->at[i];
    nodes->count = kept;
}

void sim_nodes_finish(struct sim_nodes *nodes)
{
    free(nodes->at);
    *nodes = (struct sim_nodes){NULL, 0, 0};
}

static struct sim_graph *create_unnamed(void)
{
    struct sim_graph *graph = calloc(1, sizeof(*graph));

    if (graph)
        graph->id = ++ids;
    return graph;
}

struct sim_graph *sim_graph_create(void)
{
    struct sim_graph *graph = create_unnamed();

    if (graph)
        graph->handle = sim_handles_add(&handles, graph);
    if (graph && graph->handle)
        return graph;
    free(graph);
    return NULL;
}

struct sim_graph *sim_graph_find(cudaGraph_t handle)
{
    return sim_handles_find(&handles, handle);
}

static void free_node(struct CUgraphNode_st *node)
{
    sim_shared_work_release(node->work);
    sim_graph_destroy(node->child);
    sim_nodes_finish(&node->before);
    sim_nodes_finish(&node->after);
    free(node);
}

void sim_graph_destroy(struct sim_graph *graph)
{
    if (!graph)
        return;
    if (graph->handle)
        sim_handles_remove(&handles, graph->handle);
    for (size_t i = 0; i < graph->nodes.count; i++)
        free_node(graph->nodes.at[i]);
    sim_nodes_finish(&graph->nodes);
    while (graph->held_count)
        sim_graph_let_go(graph, graph->held[0].object, graph->held[0].count);
    free(graph->held);
    free(graph);
}

bool sim_node_after(struct CUgraphNode_st *node, struct CUgraphNode_st *before)
{
    if (sim_nodes_hold(&node->before, before))
        return true;
    if (!append(&node->before, before))
        return false;
    if (append(&before->after, node))
        return true;
    sim_nodes_remove(&node->before, before);
    return false;
}

void sim_node_not_after(struct CUgraphNode_st *node, struct CUgraphNode_st *before)
{
    sim_nodes_remove(&node->before, before);
    sim_nodes_remove(&before->after, node);
}

static void detach(struct CUgraphNode_st *node)
{
    while (node->before.count)
        sim_node_not_after(node, node->before.at[0]);
    while (node->after.count)
        sim_node_not_after(node->after.at[0], node);
}

struct CUgraphNode_st *sim_graph_add(struct sim_graph *graph,
                                     struct sim_shared_work *work,
                                     const struct sim_nodes *before)
{
    struct CUgraphNode_st *node = calloc(1, sizeof(*node));
    bool there = node && append(&graph->nodes, node);

    if (!there) {
        free(node);
        return NULL;
    }
    node->graph = graph;
    node->number = graph->numbers++;
    for (size_t i = 0; before && i < before->count && there; i++)
        there = sim_node_after(node, before->at[i]);
    if (!there) {
        sim_graph_remove(node);
        return NULL;
    }
    node->work = work;
    return node;
}

void sim_graph_remove(struct CUgraphNode_st *node)
{
    detach(node);
    sim_nodes_remove(&node->graph->nodes, node);
    free_node(node);
}

static bool copy_node(struct sim_graph *graph, struct CUgraphNode_st *node,
                      struct CUgraphNode_st **copies)
{
    struct CUgraphNode_st *copy =
        sim_graph_add(graph, sim_shared_work_hold(node->work), NULL);

    if (!copy) {
        sim_shared_work_release(node->work);
        return false;
    }
    copy->number = node->number;
    node->place = graph->nodes.count - 1;
    copies[node->place] = copy;
    if (node->child)
        copy->child = sim_graph_clone(node->child);
    return !node->child || copy->child;
}

struct sim_graph *sim_graph_clone(const struct sim_graph *graph)
{
    struct sim_graph *clone = create_unnamed();
    struct CUgraphNode_st **copies =
        calloc(graph->nodes.count + 1, sizeof(struct CUgraphNode_st *));
    bool done = clone && copies;

    for (size_t i = 0; done && i < graph->nodes.count; i++)
        done = copy_node(clone, graph->nodes.at[i], copies);
    for (size_t i = 0; done && i < graph->nodes.count; i++) {
        const struct sim_nodes *before = &graph->nodes.at[i]->before;

        for (size_t j = 0; done && j < before->count; j++)
            done = sim_node_after(copies[i], copies[before->at[j]->place]);
    }
    for (size_t i = 0; done && i < graph->held_count; i++)
        done = sim_graph_retain(clone, graph->held[i].object, 1);
    free(copies);
    if (done) {
        clone->numbers = graph->numbers;
        return clone;
    }
    sim_graph_destroy(clone);
    return NULL;
}

cudaGraph_t sim_graph_name(struct sim_graph *graph)
{
    if (!graph->handle)
        graph->handle = sim_handles_add(&handles, graph);
    return graph->handle;
}

bool sim_graph_mark(struct sim_graph *graph, const struct sim_nodes *nodes)
{
    struct sim_nodes left = {NULL, 0, 0};
    bool done = true;

    for (size_t i = 0; i < graph->nodes.count; i++)
        graph->nodes.at[i]->marked = false;
    for (size_t i = 0; done && i < nodes->count; i++)
        done = append(&left, nodes->at[i]);
    while (done && left.count) {
        struct CUgraphNode_st *node = left.at[--left.count];

        if (node->marked)
            continue;
        node->marked = true;
        for (size_t i = 0; done && i < node->before.count; i++)
            done = append(&left, node->before.at[i]);
    }
    sim_nodes_finish(&left);
    return done;
}

static struct sim_held *find_held(const struct sim_graph *graph,
                                  const struct sim_shared_work *object)
{
    for (size_t i = 0; i < graph->held_count; i++)
        if (graph->held[i].object == object)
            return &graph->held[i];
    return NULL;
}

bool sim_graph_retain(struct sim_graph *graph, struct sim_shared_work *object,
                      unsigned count)
{
    struct sim_held *held = find_held(graph, object);

    if (!held) {
        held = realloc(graph->held, (graph->held_count + 1) * sizeof(*held));
        if (!held)
            return false;
        graph->held = held;
        held += graph->held_count++;
        *held = (struct sim_held){object, 0};
    }
    held->count += count;
    object->references += count;
    return true;
}

bool sim_graph_let_go(struct sim_graph *graph, const struct sim_shared_work *object,
                      unsigned count)
{
    struct sim_held *held = find_held(graph, object);

    if (!held || held->count < count)
        return false;
    for (unsigned i = 0; i < count; i++)
        sim_shared_work_release(held->object);
    held->count -= count;
    if (!held->count)
        *held = graph->held[--graph->held_count];
    return true;
}

const char *sim_node_type_name(enum cudaGraphNodeType type)
{
    static const char *const names[] = {
        [cudaGraphNodeTypeKernel] = "kernel",
        [cudaGraphNodeTypeMemcpy] = "memcpy",
        [cudaGraphNodeTypeMemset] = "memset",
        [cudaGraphNodeTypeHost] = "host",
        [cudaGraphNodeTypeGraph] = "graph",
        [cudaGraphNodeTypeEmpty] = "empty",
        [cudaGraphNodeTypeWaitEvent] = "wait event",
        [cudaGraphNodeTypeEventRecord] = "event record",
    };

    return (size_t)type < sizeof(names) / sizeof(names[0]) ? names[type] : "other";
}

void sim_graph_print(const struct sim_graph *graph, FILE *file)
{
    fprintf(file, "digraph graph_%u {\n", graph->id);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct CUgraphNode_st *node = graph->nodes.at[i];

        fprintf(file, "  node_%u [label=\"%u\\n%s\\n%s\"];\n", node->number, node->number,
                sim_node_type_name(node->work->task.type), node->work->task.name);
        for (size_t j = 0; j < node->before.count; j++)
            fprintf(file, "  node_%u -> node_%u;\n", node->before.at[j]->number,
                    node->number);
    }
    fprintf(file, "}\n");
}
