// SPDX-License-Identifier: Apache-2.0
// Instantiated graphs, and objects of the user's that live as long as a graph.
#include <stdlib.h>

#include "simcuda/order/entry.h"
#include "simcuda/order/graph.h"
#include "simcuda/runtime/device.h"
#include "simcuda/runtime/newer.h"

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags)
{
    SIM_ENTER();
    const unsigned long long known = cudaGraphInstantiateFlagAutoFreeOnLaunch |
                                     cudaGraphInstantiateFlagUpload |
                                     cudaGraphInstantiateFlagUseNodePriority;

    if (!exec)
        return sim_error(cudaErrorInvalidValue);
    // What a kernel would launch is not to be had where none runs.
    if (flags & cudaGraphInstantiateFlagDeviceLaunch)
        return sim_error(cudaErrorNotSupported);
    if (flags & ~known)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_exec_create(graph, flags, exec));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *params)
{
    if (!params)
        return sim_error(cudaErrorInvalidValue);

    const cudaError_t error = cudaGraphInstantiateWithFlags(exec, graph, params->flags);

    params->errNode_out = NULL;
    params->result_out = error ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess;
    return error;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info)
{
    SIM_ENTER();
    if (!info)
        return sim_error(cudaErrorInvalidValue);
    *info = (cudaGraphExecUpdateResultInfo){.result = cudaGraphExecUpdateSuccess};
    return sim_error(sim_exec_update(exec, graph, &info->result));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    SIM_ENTER();
    return sim_error(sim_exec_destroy(exec));
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
    SIM_ENTER();
    if (!flags)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_exec_get(exec, NULL, flags));
}

cudaError_t cudaGraphExecGetId(cudaGraphExec_t exec, unsigned int *id)
{
    SIM_ENTER();
    if (!id)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_exec_get(exec, id, NULL));
}

// Nothing is prepared on the device, so there is nothing to send ahead.
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    SIM_ENTER();
    (void)stream;
    return sim_error(sim_exec_get(exec, NULL, NULL));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    SIM_ENTER();
    sim_device_activate();
    return sim_error(sim_exec_launch(exec, stream));
}

// --- User objects: a handle is the address of what is counted

static struct sim_shared_work *object_of(cudaUserObject_t object)
{
    return (struct sim_shared_work *)(void *)object;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *ptr, cudaHostFn_t end,
                                 unsigned int count, unsigned int flags)
{
    SIM_ENTER();
    const struct sim_task task = {.name = "user object", .destroy = end, .arg = ptr};

    // Without the flag the destructor would have to be ordered, which no card offers.
    if (!object || !end || !count || flags != cudaUserObjectNoDestructorSync)
        return sim_error(cudaErrorInvalidValue);

    struct sim_shared_work *made = sim_shared_work_create(&task);

    if (!made)
        return sim_error(cudaErrorMemoryAllocation);
    made->references = count;
    *object = (cudaUserObject_t)(void *)made;
    return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
    SIM_ENTER();
    if (!object)
        return sim_error(cudaErrorInvalidValue);
    sim_queue_lock();
    object_of(object)->references += count;
    sim_queue_unlock();
    return cudaSuccess;
}

static void release(cudaUserObject_t object, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sim_shared_work_release(object_of(object));
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
    SIM_ENTER();
    if (!object)
        return sim_error(cudaErrorInvalidValue);
    sim_queue_lock();
    const bool enough = object_of(object)->references >= count;

    if (enough)
        release(object, count);
    sim_queue_unlock();
    sim_works_sweep();
    return enough ? cudaSuccess : sim_error(cudaErrorInvalidValue);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count, unsigned int flags)
{
    SIM_ENTER();
    cudaError_t error = cudaErrorInvalidValue;

    if (!object || !count || flags & ~(unsigned)cudaGraphUserObjectMove)
        return sim_error(error);
    sim_queue_lock();
    struct sim_graph *to = sim_graph_find(graph);

    if (to)
        error = sim_graph_retain(to, object_of(object), count)
                    ? cudaSuccess
                    : cudaErrorMemoryAllocation;
    if (!error && flags & cudaGraphUserObjectMove)
        release(object, count);
    sim_queue_unlock();
    return sim_error(error);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count)
{
    SIM_ENTER();
    sim_queue_lock();
    struct sim_graph *from = sim_graph_find(graph);
    const bool held = from && object && sim_graph_let_go(from, object_of(object), count);

    sim_queue_unlock();
    sim_works_sweep();
    return held ? cudaSuccess : sim_error(cudaErrorInvalidValue);
}
