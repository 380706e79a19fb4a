// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <string.h>

#include "../../hooks/cupti/cupti.h"
#include "../../hooks/cupti/layout.h"
#include "track/place.h"
#include "track/telemetry.h"

static uint8_t record[256];

static void put(size_t offset, uint64_t value, size_t bytes)
{
    memcpy(record + offset, &value, bytes);
}

#define PUT(of, name, field, offset, bytes)                                              \
    static void put_##of##_##name(uint64_t value)                                        \
    {                                                                                    \
        put(offset, value, bytes);                                                       \
    }

AS_CUPTI_FIELDS(PUT)

// What stands in fields that nobody reads must not matter.
static void begin(uint64_t kind)
{
    memset(record, 0xa5, sizeof(record));
    put(0, kind, sizeof(uint32_t));
}

static void enter_kernel(uint32_t call, uint64_t start, uint64_t end)
{
    begin(AS_CUPTI_KERNEL);
    put_KERNEL_START(start);
    put_KERNEL_END(end);
    put_KERNEL_CALL(call);
    as_cupti_record(record);
}

static void enter_call(uint32_t call, uint64_t kind, uint64_t id)
{
    begin(AS_CUPTI_EXTERNAL);
    put_EXTERNAL_KIND(kind);
    put_EXTERNAL_ID(id);
    put_EXTERNAL_CALL(call);
    as_cupti_record(record);
}

static void enter_copy(uint64_t way, uint64_t from, uint64_t to, uint64_t bytes)
{
    begin(AS_CUPTI_MEMCPY);
    put_MEMCPY_WAY(way);
    put_MEMCPY_FROM(from);
    put_MEMCPY_TO(to);
    put_MEMCPY_BYTES(bytes);
    put_MEMCPY_START(1000);
    put_MEMCPY_END(1000 + bytes / 10);
    as_cupti_record(record);
}

Test(cupti, a_kernel_is_its_calls_whichever_comes_first)
{
    struct as_telemetry telemetry;
    struct as_telemetry_place place;

    as_place_enter(77);
    as_telemetry_phase(AS_PHASE_BACKWARD);
    const uint64_t id = as_telemetry_id();

    enter_kernel(5, 100, 130);
    enter_kernel(5, 200, 207); // of a graph's launch
    enter_call(5, AS_CUPTI_CUSTOM, id);
    enter_call(6, AS_CUPTI_CUSTOM, id);
    enter_kernel(6, 300, 1300);
    enter_kernel(7, 10, 14); // nobody's
    enter_call(7, AS_CUPTI_CUSTOM - 1, id); // a profiler's number

    as_telemetry_read(&telemetry);
    cr_expect_eq(telemetry.kernels, 4);
    cr_expect_eq(telemetry.kernels_ns, 1041);
    cr_expect_eq(telemetry.nobodys_ns, 4);
    cr_assert(as_telemetry_read_place(0, &place));
    cr_expect_eq(place.place, as_place_of(77));
    cr_expect_eq(place.ns[AS_PHASE_BACKWARD], 1037);
    cr_expect_not(as_telemetry_read_place(1, &place));
}

Test(cupti, a_call_that_is_long_gone_is_not_waited_for)
{
    struct as_telemetry telemetry;

    enter_kernel(1, 0, 50);
    enter_kernel(1 + AS_TELEMETRY_CALLS, 0, 7);
    enter_call(1, AS_CUPTI_CUSTOM, as_telemetry_id());

    as_telemetry_read(&telemetry);
    cr_expect_eq(telemetry.nobodys_ns, 57);
}

Test(cupti, copies_count_by_direction_and_memory)
{
    enum { PAGEABLE = 1, PINNED = AS_CUPTI_PINNED, DEVICE = 3, WITHIN = 8 };
    struct as_telemetry telemetry;

    enter_copy(AS_CUPTI_IN, PINNED, DEVICE, 4000);
    enter_copy(AS_CUPTI_IN, PAGEABLE, DEVICE, 500);
    enter_copy(AS_CUPTI_OUT, DEVICE, PINNED, 100);
    enter_copy(WITHIN, DEVICE, DEVICE, 9000);

    as_telemetry_read(&telemetry);
    cr_expect_eq(telemetry.in.count, 2);
    cr_expect_eq(telemetry.in.bytes, 4500);
    cr_expect_eq(telemetry.in.ns, 450);
    cr_expect_eq(telemetry.in.pinned_bytes, 4000);
    cr_expect_eq(telemetry.in.pinned_ns, 400);
    cr_expect_eq(telemetry.out.count, 1);
    cr_expect_eq(telemetry.out.pinned_ns, 10);
}

Test(cupti, the_first_reason_stays)
{
    struct as_telemetry telemetry;

    as_telemetry_set(AS_TELEMETRY_ON, NULL);
    as_telemetry_set(AS_TELEMETRY_CUT, "one");
    as_telemetry_set(AS_TELEMETRY_CUT, "two");
    as_telemetry_set(AS_TELEMETRY_MISSING, "three");

    as_telemetry_read(&telemetry);
    cr_expect_eq(telemetry.state, AS_TELEMETRY_CUT);
    cr_expect_str_eq(telemetry.reason, "one");
}
