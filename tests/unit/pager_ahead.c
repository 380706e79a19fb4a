// SPDX-License-Identifier: Apache-2.0
//
// Four pages a step, each in a block of its own, used in an order of choice.
#include "pager/pager.h"

#include <string.h>

#include <criterion/criterion.h>

#include "cuda/runtime.h"
#include "fake_cuda.h"
#include "framework.h"

enum { BYTES = 4096, PAGES = 4, IN = 1 };

static void start(void)
{
    framework_start();
    fake_free_bytes(1 << 30);
}

TestSuite(pager_ahead, .init = start);

static struct actswap_page *pages[PAGES];

static void save_all(void *stream)
{
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    for (int i = 0; i < PAGES; i++) {
        struct storage *storage = storage_create(BYTES, stream);
        fake_fill(stream, storage->address, i + 1, BYTES);
        enter((uint64_t)i);
        cr_assert_eq(save(storage, stream, &pages[i]), 0);
        storage_drop(storage);
        leave((uint64_t)i, stream);
    }
}

static void forward(void *stream)
{
    save_all(stream);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
}

static void use(int i, void *stream)
{
    unsigned char sink[BYTES] = {0};
    const struct actswap_resident back = need(pages[i], stream);
    fake_read(stream, back.address, sink, BYTES);
    as_cuda_stream_synchronize(stream);
    cr_expect_eq(sink[0], i + 1);
    cr_expect_eq(sink[BYTES - 1], i + 1);
}

static void end_step(void)
{
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    as_pager_mark(fw.pager, ACTSWAP_STEP);
    cr_expect_eq(fw.held, 0);
}

// Returns how many pages were there ahead of their need.
static uint64_t step_in(const int order[PAGES], void *stream)
{
    const uint64_t before = totals().ahead;
    forward(stream);
    for (int i = 0; i < PAGES; i++) {
        use(order[i], stream);
        as_pager_drop(fw.pager, pages[order[i]]);
    }
    end_step();
    return totals().ahead - before;
}

static const int reverse[] = {3, 2, 1, 0}, mixed[] = {1, 3, 0, 2};

Test(pager_ahead, from_the_second_step_all_but_the_first_come_ahead)
{
    cr_expect_eq(step_in(reverse, NULL), 0, "nothing is known of the first");
    cr_expect_eq(step_in(reverse, NULL), PAGES - 1);
    cr_expect_eq(step_in(reverse, NULL), PAGES - 1);
    cr_expect_eq(totals().brought, 3 * PAGES);
    cr_expect_eq(totals().in_bytes, 3 * PAGES * BYTES);
}

Test(pager_ahead, they_come_in_the_order_in_which_the_last_step_used_them)
{
    step_in(mixed, NULL);
    cr_expect_eq(step_in(mixed, NULL), PAGES - 1);
    cr_expect_eq(totals().brought, 2 * PAGES);
}

Test(pager_ahead, no_more_than_a_block_comes_ahead)
{
    step_in(reverse, NULL);
    forward(NULL);
    use(3, NULL);
    cr_expect_eq(fw.held, 2, "the one that is used, and the next");
    use(2, NULL);
    cr_expect_eq(fw.held, 3);
    for (int i = 0; i < PAGES; i++)
        as_pager_drop(fw.pager, pages[i]);
    end_step();
}

Test(pager_ahead, a_consumer_waits_for_what_came_ahead)
{
    fake_lane_pace(IN, FAKE_LAZY);
    void *stream = fake_stream(FAKE_EAGER);
    step_in(reverse, stream);
    cr_expect_eq(step_in(reverse, stream), PAGES - 1);
}

Test(pager_ahead, a_consumer_on_another_stream_waits_too)
{
    fake_lane_pace(IN, FAKE_LAZY);
    void *stream = fake_stream(FAKE_EAGER), *side = fake_stream(FAKE_EAGER);
    step_in(reverse, stream);
    forward(stream);
    use(3, stream);
    use(2, side);
    use(2, stream);
    for (int i = 0; i < PAGES; i++)
        as_pager_drop(fw.pager, pages[i]);
    end_step();
}

