// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/trace.h"

#include <stdatomic.h>
#include <string.h>

#include "simcuda/order/stream.h"
#include "simcuda/runtime/device.h"
#include "simcuda/simcuda.h"

static _Atomic(const struct sim_tracer *) tracer;

// The thread's outermost call.
static __thread struct {
    struct sim_traced_call call;
    unsigned depth;
    bool worked; // something was submitted
} current;

void sim_tracer_set(const struct sim_tracer *to)
{
    atomic_store(&tracer, to);
}

struct sim_call sim_trace_enter(const char *name)
{
    static atomic_uint correlations;
    const struct sim_tracer *const told =
        atomic_load_explicit(&tracer, memory_order_relaxed);

    if (!told)
        return (struct sim_call){NULL};
    if (!current.depth++) {
        current.worked = false;
        current.call = (struct sim_traced_call){
            .name = name,
            .correlation = atomic_fetch_add(&correlations, 1) + 1,
            .device = sim_device_current()->index,
        };
        told->enter(&current.call);
    }
    return (struct sim_call){name};
}

// What the framework's host code calls between operators' bodies and does nothing: on a
// card there would be work, which is the body's here.
static bool is_idle(const char *name)
{
    return sim_in_host_pass() && !current.worked &&
           (!strncmp(name, "cudaLaunch", 10) || !strncmp(name, "cudaMemcpy", 10) ||
            !strncmp(name, "cudaMemset", 10));
}

void sim_trace_leave(struct sim_call *call)
{
    if (!call->name || --current.depth)
        return;

    const struct sim_tracer *const told = atomic_load(&tracer);

    if (told && !is_idle(current.call.name))
        told->leave(&current.call);
    current.call.correlation = 0;
}

void sim_trace_failed(cudaError_t error)
{
    current.call.result = error;
}

// --- Work

static enum sim_traced_kind kind_of(const struct sim_task *task)
{
    return task->type == cudaGraphNodeTypeMemcpy   ? SIM_TRACED_COPY
           : task->type == cudaGraphNodeTypeMemset ? SIM_TRACED_FILL
                                                   : SIM_TRACED_KERNEL;
}

void sim_trace_entry(const struct sim_entry *entry)
{
    const struct sim_tracer *const told =
        atomic_load_explicit(&tracer, memory_order_relaxed);
    const struct sim_task *const task = &entry->task;
    const unsigned lane = entry->lane % SIM_NODE_LANES;

    if (!told)
        return;
    current.worked = true;
    if (task->cost.engine == SIM_NOTHING && task->type != cudaGraphNodeTypeMemcpy)
        return;
    told->work(&(struct sim_traced_work){
        .kind = kind_of(task),
        .name = task->name,
        .correlation = current.depth ? current.call.correlation : 0,
        .start_ns = entry->when.start_ns,
        .end_ns = entry->when.end_ns,
        .device = entry->device,
        .peer = task->cost.engine == SIM_COPY_PEER ? task->cost.peer : -1,
        .stream = lane < SIM_DEVICES_MAX ? 0 : lane,
        .node = entry->lane / SIM_NODE_LANES,
        .moved = task->moved,
    });
}
