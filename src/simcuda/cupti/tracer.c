// SPDX-License-Identifier: Apache-2.0
#include "simcuda/cupti/tracer.h"

#include <cupti.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "simcuda/cupti/external.h"
#include "simcuda/cupti/names.h"
#include "simcuda/cupti/record.h"
#include "simcuda/cupti/subscriber.h"
#include "simcuda/cupti/time.h"
#include "simcuda/runtime/memory.h"
#include "simcuda/runtime/trace.h"
#include "simcuda/simcuda.h"

// The legacy stream's number, as on a card.
enum { LEGACY_STREAM = 7 };

static __thread uint64_t call_start;

uint32_t sim_cupti_context(int device)
{
    return (uint32_t)device + 1;
}

// --- Calls

static const struct {
    const char *name;
    CUpti_ActivitySynchronizationType type;
} waits[] = {
    {"cudaEventSynchronize", CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE},
    {"cudaStreamWaitEvent", CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT},
    {"cudaStreamSynchronize", CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE},
    {"cudaDeviceSynchronize", CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE},
};

static void enter(const struct sim_traced_call *call)
{
    sim_time_enter();
    call_start = sim_time_host();
    sim_subscriber_tell(call, CUPTI_API_ENTER);
}

static void add_wait(const struct sim_traced_call *call, uint64_t end)
{
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
        if (!strcmp(call->name, waits[i].name))
            sim_records_add(&(union sim_record){
                .wait = {
                    .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                    .type = waits[i].type,
                    .start = call_start,
                    .end = end,
                    .correlationId = call->correlation,
                    .contextId = sim_cupti_context(call->device),
                    .streamId = (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE,
                    .cudaEventId = (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE,
                    .returnValue = (uint32_t)call->result,
                }});
}

static void add_call(const struct sim_traced_call *call, uint64_t end)
{
    CUpti_CallbackDomain domain;
    const CUpti_CallbackId cbid = sim_cbid_of(call->name, &domain);
    const CUpti_ActivityKind kind = domain == CUPTI_CB_DOMAIN_DRIVER_API
                                        ? CUPTI_ACTIVITY_KIND_DRIVER
                                        : CUPTI_ACTIVITY_KIND_RUNTIME;

    if (!cbid || !sim_records_wants(kind))
        return;
    sim_external_add(call->correlation);
    sim_records_add(&(union sim_record){.api = {
                                            .kind = kind,
                                            .cbid = cbid,
                                            .start = call_start,
                                            .end = end,
                                            .processId = (uint32_t)getpid(),
                                            .threadId = (uint32_t)pthread_self(),
                                            .correlationId = call->correlation,
                                            .returnValue = (uint32_t)call->result,
                                        }});
}

static void leave(const struct sim_traced_call *call)
{
    sim_time_hold(strstr(call->name, "Synchronize"));

    const uint64_t end = sim_time_host();

    add_call(call, end);
    if (sim_records_wants(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION))
        add_wait(call, end);
    sim_subscriber_tell(call, CUPTI_API_EXIT);
    sim_records_settle();
}

// --- Work

static uint32_t stream_of(const struct sim_traced_work *work)
{
    return work->stream ? work->stream : LEGACY_STREAM;
}

static uint8_t memory_of(int place)
{
    switch ((enum sim_place)place) {
    case SIM_PINNED:
    case SIM_REGISTERED:
        return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    case SIM_MANAGED:
        return CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
    case SIM_DEVICE:
        return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    case SIM_PAGEABLE:
        break;
    }
    return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
}

static uint8_t direction_of(const struct sim_traced_work *work)
{
    const bool from_device = work->moved.from == SIM_DEVICE,
               to_device = work->moved.to == SIM_DEVICE;

    if (from_device)
        return to_device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD
                         : CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    return to_device ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

static void add_kernel(const struct sim_traced_work *work)
{
    const bool concurrent = sim_records_wants(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);

    if (!concurrent && !sim_records_wants(CUPTI_ACTIVITY_KIND_KERNEL))
        return;
    sim_records_add(&(union sim_record){
        .kernel = {
            .kind = concurrent ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
                               : CUPTI_ACTIVITY_KIND_KERNEL,
            .registersPerThread = 32,
            .start = sim_time_device(work->start_ns),
            .end = sim_time_device(work->end_ns),
            .deviceId = (uint32_t)work->device,
            .contextId = sim_cupti_context(work->device),
            .streamId = stream_of(work),
            // What an operator's kernels are launched with is not known.
            .gridX = 1,
            .gridY = 1,
            .gridZ = 1,
            .blockX = 1,
            .blockY = 1,
            .blockZ = 1,
            .correlationId = work->correlation,
            .name = sim_name_keep(work->name),
            .graphNodeId = work->node,
        }});
}

static void add_peer_copy(const struct sim_traced_work *work)
{
    sim_records_add(
        &(union sim_record){.peer = {
                                .kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
                                .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,
                                .srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                                .dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                                .bytes = work->moved.bytes,
                                .start = sim_time_device(work->start_ns),
                                .end = sim_time_device(work->end_ns),
                                .deviceId = (uint32_t)work->device,
                                .contextId = sim_cupti_context(work->device),
                                .streamId = stream_of(work),
                                .srcDeviceId = (uint32_t)work->peer,
                                .srcContextId = sim_cupti_context(work->peer),
                                .dstDeviceId = (uint32_t)work->device,
                                .dstContextId = sim_cupti_context(work->device),
                                .correlationId = work->correlation,
                                .graphNodeId = work->node,
                            }});
}

static void add_copy(const struct sim_traced_work *work)
{
    // As NVIDIA's documentation has it, a copy between devices is of a kind of its own,
    // and recorded with the others.
    if (work->peer >= 0 && (sim_records_wants(CUPTI_ACTIVITY_KIND_MEMCPY2) ||
                            sim_records_wants(CUPTI_ACTIVITY_KIND_MEMCPY))) {
        add_peer_copy(work);
        return;
    }
    if (!sim_records_wants(CUPTI_ACTIVITY_KIND_MEMCPY))
        return;
    sim_records_add(&(union sim_record){.copy = {
                                            .kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                                            .copyKind = direction_of(work),
                                            .srcKind = memory_of(work->moved.from),
                                            .dstKind = memory_of(work->moved.to),
                                            .bytes = work->moved.bytes,
                                            .start = sim_time_device(work->start_ns),
                                            .end = sim_time_device(work->end_ns),
                                            .deviceId = (uint32_t)work->device,
                                            .contextId = sim_cupti_context(work->device),
                                            .streamId = stream_of(work),
                                            .correlationId = work->correlation,
                                            .graphNodeId = work->node,
                                            .copyCount = 1,
                                        }});
}

static void add_fill(const struct sim_traced_work *work)
{
    if (!sim_records_wants(CUPTI_ACTIVITY_KIND_MEMSET))
        return;
    sim_records_add(&(union sim_record){.fill = {
                                            .kind = CUPTI_ACTIVITY_KIND_MEMSET,
                                            .bytes = work->moved.bytes,
                                            .start = sim_time_device(work->start_ns),
                                            .end = sim_time_device(work->end_ns),
                                            .deviceId = (uint32_t)work->device,
                                            .contextId = sim_cupti_context(work->device),
                                            .streamId = stream_of(work),
                                            .correlationId = work->correlation,
                                            .memoryKind = memory_of(work->moved.to),
                                            .graphNodeId = work->node,
                                        }});
}

static void add_work(const struct sim_traced_work *work)
{
    switch (work->kind) {
    case SIM_TRACED_KERNEL:
        add_kernel(work);
        break;
    case SIM_TRACED_COPY:
        add_copy(work);
        break;
    case SIM_TRACED_FILL:
        add_fill(work);
        break;
    }
}

static const struct sim_tracer tracer = {enter, leave, add_work};

// --- Attached or not

static void forget(void)
{
    sim_tracer_set(NULL);
    sim_records_forget();
}

static void watch_forks(void)
{
    if (pthread_atfork(NULL, NULL, forget))
        sim_fail("no memory for a fork handler");
}

void sim_cupti_attach(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    sim_tracer_set(sim_records_wants_any() || sim_subscriber_is_there() ? &tracer : NULL);
}
