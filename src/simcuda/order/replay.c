// SPDX-License-Identifier: Apache-2.0
// Graphs made ready to run, and their launches. The plan of a graph is a list of steps,
// each behind those that it comes after, with child graphs laid out flat.
#include <stdlib.h>
#include <string.h>

#include "simcuda/check/check.h"
#include "simcuda/order/capture.h"
#include "simcuda/order/handles.h"
#include "simcuda/runtime/values.h"
#include "simcuda/simcuda.h"

#define NOWHERE SIZE_MAX

struct step {
    struct sim_shared_work *work;
    size_t first; // of `before`
    size_t count;
    bool followed; // by another step
};

// Referenced by what was instantiated and by each launch that is queued.
struct plan {
    unsigned references;
    struct step *steps;
    size_t *before; // places of steps
    size_t count, capacity, before_count, before_capacity;
};

struct exec {
    unsigned id;
    unsigned long long flags;
    struct sim_graph *graph; // a clone of what it was made from
    struct plan *plan;
    struct sim_entry *last; // of its last launch, or NULL
};

static struct sim_handles handles = {.tag = 12};
static unsigned ids;

static void release_plan(struct plan *plan)
{
    if (!plan || --plan->references)
        return;
    for (size_t i = 0; i < plan->count; i++)
        sim_shared_work_release(plan->steps[i].work);
    free(plan->steps);
    free(plan->before);
    free(plan);
}

static bool add_before(struct plan *plan, size_t place)
{
    if (place == NOWHERE)
        return true;
    if (plan->before_count == plan->before_capacity) {
        const size_t capacity = plan->before_capacity * 2 + 64;
        size_t *before = realloc(plan->before, capacity * sizeof(*before));

        if (!before)
            return false;
        plan->before = before;
        plan->before_capacity = capacity;
    }
    plan->before[plan->before_count++] = place;
    plan->steps[place].followed = true;
    plan->steps[plan->count - 1].count++;
    return true;
}

static bool add_step(struct plan *plan, struct sim_shared_work *work)
{
    if (plan->count == plan->capacity) {
        const size_t capacity = plan->capacity * 2 + 64;
        struct step *steps = realloc(plan->steps, capacity * sizeof(*steps));

        if (!steps)
            return false;
        plan->steps = steps;
        plan->capacity = capacity;
    }
    plan->steps[plan->count++] =
        (struct step){sim_shared_work_hold(work), plan->before_count, 0, false};
    return true;
}

static cudaError_t plan_graph(struct plan *plan, const struct sim_graph *graph,
                              size_t after);

// A child's nodes come between two steps of its node's.
static cudaError_t plan_child(struct plan *plan, const struct CUgraphNode_st *node)
{
    const size_t begin = plan->count - 1;
    const cudaError_t error = plan_graph(plan, node->child, begin);

    if (error)
        return error;
    if (!add_step(plan, node->work) || !add_before(plan, begin))
        return cudaErrorMemoryAllocation;
    for (size_t i = 0; i < node->child->nodes.count; i++)
        if (!node->child->nodes.at[i]->after.count &&
            !add_before(plan, node->child->nodes.at[i]->place))
            return cudaErrorMemoryAllocation;
    return cudaSuccess;
}

static cudaError_t plan_node(struct plan *plan, struct CUgraphNode_st *node, size_t after)
{
    bool there = add_step(plan, node->work);

    if (there && !node->before.count)
        there = add_before(plan, after);
    for (size_t i = 0; there && i < node->before.count; i++)
        there = add_before(plan, node->before.at[i]->place);
    if (!there)
        return cudaErrorMemoryAllocation;

    const cudaError_t error = node->child ? plan_child(plan, node) : cudaSuccess;

    node->place = plan->count - 1;
    return error;
}

// In order of creation so far as the edges allow. `place` counts what a node still waits
// for until the node is planned. cudaErrorInvalidValue: a cycle.
static cudaError_t plan_graph(struct plan *plan, const struct sim_graph *graph,
                              size_t after)
{
    const size_t count = graph->nodes.count;
    struct CUgraphNode_st **ready = malloc((count + 1) * sizeof(struct CUgraphNode_st *));
    cudaError_t error = ready ? cudaSuccess : cudaErrorMemoryAllocation;
    size_t found = 0, done = 0;

    for (size_t i = 0; ready && i < count; i++) {
        graph->nodes.at[i]->place = graph->nodes.at[i]->before.count;
        if (!graph->nodes.at[i]->before.count)
            ready[found++] = graph->nodes.at[i];
    }
    for (; done < found && !error; done++) {
        struct CUgraphNode_st *node = ready[done];

        error = plan_node(plan, node, after);
        for (size_t i = 0; i < node->after.count; i++)
            if (!--node->after.at[i]->place)
                ready[found++] = node->after.at[i];
    }
    free(ready);
    return !error && done < count ? cudaErrorInvalidValue : error;
}

