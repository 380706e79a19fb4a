// SPDX-License-Identifier: Apache-2.0
//
// One test an edge. Paces are such that without the edge the work on the two streams runs
// in the wrong order, and a number comes out wrong.
#include "pager/edges.h"

#include <criterion/criterion.h>

#include "cuda/runtime.h"
#include "fake_cuda.h"
#include "framework.h"

enum { BYTES = 4096, OUT = 0, IN = 1 };

static unsigned char sink[BYTES];

static bool sink_holds(int value)
{
    for (size_t i = 0; i < BYTES; i++)
        if (sink[i] != value)
            return false;
    return true;
}

static struct actswap_page *saved_and_let_go(int value, void *stream)
{
    struct actswap_page *page;
    struct storage *x = storage_create(BYTES, stream);
    fake_fill(stream, x->address, value, BYTES);
    enter(1);
    cr_assert_eq(save(x, stream, &page), 0);
    storage_drop(x);
    leave(1, stream);

    // Somebody else uses the memory and gives it back: the old bytes are gone.
    struct storage *other = storage_create(BYTES, stream);
    cr_assert_eq(other->address, x->address);
    fake_fill(stream, other->address, 0xEE, BYTES);
    storage_drop(other);
    return page;
}

static void read_back(struct actswap_page *page, void *stream)
{
    fake_read(stream, need(page, stream).address, sink, BYTES);
}

TestSuite(pager_edges, .init = framework_start);

Test(pager_edges, the_copy_out_waits_for_the_producer)
{
    void *stream = fake_stream(FAKE_LAZY);
    struct actswap_page *page = saved_and_let_go(7, stream);

    read_back(page, stream);
    fake_finish();
    cr_expect(sink_holds(7));
}

Test(pager_edges, reuse_of_the_memory_waits_for_the_copy_out)
{
    fake_lane_pace(OUT, FAKE_LAZY);
    void *stream = fake_stream(FAKE_EAGER);
    struct actswap_page *page = saved_and_let_go(7, stream);
    struct storage *other = storage_create(BYTES, stream);
    fake_fill(stream, other->address, 9, BYTES);

    read_back(page, stream);
    fake_finish();
    cr_expect(sink_holds(7));
}

Test(pager_edges, reuse_of_the_memory_waits_for_readers_that_were_named)
{
    void *stream = fake_stream(FAKE_EAGER), *side = fake_stream(FAKE_LAZY);
    struct actswap_page *page, *again;
    struct storage *x = storage_create(BYTES, stream);
    fake_fill(stream, x->address, 7, BYTES);
    enter(1);
    save(x, stream, &page);
    save(x, side, &again);
    struct storage *y = storage_create(BYTES, stream);
    save(y, side, &again);
    fake_read(side, x->address, sink, BYTES);
    storage_drop(x);
    leave(1, stream);
    struct storage *other = storage_create(BYTES, stream);
    cr_assert_eq(other->address, x->address);
    fake_fill(stream, other->address, 9, BYTES);

    fake_finish();
    cr_expect(sink_holds(7));
}

Test(pager_edges, reuse_of_the_memory_waits_for_streams_with_allocations)
{
    void *stream = fake_stream(FAKE_EAGER), *side = fake_stream(FAKE_LAZY);
    struct actswap_page *page;
    struct storage *x = storage_create(BYTES, stream);
    fake_fill(stream, x->address, 7, BYTES);
    enter(1);
    save(x, stream, &page);
    storage_create(BYTES, side); // say, the result of a kernel that reads x
    fake_read(side, x->address, sink, BYTES);
    storage_drop(x);
    leave(1, stream);
    struct storage *other = storage_create(BYTES, stream);
    cr_assert_eq(other->address, x->address);
    fake_fill(stream, other->address, 9, BYTES);

    fake_finish();
    cr_expect(sink_holds(7));
}

// A stream reads what is saved, and nobody says so.
static void read_by_stranger(void *stream, void *stranger)
{
    struct actswap_page *page;
    struct storage *x = storage_create(BYTES, stream);
    fake_fill(stream, x->address, 7, BYTES);
    fake_read(stranger, x->address, sink, BYTES);
    enter(1);
    save(x, stream, &page);
    storage_drop(x);
    leave(1, stream);
    struct storage *other = storage_create(BYTES, stream);
    cr_assert_eq(other->address, x->address);
    fake_fill(stream, other->address, 9, BYTES);
    fake_finish();
}

