// SPDX-License-Identifier: Apache-2.0
#include "pager/streams.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <criterion/criterion.h>

#include "cuda/runtime.h"
#include "fake_cuda.h"

enum { FOUND_MAX = 8 };

static struct as_streams *streams;
static void *found[FOUND_MAX];
static size_t found_count;

static int add(void *what, void *context)
{
    (void)context;
    cr_assert_lt(found_count, FOUND_MAX);
    found[found_count++] = what;
    return 0;
}

static int nothing(void *what, void *context)
{
    (void)what;
    (void)context;
    return 0;
}

static size_t visit_streams(int device, uint64_t since)
{
    const struct as_streams_visitor visitor = {add, nothing, NULL};
    found_count = 0;
    cr_expect_eq(as_streams_visit(streams, device, since, &visitor), 0);
    return found_count;
}

static size_t visit_events(int device)
{
    const struct as_streams_visitor visitor = {nothing, add, NULL};
    found_count = 0;
    cr_expect_eq(as_streams_visit(streams, device, 0, &visitor), 0);
    return found_count;
}

static void start(void)
{
    streams = as_streams_create();
}

TestSuite(streams, .init = start);

Test(streams, the_legacy_stream_is_always_there)
{
    cr_expect_eq(visit_streams(0, 0), 1);
    cr_expect_null(found[0]);
    as_streams_see(streams, 0, NULL);
    cr_expect_eq(visit_streams(0, 0), 1, "once");
}

Test(streams, that_were_made_are_known_until_they_end)
{
    void *a = fake_stream(FAKE_LAZY), *b = fake_stream(FAKE_LAZY);
    as_streams_made(streams, 0, a);
    as_streams_made(streams, 1, b);

    cr_expect_eq(visit_streams(0, UINT64_MAX), 2);
    cr_expect_eq(found[1], a);
    cr_expect(as_streams_knows(streams, 0, a));
    cr_expect_not(as_streams_knows(streams, 1, a));
    as_streams_ending(streams, a);
    cr_expect_eq(visit_streams(0, 0), 1);
    cr_expect_not(as_streams_knows(streams, 0, a));
    as_streams_made(streams, 0, a);
    cr_expect_eq(visit_streams(0, 0), 2, "a handle comes back");
}

Test(streams, that_were_only_named_are_known_since_then)
{
    void *a = fake_stream(FAKE_LAZY), *made = fake_stream(FAKE_LAZY);
    as_streams_made(streams, 0, made);
    as_streams_see(streams, 0, a);
    uint64_t later = as_streams_now(streams);

    cr_expect_eq(visit_streams(0, later - 1), 3);
    cr_expect_eq(visit_streams(0, later), 2, "the one that was made");
    cr_expect_not(as_streams_knows(streams, 0, a));
    cr_expect_eq(as_streams_since(streams, 0, 0, found, FOUND_MAX), 1);
    cr_expect_eq(found[0], a, "only what was named");
}

Test(streams, that_end_with_work_leave_an_event_until_it_passes)
{
    char memory[8];
    void *idle = fake_stream(FAKE_LAZY), *busy = fake_stream(FAKE_LAZY);
    as_streams_made(streams, 0, idle);
    as_streams_made(streams, 0, busy);
    fake_fill(busy, memory, 1, sizeof(memory));

    as_streams_ending(streams, idle);
    cr_expect_eq(visit_events(0), 0);
    as_streams_ending(streams, busy);
    cr_expect_eq(visit_events(0), 1);
    void *event = found[0];
    cr_expect_eq(visit_events(1), 0, "it is of another device");
    fake_finish();
    cr_expect_eq(visit_events(0), 0);

    as_streams_made(streams, 0, busy);
    fake_fill(busy, memory, 2, sizeof(memory));
    as_streams_ending(streams, busy);
    cr_expect_eq(visit_events(0), 1);
    cr_expect_eq(found[0], event, "an event that has passed is used again");
    cr_expect_eq(fake_calls("as_cuda_event_create"), 1);
    as_streams_destroy(streams);
}

Test(streams, the_end_of_one_is_waited_for_where_no_event_can_be_had)
{
    char memory[8] = {0};
    void *busy = fake_stream(FAKE_LAZY);
    as_streams_made(streams, 0, busy);
    fake_fill(busy, memory, 1, sizeof(memory));
    fake_fail("as_cuda_event_record", 1);

    as_streams_ending(streams, busy);
    cr_expect_eq(memory[0], 1);
    cr_expect_eq(visit_events(0), 0);
    cr_expect_eq(fake_calls("as_cuda_event_destroy"), 1);
}

Test(streams, of_a_capture_leave_nothing)
{
    char memory[8];
    void *captured = fake_stream(FAKE_LAZY);
    as_streams_made(streams, 0, captured);
    fake_fill(captured, memory, 1, sizeof(memory));
    fake_capture(captured, true);

    as_streams_ending(streams, captured);
    cr_expect_eq(visit_events(0), 0);
    cr_expect_eq(fake_calls("as_cuda_event_record"), 0);
}

Test(streams, nobody_knows_may_end)
{
    as_streams_see(streams, 0, NULL);
    as_streams_ending(streams, NULL);
    as_streams_ending(streams, found);

    cr_expect_eq(as_streams_since(streams, 0, 0, found, FOUND_MAX), 1);
    cr_expect_eq(fake_calls("as_cuda_stream_query"), 0);
}

static int refuse(void *stream, void *context)
{
    size_t *left = context;
    (void)stream;
    return (*left)-- ? 0 : -EIO;
}

Test(streams, a_visit_ends_at_the_first_error)
{
    size_t left = 1;
    const struct as_streams_visitor visitor = {refuse, nothing, &left};
    for (int i = 0; i < 3; i++)
        as_streams_made(streams, 0, fake_stream(FAKE_EAGER));

    cr_expect_eq(as_streams_visit(streams, 0, 0, &visitor), -EIO);
    cr_expect_eq(left, SIZE_MAX, "the second one refused");
}

static pthread_t other;
static atomic_bool gone;

static void *end_it(void *stream)
{
    as_streams_ending(streams, stream);
    gone = true;
    return NULL;
}

// The other thread gets every chance to end the stream that we are looking at.
static int end_elsewhere(void *stream, void *context)
{
    if (stream != context)
        return 0;
    pthread_create(&other, NULL, end_it, stream);
    for (int i = 0; i < 1000 && !gone; i++)
        sched_yield();
    cr_expect_not(gone);
    return 0;
}

Test(streams, none_ends_during_a_visit)
{
    void *stream = fake_stream(FAKE_EAGER);
    const struct as_streams_visitor visitor = {end_elsewhere, nothing, stream};
    as_streams_made(streams, 0, stream);

    cr_expect_eq(as_streams_visit(streams, 0, 0, &visitor), 0);
    pthread_join(other, NULL);
    cr_expect_not(as_streams_knows(streams, 0, stream));
}