static struct plan *create_plan(const struct sim_graph *graph, cudaError_t *error)
{
    struct plan *plan = calloc(1, sizeof(*plan));

    *error = cudaErrorMemoryAllocation;
    if (!plan)
        return NULL;
    plan->references = 1;
    *error = plan_graph(plan, graph, NOWHERE);
    if (!*error)
        return plan;
    release_plan(plan);
    return NULL;
}

static void destroy(struct exec *exec)
{
    sim_graph_destroy(exec->graph);
    release_plan(exec->plan);
    sim_entry_release(exec->last);
    free(exec);
}

static cudaError_t create(const struct sim_graph *graph, unsigned long long flags,
                          cudaGraphExec_t *handle)
{
    cudaError_t error = cudaErrorMemoryAllocation;
    struct exec *exec = calloc(1, sizeof(*exec));

    if (!exec)
        return error;
    exec->id = ++ids;
    exec->flags = flags;
    exec->graph = sim_graph_clone(graph);
    if (exec->graph)
        exec->plan = create_plan(exec->graph, &error);
    if (exec->plan)
        *handle = sim_handles_add(&handles, exec);
    if (*handle)
        return cudaSuccess;
    destroy(exec);
    return error ? error : cudaErrorMemoryAllocation;
}

cudaError_t sim_exec_create(cudaGraph_t graph, unsigned long long flags,
                            cudaGraphExec_t *handle)
{
    *handle = NULL;
    sim_queue_lock();
    const struct sim_graph *from = sim_graph_find(graph);
    const cudaError_t error = from ? create(from, flags, handle) : cudaErrorInvalidValue;
    sim_queue_unlock();
    return error;
}

static enum cudaGraphExecUpdateResult compare(const struct plan *old,
                                              const struct plan *new)
{
    if (old->count != new->count || old->before_count != new->before_count)
        return cudaGraphExecUpdateErrorTopologyChanged;
    for (size_t i = 0; i < old->count; i++) {
        if (old->steps[i].first != new->steps[i].first)
            return cudaGraphExecUpdateErrorTopologyChanged;
        if (old->steps[i].work->task.type != new->steps[i].work->task.type)
            return cudaGraphExecUpdateErrorNodeTypeChanged;
    }
    return old->before_count && memcmp(old->before, new->before,
                                       old->before_count * sizeof(*old->before)) != 0
               ? cudaGraphExecUpdateErrorTopologyChanged
               : cudaGraphExecUpdateSuccess;
}

// What is queued already keeps the plan that it was launched with.
static cudaError_t update(struct exec *exec, const struct sim_graph *graph,
                          enum cudaGraphExecUpdateResult *result)
{
    cudaError_t error = cudaErrorMemoryAllocation;
    struct sim_graph *clone = sim_graph_clone(graph);
    struct plan *plan = clone ? create_plan(clone, &error) : NULL;

    *result = plan ? compare(exec->plan, plan) : cudaGraphExecUpdateError;
    if (plan && *result)
        error = cudaErrorGraphExecUpdateFailure;
    if (error) {
        sim_graph_destroy(clone);
        release_plan(plan);
        return error;
    }
    sim_graph_destroy(exec->graph);
    release_plan(exec->plan);
    exec->graph = clone;
    exec->plan = plan;
    return cudaSuccess;
}

cudaError_t sim_exec_update(cudaGraphExec_t handle, cudaGraph_t graph,
                            enum cudaGraphExecUpdateResult *result)
{
    cudaError_t error = cudaErrorInvalidValue;

    *result = cudaGraphExecUpdateError;
    sim_queue_lock();
    struct exec *exec = sim_handles_find(&handles, handle);
    const struct sim_graph *from = sim_graph_find(graph);

    if (exec && from)
        error = update(exec, from, result);
    sim_queue_unlock();
    sim_works_sweep();
    return error;
}

