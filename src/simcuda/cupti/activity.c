// SPDX-License-Identifier: Apache-2.0
// CUPTI's activity API, as NVIDIA's documentation describes it.
#include <cupti.h>

#include "simcuda/cupti/enter.h"
#include "simcuda/cupti/record.h"
#include "simcuda/cupti/subscriber.h"
#include "simcuda/cupti/time.h"
#include "simcuda/cupti/tracer.h"

AS_EXPORT CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version)
{
    CUPTI_ENTER();
    if (!version)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *timestamp)
{
    CUPTI_ENTER();
    if (!timestamp)
        return CUPTI_ERROR_INVALID_PARAMETER;

    const struct sim_scale scale = sim_time_scale();

    *timestamp = sim_time_scaled(&scale, sim_time_host());
    return CUPTI_SUCCESS;
}

// What was recorded by another clock is handed over first.
AS_EXPORT CUptiResult CUPTIAPI
cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock)
{
    CUPTI_ENTER();
    if (!clock)
        return CUPTI_ERROR_INVALID_PARAMETER;
    sim_records_deliver();
    sim_time_use(clock);
    return CUPTI_SUCCESS;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete)
{
    CUPTI_ENTER();
    if (!request || !complete)
        return CUPTI_ERROR_INVALID_PARAMETER;
    sim_records_deliver();
    sim_records_use(request, complete);
    return CUPTI_SUCCESS;
}

static CUptiResult enable(CUpti_ActivityKind kind, bool on)
{
    if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
        return CUPTI_ERROR_INVALID_KIND;
    if (!sim_records_enable(kind, on))
        return CUPTI_ERROR_NOT_SUPPORTED;
    sim_cupti_attach();
    return CUPTI_SUCCESS;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
    CUPTI_ENTER();
    return enable(kind, true);
}

AS_EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind)
{
    CUPTI_ENTER();
    return enable(kind, false);
}

AS_EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag)
{
    CUPTI_ENTER();
    (void)flag;
    sim_records_deliver();
    return CUPTI_SUCCESS;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes,
                                                          CUpti_Activity **record)
{
    if (!buffer || !record)
        return CUPTI_ERROR_INVALID_PARAMETER;

    uint8_t *next = buffer;

    if (*record)
        next = (uint8_t *)*record + sim_record_bytes((*record)->kind);
    if (next >= buffer + bytes)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return sim_record_bytes((*record)->kind) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context,
                                                                 uint32_t stream,
                                                                 size_t *dropped)
{
    CUPTI_ENTER();
    (void)context, (void)stream;
    if (!dropped)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *dropped = sim_records_dropped();
    return CUPTI_SUCCESS;
}

// Sizes of device buffers and the like: there are none.
AS_EXPORT CUptiResult CUPTIAPI
cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *bytes, void *value)
{
    CUPTI_ENTER();
    (void)attribute;
    return bytes && value ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid,
                                                             uint8_t on)
{
    CUPTI_ENTER();
    (void)cbid, (void)on;
    return CUPTI_SUCCESS;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid,
                                                            uint8_t on)
{
    CUPTI_ENTER();
    (void)cbid, (void)on;
    return CUPTI_SUCCESS;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t on)
{
    CUPTI_ENTER();
    (void)on;
    return CUPTI_SUCCESS;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiFinalize(void)
{
    CUPTI_ENTER();
    for (int kind = 1; kind < CUPTI_ACTIVITY_KIND_COUNT; kind++)
        (void)sim_records_enable((CUpti_ActivityKind)kind, false);
    sim_records_deliver();
    sim_subscriber_leave();
    sim_time_use(NULL);
    return CUPTI_SUCCESS;
}
