// SPDX-License-Identifier: Apache-2.0
//
// While the user captures a stream: nothing of ours gets into the graph, and no call of
// ours spoils the capture.
#include "pager/pager.h"

#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include "cuda/runtime.h"
#include "fake_cuda.h"
#include "framework.h"

enum { BYTES = 4096, OUT = 0, IN = 1 };

static bool holds(const void *memory, int value)
{
    const unsigned char *bytes = memory;
    for (size_t i = 0; i < BYTES; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

static struct storage *filled(int value, void *stream)
{
    struct storage *storage = storage_create(BYTES, stream);
    fake_fill(stream, storage->address, value, BYTES);
    return storage;
}

static struct actswap_page *saved_and_let_go(int value, void *stream)
{
    struct actswap_page *page;
    struct storage *x = filled(value, stream);
    enter(1);
    cr_assert_eq(save(x, stream, &page), 0);
    storage_drop(x);
    leave(1, stream);
    cr_assert_eq(fw.held, 0);

    // Somebody else uses the memory meanwhile: the old bytes are gone.
    storage_drop(filled(0xEE, stream));
    return page;
}

TestSuite(pager_capture, .init = framework_start);

Test(pager_capture, nothing_is_let_go_while_its_stream_is_captured)
{
    struct actswap_page *page;
    struct storage *x = filled(6, NULL);
    enter(1);
    save(x, NULL, &page);
    storage_drop(x);
    fake_capture(NULL, true);

    leave(1, NULL);
    cr_expect_eq(fw.held, 1);
    cr_expect_eq(totals().let_go, 0);
    fake_capture(NULL, false);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fake_spoilt(), 0);
}

Test(pager_capture, a_page_dropped_while_its_stream_is_captured_ends_afterwards)
{
    struct actswap_page *page;
    struct storage *x = filled(6, NULL);
    save(x, NULL, &page);
    storage_drop(x);
    fake_capture(NULL, true);
    int waits = fake_calls("as_cuda_stream_wait");

    as_pager_drop(fw.pager, page);
    as_pager_mark(fw.pager, ACTSWAP_STEP);
    cr_expect_eq(fake_calls("as_cuda_stream_wait"), waits);
    cr_expect_eq(fw.held, 1);
    fake_capture(NULL, false);
    as_pager_mark(fw.pager, ACTSWAP_STEP);
    cr_expect_eq(fw.held, 0);
    as_pager_destroy(fw.pager);
    cr_expect_eq(fake_spoilt(), 0);
}

Test(pager_capture, what_left_comes_back_at_once_and_outside_of_the_capture)
{
    fake_lane_pace(OUT, FAKE_LAZY);
    fake_lane_pace(IN, FAKE_LAZY);
    void *stream = fake_stream(FAKE_LAZY);
    struct actswap_page *page = saved_and_let_go(7, stream);
    cr_assert_eq(as_cuda_stream_synchronize(stream), 0);
    fake_capture(stream, true);

    struct actswap_resident back = need(page, stream);
    cr_expect(holds(back.address, 7), "a graph is replayed without a copy in");
    const struct storage *storage = back.ref;
    cr_expect_neq(storage->stream, stream, "the memory is not the capture's");
    fake_capture(stream, false);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fw.held, 0);
    as_pager_destroy(fw.pager);
    cr_expect_eq(fake_spoilt(), 0);
}

Test(pager_capture, what_it_reads_is_not_let_go_again)
{
    void *stream = fake_stream(FAKE_EAGER);
    struct actswap_page *page = saved_and_let_go(7, stream);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    fake_capture(stream, true);
    void *address = need(page, stream).address;
    fake_capture(stream, false);

    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    cr_expect_eq(totals().let_go, 1);
    cr_expect_eq(need(page, stream).address, address);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    cr_expect_eq(totals().let_go, 1);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fw.held, 0);
    cr_expect_eq(fake_spoilt(), 0);
}