cudaError_t sim_exec_destroy(cudaGraphExec_t handle)
{
    sim_queue_lock();
    struct exec *exec = sim_handles_find(&handles, handle);

    if (exec) {
        sim_handles_remove(&handles, handle);
        destroy(exec);
    }
    sim_queue_unlock();
    sim_works_sweep();
    return exec ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t sim_exec_get(cudaGraphExec_t handle, unsigned *id, unsigned long long *flags)
{
    sim_queue_lock();
    const struct exec *exec = sim_handles_find(&handles, handle);

    if (exec && id)
        *id = exec->id;
    if (exec && flags)
        *flags = exec->flags;
    sim_queue_unlock();
    return exec ? cudaSuccess : cudaErrorInvalidValue;
}

static void run_end(void *arg)
{
    sim_queue_lock();
    release_plan(arg);
    sim_queue_unlock();
    sim_works_sweep();
}

static void order(struct sim_entry *entry, struct sim_entry *before)
{
    if (!sim_entry_after(entry, before))
        sim_fail("no memory to launch a graph");
}

static struct sim_entry *create_step(const struct plan *plan, size_t place,
                                     struct sim_entry *begin, struct sim_entry **entries)
{
    const struct step *step = &plan->steps[place];
    struct sim_task task = step->work->task;

    task.destroy = NULL; // the plan's
    struct sim_entry *entry = sim_entry_create(&task);

    if (!entry)
        sim_fail("no memory to launch a graph of %zu nodes", plan->count);
    entry->stream = begin->stream;
    entry->device = begin->device;
    entry->replayed = true;
    entry->lane = begin->lane + ((unsigned)place + 1) * SIM_NODE_LANES;
    if (!step->count)
        order(entry, begin);
    for (size_t i = 0; i < step->count; i++)
        order(entry, entries[plan->before[step->first + i]]);
    if (task.type == cudaGraphNodeTypeWaitEvent) {
        struct sim_entry *recorded = sim_event_recorded(step->work->event);

        order(entry, recorded);
        sim_entry_release(recorded);
    }
    if (task.type == cudaGraphNodeTypeEventRecord)
        sim_event_replayed(step->work->event, entry);
    sim_check_place(entry, begin);
    return entry;
}

// All entries and their edges are made before the lock is let go of, so that nobody else's
// work on the stream comes between.
static void enqueue(struct plan *plan, struct sim_entry *begin, struct sim_entry *end)
{
    struct sim_entry **entries = malloc((plan->count + 1) * sizeof(struct sim_entry *));

    if (!entries)
        sim_fail("no memory to launch a graph of %zu nodes", plan->count);
    for (size_t i = 0; i < plan->count; i++) {
        entries[i] = create_step(plan, i, begin, entries);
        if (!plan->steps[i].followed)
            order(end, entries[i]);
    }
    sim_entry_enqueue(begin);
    for (size_t i = 0; i < plan->count; i++) {
        sim_entry_enqueue(entries[i]);
        sim_entry_release(entries[i]);
    }
    sim_entry_enqueue(end);
    free(entries);
}

static void launch(struct exec *exec, struct sim_stream *stream)
{
    static const struct sim_task begin_task = {.name = "cudaGraphLaunch"};
    const struct sim_task end_task = {
        .name = "cudaGraphLaunch", .run = run_end, .arg = exec->plan};
    struct sim_entry *begin = sim_stream_prepare(stream, &begin_task, exec->last);
    struct sim_entry *end = begin ? sim_stream_prepare(stream, &end_task, NULL) : NULL;

    if (!end)
        sim_fail("no memory to launch a graph");
    exec->plan->references++;
    enqueue(exec->plan, begin, end);
    sim_entry_release(exec->last);
    exec->last = sim_entry_hold(end);
    sim_entry_throttle(end);
    sim_entry_release(begin);
    sim_entry_release(end);
}

static void lose_values(const struct plan *plan)
{
    if (sim_values_always_lost())
        sim_values_lose(&(struct sim_lost){.all = true});
    for (size_t i = 0; i < plan->count; i++)
        sim_values_lose(&plan->steps[i].work->task.lost);
}

cudaError_t sim_exec_launch(cudaGraphExec_t handle, cudaStream_t stream_handle)
{
    cudaError_t error = cudaErrorInvalidValue;

    if (sim_queue_inside())
        return cudaErrorNotPermitted;
    sim_queue_lock();
    struct exec *exec = sim_handles_find(&handles, handle);
    struct sim_stream *stream = sim_stream_find(stream_handle);

    if (exec)
        error = stream ? sim_capture_admit(stream) : cudaErrorInvalidResourceHandle;
    if (!error)
        sim_timeline_spend(SIM_HOST_LAUNCH_NS);
    if (!error && stream->capture) {
        error = sim_capture_add_child(stream, exec->graph);
    } else if (!error) {
        lose_values(exec->plan);
        launch(exec, stream);
    }
    sim_queue_unlock();
    return error;
}
