// SPDX-License-Identifier: Apache-2.0
//
// Steps whose tensors change their sizes, with room for one size only.
#include "pager/pager.h"

#include <criterion/criterion.h>

#include "cuda/runtime.h"
#include "fake_cuda.h"
#include "framework.h"
#include "pager/slab.h"

enum { BYTES = 4096, IN = 1 };

static unsigned char sink[BYTES];

// One step with one tensor; its value ends up in the sink when `stream` runs. True: it
// was offloaded.
static bool step(size_t bytes, int value, void *stream)
{
    struct actswap_page *page;
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    struct storage *x = storage_create(bytes, stream);
    fake_fill(stream, x->address, value, bytes);
    enter(1);
    bool offloaded = save(x, stream, &page) == 0;
    storage_drop(x);
    leave(1, stream);
    if (offloaded)
        fake_read(stream, need(page, stream).address, sink, BYTES);
    as_pager_drop(fw.pager, page);
    as_pager_mark(fw.pager, ACTSWAP_STEP);
    return offloaded;
}

static void start(void)
{
    framework_start();
    fw.settings.host_memory_bytes = 3 * BYTES;
}

TestSuite(pager_sizes, .init = start);

Test(pager_sizes, a_larger_size_finds_room_after_some_steps)
{
    cr_expect(step(2 * BYTES, 1, NULL));
    for (int i = 0; i < AS_SLAB_IDLE_STEPS; i++)
        cr_expect_not(step(3 * BYTES, 2, NULL));

    cr_expect(step(3 * BYTES, 3, NULL));
    cr_expect_eq(totals().pinned_bytes, 3 * BYTES);
    cr_expect_eq(totals().pinned_peak_bytes, 3 * BYTES);
    cr_expect_eq(fake_calls("as_cuda_host_free"), 1);
    as_pager_destroy(fw.pager);
}

Test(pager_sizes, what_a_copy_still_reads_is_waited_for)
{
    fake_lane_pace(IN, FAKE_LAZY);
    void *stream = fake_stream(FAKE_LAZY);
    step(2 * BYTES, 7, stream);
    for (int i = 0; i < AS_SLAB_IDLE_STEPS; i++)
        step(3 * BYTES, 8, NULL);

    cr_expect_eq(fake_calls("as_cuda_host_free"), 1);
    fake_finish();
    for (size_t i = 0; i < BYTES; i++)
        cr_assert_eq(sink[i], 7);
}

Test(pager_sizes, nothing_is_given_back_during_a_capture)
{
    void *captured = fake_stream(FAKE_EAGER);
    as_pager_stream_made(fw.pager, 0, captured);
    step(2 * BYTES, 1, NULL);
    fake_capture(captured, true);
    for (int i = 0; i < 2 * AS_SLAB_IDLE_STEPS; i++)
        cr_expect_not(step(3 * BYTES, 2, NULL));
    cr_expect_eq(fake_calls("as_cuda_host_free"), 0);

    fake_capture(captured, false);
    step(3 * BYTES, 2, NULL);
    cr_expect_eq(fake_calls("as_cuda_host_free"), 1);
}