Test(pager_capture, what_it_reads_ends_after_it)
{
    void *stream = fake_stream(FAKE_EAGER);
    struct actswap_page *page = saved_and_let_go(7, stream);
    fake_capture(stream, true);
    need(page, stream);

    as_pager_drop(fw.pager, page);
    as_pager_mark(fw.pager, ACTSWAP_STEP);
    cr_expect_eq(fw.held, 1);
    fake_capture(stream, false);
    as_pager_mark(fw.pager, ACTSWAP_STEP);
    cr_expect_eq(fw.held, 0);
    as_pager_destroy(fw.pager);
    cr_expect_eq(fake_spoilt(), 0);
}

static void *later;

static void begin_capture(const char *function)
{
    if (strcmp(function, "as_cuda_stream_wait") == 0)
        fake_capture(later, true);
}

Test(pager_capture, that_begins_while_a_page_ends_is_let_be)
{
    void *stream = fake_stream(FAKE_EAGER);
    later = fake_stream(FAKE_EAGER);
    struct actswap_page *page = saved_and_let_go(7, stream);
    need(page, stream);
    need(page, later);
    fake_fail("as_cuda_stream_wait", 1);
    fake_watch(begin_capture);

    as_pager_drop(fw.pager, page);
    cr_expect_eq(fw.held, 0);
    cr_expect_eq(fake_spoilt(), 0);
}

Test(pager_capture, what_is_on_its_way_is_waited_for_by_the_host)
{
    fake_lane_pace(IN, FAKE_LAZY);
    void *stream = fake_stream(FAKE_LAZY), *captured = fake_stream(FAKE_LAZY);
    struct actswap_page *page = saved_and_let_go(7, stream);
    need(page, stream);
    fake_capture(captured, true);

    cr_expect(holds(need(page, captured).address, 7));
    fake_capture(captured, false);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fake_spoilt(), 0);
}

Test(pager_capture, what_never_left_needs_nothing)
{
    struct actswap_page *page;
    void *stream = fake_stream(FAKE_EAGER);
    struct storage *x = filled(7, stream);
    cr_assert_eq(save(x, stream, &page), 0);
    fake_capture(stream, true);
    int waits = fake_calls("as_cuda_event_synchronize");

    cr_expect_eq(need(page, stream).address, x->address);
    cr_expect_eq(fake_calls("as_cuda_event_synchronize"), waits);
    fake_capture(stream, false);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fake_spoilt(), 0);
}

Test(pager_capture, a_refused_copy_in_is_an_error_and_loses_nothing)
{
    void *stream = fake_stream(FAKE_EAGER);
    struct actswap_page *page = saved_and_let_go(7, stream);
    struct actswap_resident back = {.size = sizeof(back)};
    fake_capture(stream, true);
    fake_fail("as_cuda_copy_in", 1);

    cr_expect_eq(as_pager_need(fw.pager, page, stream, &back), -EIO);
    cr_expect_eq(fw.held, 0);
    fake_capture(stream, false);
    back = need(page, stream);
    fake_finish();
    cr_expect(holds(back.address, 7));
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fake_spoilt(), 0);
}

Test(pager_capture, work_on_other_streams_goes_on)
{
    void *captured = fake_stream(FAKE_LAZY), *stream = fake_stream(FAKE_EAGER);
    fake_capture(captured, true);

    for (int step = 0; step < 2; step++) {
        struct actswap_page *page = saved_and_let_go(7, stream);
        cr_expect(holds(need(page, stream).address, 7));
        as_pager_drop(fw.pager, page);
        as_pager_mark(fw.pager, ACTSWAP_STEP);
        as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    }
    int mode = AS_CUDA_RELAXED;
    as_cuda_capture_mode(&mode);
    cr_expect_eq(mode, 0, "the thread is guarded as before");
    cr_expect_eq(fake_spoilt(), 0);
}

Test(pager_capture, without_a_way_to_relax_the_thread_the_rest_works)
{
    fake_fail("as_cuda_capture_mode", 1);
    struct actswap_page *page = saved_and_let_go(7, NULL);

    int mode = 0;
    as_cuda_capture_mode(&mode);
    cr_expect_eq(mode, 0);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fake_spoilt(), 0);
}