// The copy is still on its way when the memory is used again.
Test(pager_ahead, memory_of_what_came_in_vain_is_used_again_behind_the_copy)
{
    fake_lane_pace(IN, FAKE_LAZY);
    void *stream = fake_stream(FAKE_EAGER);
    step_in(reverse, stream);
    forward(stream);
    use(3, stream);
    as_pager_drop(fw.pager, pages[2]);

    struct storage *other = storage_create(BYTES, stream);
    fake_fill(stream, other->address, 9, BYTES);
    fake_finish();
    for (int i = 0; i < BYTES; i++)
        cr_assert_eq(((unsigned char *)other->address)[i], 9);
    storage_drop(other);
    for (int i = 0; i < PAGES; i++)
        if (i != 2)
            as_pager_drop(fw.pager, pages[i]);
    end_step();
}

Test(pager_ahead, what_came_in_vain_goes_when_the_backward_ends)
{
    step_in(reverse, NULL);
    forward(NULL);
    use(3, NULL);
    cr_expect_eq(fw.held, 2);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    cr_expect_eq(fw.held, 0);

    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    for (int i = PAGES - 1; i >= 0; i--) {
        use(i, NULL);
        as_pager_drop(fw.pager, pages[i]);
    }
    end_step();
    cr_expect_eq(step_in(reverse, NULL), PAGES - 1);
}

Test(pager_ahead, a_budget_that_has_no_room_is_kept)
{
    struct as_ledger_totals now;
    as_ledger_budget(fw.ledger, BYTES);
    for (int n = 0; n < 3; n++)
        cr_expect_eq(step_in(reverse, NULL), 0);
    as_ledger_totals(fw.ledger, 0, &now);
    cr_expect_eq(now.peak_bytes, BYTES);
}

Test(pager_ahead, where_the_step_takes_the_most_what_can_wait_does)
{
    for (int n = 0; n < 3; n++) {
        forward(NULL);
        for (int i = PAGES - 1; i >= 0; i--) {
            use(i, NULL);
            if (i == PAGES - 1)
                storage_drop(storage_create(4 * BYTES, NULL));
            as_pager_drop(fw.pager, pages[i]);
        }
        end_step();
    }
    struct as_ledger_totals now;
    as_ledger_totals(fw.ledger, 0, &now);
    cr_expect_eq(now.peak_bytes, 5 * BYTES);
    cr_expect_eq(totals().ahead, 2 * (PAGES - 2), "not behind the first need");
}

Test(pager_ahead, without_memory_they_come_when_they_are_needed)
{
    step_in(reverse, NULL);
    fake_free_bytes(BYTES);
    cr_expect_eq(step_in(reverse, NULL), 0);
    fake_free_bytes(1 << 30);
    cr_expect_eq(step_in(reverse, NULL), PAGES - 1, "in the next step they do again");
}

Test(pager_ahead, a_refused_allocation_is_no_error)
{
    step_in(reverse, NULL);
    forward(NULL);
    fw.allocations_left = 1;
    use(3, NULL);
    fw.allocations_left = -1;
    for (int i = PAGES - 1; i >= 0; i--) {
        use(i, NULL);
        as_pager_drop(fw.pager, pages[i]);
    }
    end_step();
    cr_expect_eq(totals().ahead, 0);
}

Test(pager_ahead, a_refused_copy_is_no_error)
{
    step_in(reverse, NULL);
    forward(NULL);
    use(3, NULL);
    fake_fail("as_cuda_copy_in", 1);
    for (int i = PAGES - 1; i >= 0; i--) {
        use(i, NULL);
        as_pager_drop(fw.pager, pages[i]);
    }
    end_step();
}

// What the last step did not save comes in the reverse of saving.
Test(pager_ahead, a_longer_step_goes_on_in_the_reverse_of_saving)
{
    struct actswap_page *more[2];
    step_in(reverse, NULL);
    save_all(NULL);
    for (int i = 0; i < 2; i++) {
        struct storage *storage = storage_create(BYTES, NULL);
        fake_fill(NULL, storage->address, 8 + i, BYTES);
        enter(8);
        cr_assert_eq(save(storage, NULL, &more[i]), 0);
        storage_drop(storage);
        leave(8, NULL);
    }
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    need(more[1], NULL);
    cr_expect_eq(totals().ahead, 1);
    const unsigned char *next = need(more[0], NULL).address;
    fake_finish();
    cr_expect_eq(next[0], 8);
    for (int i = 0; i < 2; i++)
        as_pager_drop(fw.pager, more[i]);
    for (int i = 0; i < PAGES; i++)
        as_pager_drop(fw.pager, pages[i]);
    end_step();
    cr_expect_geq(totals().ahead, 2);
}