Test(pager_edges, reuse_of_the_memory_waits_for_streams_that_nobody_named)
{
    void *stream = fake_stream(FAKE_EAGER), *stranger = fake_stream(FAKE_LAZY);
    as_pager_stream_made(fw.pager, 0, stranger);

    read_by_stranger(stream, stranger);
    cr_expect(sink_holds(7));
}

Test(pager_edges, reuse_of_the_memory_waits_for_the_legacy_stream)
{
    fake_lane_pace(OUT, FAKE_EAGER);
    void *stream = fake_stream(FAKE_EAGER);
    fake_pace(NULL, FAKE_LAZY);

    read_by_stranger(stream, NULL);
    cr_expect(sink_holds(7));
}

Test(pager_edges, an_idle_stream_costs_no_edge)
{
    void *stream = fake_stream(FAKE_EAGER), *stranger = fake_stream(FAKE_EAGER);
    as_pager_stream_made(fw.pager, 0, stranger);
    read_by_stranger(stream, stranger);
    int waits = fake_calls("as_cuda_stream_wait");
    for (int i = 0; i < 100; i++)
        as_pager_stream_made(fw.pager, 0, fake_stream(FAKE_EAGER));

    read_by_stranger(stream, stranger);
    cr_expect_eq(fake_calls("as_cuda_stream_wait"), 2 * waits);
}

Test(pager_edges, the_copy_in_waits_for_what_the_new_memory_was_before)
{
    void *stream = fake_stream(FAKE_LAZY);
    struct actswap_page *page = saved_and_let_go(7, stream);

    read_back(page, stream); // without the edge the memory's last use comes later
    fake_finish();
    cr_expect(sink_holds(7));
}

Test(pager_edges, the_copy_in_waits_for_the_copy_out)
{
    fake_lane_pace(OUT, FAKE_LAZY);
    void *stream = fake_stream(FAKE_LAZY), *side = fake_stream(FAKE_EAGER);
    struct actswap_page *page = saved_and_let_go(7, stream);

    read_back(page, side);
    fake_finish();
    cr_expect(sink_holds(7));
}

Test(pager_edges, the_consumer_waits_for_the_copy_in)
{
    fake_lane_pace(IN, FAKE_LAZY);
    void *stream = fake_stream(FAKE_EAGER);
    struct actswap_page *page = saved_and_let_go(7, stream);

    read_back(page, stream);
    fake_finish();
    cr_expect(sink_holds(7));
}

Test(pager_edges, a_second_consumer_waits_for_the_copy_in)
{
    fake_lane_pace(IN, FAKE_LAZY);
    void *stream = fake_stream(FAKE_LAZY), *side = fake_stream(FAKE_EAGER);
    struct actswap_page *page = saved_and_let_go(7, stream);
    as_cuda_stream_synchronize(stream);
    need(page, stream);

    read_back(page, side);
    fake_finish();
    cr_expect(sink_holds(7));
}

Test(pager_edges, reuse_of_a_pinned_buffer_waits_for_the_copy_in)
{
    fake_lane_pace(IN, FAKE_LAZY);
    void *stream = fake_stream(FAKE_LAZY), *side = fake_stream(FAKE_EAGER);
    struct actswap_page *page = saved_and_let_go(7, stream);
    read_back(page, stream);
    as_pager_drop(fw.pager, page);

    saved_and_let_go(9, side);
    cr_assert_eq(totals().pinned_bytes, BYTES, "it is the same buffer");
    fake_finish();
    cr_expect(sink_holds(7));
}

Test(pager_edges, the_end_of_a_page_waits_for_its_other_consumers)
{
    void *stream = fake_stream(FAKE_EAGER), *side = fake_stream(FAKE_LAZY);
    struct actswap_page *page = saved_and_let_go(7, stream);
    void *address = need(page, stream).address;
    read_back(page, side);
    as_pager_drop(fw.pager, page);
    struct storage *other = storage_create(BYTES, stream);
    cr_assert_eq(other->address, address);
    fake_fill(stream, other->address, 9, BYTES);

    fake_finish();
    cr_expect(sink_holds(7));
}

Test(pager_edges, letting_go_again_waits_for_the_consumers)
{
    void *stream = fake_stream(FAKE_EAGER), *side = fake_stream(FAKE_LAZY);
    struct actswap_page *page = saved_and_let_go(7, stream);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    void *address = need(page, stream).address;
    read_back(page, side);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    struct storage *other = storage_create(BYTES, stream);
    cr_assert_eq(other->address, address);
    fake_fill(stream, other->address, 9, BYTES);

    fake_finish();
    cr_expect(sink_holds(7));
}
