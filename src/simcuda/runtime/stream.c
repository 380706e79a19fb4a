// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "simcuda/check/check.h"
#include "simcuda/order/queue.h"
#include "simcuda/runtime/cost.h"
#include "simcuda/runtime/device.h"
#include "simcuda/runtime/values.h"
#include "simcuda/simcuda.h"

// Lower is more urgent, as on every card since Volta.
enum { LEAST_PRIORITY = 0, GREATEST_PRIORITY = -5 };

static cudaError_t create_stream(cudaStream_t *stream, unsigned flags, int priority)
{
    if (!stream || flags & ~(unsigned)cudaStreamNonBlocking)
        return cudaErrorInvalidValue;
    if (priority > LEAST_PRIORITY)
        priority = LEAST_PRIORITY;
    if (priority < GREATEST_PRIORITY)
        priority = GREATEST_PRIORITY;
    return sim_stream_create(sim_device_activate()->index, flags, priority, stream);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    SIM_ENTER();
    return sim_error(create_stream(stream, cudaStreamDefault, LEAST_PRIORITY));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    SIM_ENTER();
    return sim_error(create_stream(stream, flags, LEAST_PRIORITY));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags,
                                         int priority)
{
    SIM_ENTER();
    return sim_error(create_stream(stream, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    SIM_ENTER();
    return sim_error(sim_stream_destroy(stream));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    SIM_ENTER();
    if (!priority)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_stream_get(stream, NULL, NULL, priority));
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
    SIM_ENTER();
    if (!flags)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_stream_get(stream, NULL, flags, NULL));
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    SIM_ENTER();
    if (!device)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_stream_get(stream, device, NULL, NULL));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    SIM_ENTER();
    if (least)
        *least = LEAST_PRIORITY;
    if (greatest)
        *greatest = GREATEST_PRIORITY;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    SIM_ENTER();
    sim_device_activate();
    return sim_error(sim_queue_synchronize(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    SIM_ENTER();
    sim_device_activate();
    return sim_error(sim_queue_query(stream));
}

cudaError_t cudaDeviceSynchronize(void)
{
    SIM_ENTER();
    const int device = sim_device_activate()->index;
    const cudaError_t error = sim_capture_observe_device(device);

    return sim_error(error ? error : sim_queue_synchronize_device(device));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags)
{
    SIM_ENTER();
    if (flags & ~(unsigned)cudaEventWaitExternal)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_event_wait(event, stream, flags & cudaEventWaitExternal));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    SIM_ENTER();
    const unsigned known =
        cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;

    if (!event || flags & ~known)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_event_create(sim_device_activate()->index, flags, event));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    SIM_ENTER();
    if (!event)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_event_create(sim_device_activate()->index, 0, event));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    SIM_ENTER();
    return sim_error(sim_event_destroy(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    SIM_ENTER();
    return sim_error(sim_event_record(event, stream, false));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned int flags)
{
    SIM_ENTER();
    if (flags & ~(unsigned)cudaEventRecordExternal)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_event_record(event, stream, flags & cudaEventRecordExternal));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    SIM_ENTER();
    return sim_error(sim_event_synchronize(event));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    SIM_ENTER();
    return sim_error(sim_event_query(event));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    SIM_ENTER();
    uint64_t ns = 0;

    if (!ms)
        return sim_error(cudaErrorInvalidValue);

    const cudaError_t error = sim_event_elapsed(from, to, &ns);

    // Events of two streams may have passed in the other order.
    if (!error)
        *ms = (float)(int64_t)ns / 1e6f;
    return sim_error(error);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *arg)
{
    SIM_ENTER();
    if (!function)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(sim_queue_submit(stream, &(struct sim_task){
                                                  .name = "host function",
                                                  .line = sim_check_line(),
                                                  .run = function,
                                                  .arg = arg,
                                                  .calls_user = true,
                                                  .type = cudaGraphNodeTypeHost,
                                              }));
}

struct callback {
    cudaStream_t stream;
    cudaStreamCallback_t function;
    void *arg;
};

static void run_callback(void *arg)
{
    const struct callback *callback = arg;

    callback->function(callback->stream, cudaSuccess, callback->arg);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function,
                                  void *arg, unsigned int flags)
{
    SIM_ENTER();
    if (!function || flags)
        return sim_error(cudaErrorInvalidValue);

    struct callback *callback = malloc(sizeof(*callback));

    if (!callback)
        return sim_error(cudaErrorMemoryAllocation);
    *callback = (struct callback){stream, function, arg};
    return sim_error(sim_queue_submit(stream, &(struct sim_task){
                                                  .name = "stream callback",
                                                  .line = sim_check_line(),
                                                  .run = run_callback,
                                                  .destroy = free,
                                                  .arg = callback,
                                                  .calls_user = true,
                                                  .uncapturable = true,
                                              }));
}

int sim_submit(void *stream, const struct sim_work *work,
               const struct sim_access *accesses, size_t count)
{
    SIM_TRACE("cudaLaunchKernel");
    const cudaError_t refused = sim_enter("sim_submit", __builtin_return_address(0));

    if (refused)
        return (int)refused;

    const struct sim_effort effort =
        work->effort ? *work->effort : sim_effort_of(accesses, count);
    const bool runs = sim_values_pass(work, accesses, count, sim_captures(stream));

    return (int)sim_error(sim_queue_submit(stream, &(struct sim_task){
                                                       .name = work->name,
                                                       .line = sim_check_line(),
                                                       .run = runs ? work->run : NULL,
                                                       .destroy = work->destroy,
                                                       .arg = work->arg,
                                                       .cost = sim_cost_work(&effort),
                                                       .lost = {accesses, count, false},
                                                   }));
}

bool sim_captures(void *stream)
{
    return sim_stream_is_captured(stream);
}

int sim_drain(void *stream)
{
    return (int)cudaStreamSynchronize(stream);
}
