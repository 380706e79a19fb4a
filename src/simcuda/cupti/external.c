// SPDX-License-Identifier: Apache-2.0
#include "simcuda/cupti/external.h"

#include <cupti.h>

#include "simcuda/cupti/enter.h"
#include "simcuda/cupti/record.h"

enum { DEPTH_MAX = 1024, KINDS = CUPTI_EXTERNAL_CORRELATION_KIND_SIZE };

static __thread struct {
    uint64_t ids[DEPTH_MAX];
    unsigned count; // those above DEPTH_MAX are counted only
} stacks[KINDS];

static bool is_kind(CUpti_ExternalCorrelationKind kind)
{
    return (int)kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID && (int)kind < KINDS;
}

AS_EXPORT CUptiResult CUPTIAPI
cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    CUPTI_ENTER();
    if (!is_kind(kind))
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (stacks[kind].count < DEPTH_MAX)
        stacks[kind].ids[stacks[kind].count] = id;
    stacks[kind].count++;
    return CUPTI_SUCCESS;
}

AS_EXPORT CUptiResult CUPTIAPI
cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *last)
{
    CUPTI_ENTER();
    if (!is_kind(kind))
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!stacks[kind].count)
        return CUPTI_ERROR_QUEUE_EMPTY;
    stacks[kind].count--;
    if (last)
        *last = stacks[kind].count < DEPTH_MAX ? stacks[kind].ids[stacks[kind].count] : 0;
    return CUPTI_SUCCESS;
}

void sim_external_add(uint32_t correlation)
{
    if (!sim_records_wants(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION))
        return;
    for (int kind = 1; kind < KINDS; kind++) {
        const unsigned count =
            stacks[kind].count < DEPTH_MAX ? stacks[kind].count : DEPTH_MAX;

        if (count)
            sim_records_add(&(union sim_record){
                .external = {
                    .kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                    .externalKind = (CUpti_ExternalCorrelationKind)kind,
                    .externalId = stacks[kind].ids[count - 1],
                    .correlationId = correlation,
                }});
    }
}
