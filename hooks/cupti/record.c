// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <string.h>

#include "cupti.h"
#include "layout.h"
#include "track/telemetry.h"

static uint64_t number(const uint8_t *record, size_t offset, size_t bytes)
{
    uint64_t value = 0; // the machine's order is little-endian wherever CUDA is

    memcpy(&value, record + offset, bytes);
    return value;
}

#define READER(record, name, field, offset, bytes)                                       \
    static uint64_t record##_##name(const uint8_t *at)                                   \
    {                                                                                    \
        return number(at, offset, bytes);                                                \
    }

AS_CUPTI_FIELDS(READER)

static uint64_t span(uint64_t start, uint64_t end)
{
    return end > start ? end - start : 0; // 0 and 0: not known
}

static void enter_copy(const uint8_t *at)
{
    const uint64_t way = MEMCPY_WAY(at);
    const bool in = way == AS_CUPTI_IN;

    if (in || way == AS_CUPTI_OUT)
        as_telemetry_copy(in, (in ? MEMCPY_FROM(at) : MEMCPY_TO(at)) == AS_CUPTI_PINNED,
                          MEMCPY_BYTES(at), span(MEMCPY_START(at), MEMCPY_END(at)));
}

void as_cupti_record(const uint8_t *at)
{
    switch (number(at, 0, sizeof(uint32_t))) {
    case AS_CUPTI_KERNEL:
        as_telemetry_kernel((uint32_t)KERNEL_CALL(at),
                            span(KERNEL_START(at), KERNEL_END(at)));
        break;
    case AS_CUPTI_MEMCPY:
        enter_copy(at);
        break;
    case AS_CUPTI_EXTERNAL:
        if (EXTERNAL_KIND(at) == AS_CUPTI_CUSTOM)
            as_telemetry_call((uint32_t)EXTERNAL_CALL(at), EXTERNAL_ID(at));
        break;
    default: // calls, which only give the others their numbers
        break;
    }
}
