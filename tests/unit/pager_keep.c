// SPDX-License-Identifier: Apache-2.0
//
// Four pages a step on a device with a budget.
#include "pager/pager.h"

#include <criterion/criterion.h>

#include "fake_cuda.h"
#include "framework.h"

enum { BYTES = 4096, PAGES = 4 };

TestSuite(pager_keep, .init = framework_start);

static struct actswap_page *pages[PAGES];

static void forward(size_t bytes)
{
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    for (int i = 0; i < PAGES; i++) {
        struct storage *storage = storage_create(bytes, NULL);
        fake_fill(NULL, storage->address, i + 1, bytes);
        enter((uint64_t)i);
        cr_assert_eq(save(storage, NULL, &pages[i]), 0);
        storage_drop(storage);
        leave((uint64_t)i, NULL);
    }
}

static void backward(size_t bytes)
{
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    for (int i = PAGES - 1; i >= 0; i--) {
        const unsigned char *back = need(pages[i], NULL).address;
        fake_finish();
        cr_expect_eq(back[bytes - 1], i + 1);
        as_pager_drop(fw.pager, pages[i]);
    }
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
}

// Bytes that went out.
static uint64_t step(size_t bytes)
{
    const uint64_t before = totals().out_bytes;
    forward(bytes);
    backward(bytes);
    as_pager_mark(fw.pager, ACTSWAP_STEP);
    cr_expect_eq(fw.held, 0);
    return totals().out_bytes - before;
}

static uint64_t peak(void)
{
    struct as_ledger_totals now;
    as_ledger_totals(fw.ledger, 0, &now);
    return now.peak_bytes;
}

Test(pager_keep, without_a_budget_all_go)
{
    for (int n = 0; n < 3; n++)
        cr_expect_eq(step(BYTES), PAGES * BYTES);
}

Test(pager_keep, from_the_second_step_as_many_stay_as_the_budget_has_room_for)
{
    as_ledger_budget(fw.ledger, 3 * BYTES);
    cr_expect_eq(step(BYTES), PAGES * BYTES, "nothing is known of the first");
    cr_expect_eq(peak(), BYTES);
    for (int n = 0; n < 3; n++)
        cr_expect_eq(step(BYTES), BYTES, "one has to go to let three be there");
    cr_expect_eq(peak(), 3 * BYTES);
    cr_expect_eq(totals().kept[ACTSWAP_KEPT_BUDGET], 3 * (PAGES - 1));
}

Test(pager_keep, with_room_for_all_nothing_moves)
{
    as_ledger_budget(fw.ledger, PAGES * BYTES);
    step(BYTES);
    cr_expect_eq(step(BYTES), 0);
    cr_expect_eq(peak(), PAGES * BYTES);
}

Test(pager_keep, a_larger_step_than_the_last_keeps_nothing)
{
    as_ledger_budget(fw.ledger, 3 * BYTES);
    step(BYTES);
    step(BYTES);
    cr_expect_eq(step(2 * BYTES), PAGES * 2 * BYTES);
    cr_expect_leq(peak(), 3 * BYTES);
}

// Two are as in the last step and stay, and then comes another.
Test(pager_keep, what_stayed_goes_when_the_step_turns_out_to_be_another)
{
    as_ledger_budget(fw.ledger, 3 * BYTES);
    step(BYTES);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    struct actswap_page *page, *large;
    struct storage *first = storage_create(BYTES, NULL), *second;
    fake_fill(NULL, first->address, 1, BYTES);
    enter(1);
    save(first, NULL, &pages[0]);
    storage_drop(first);
    leave(1, NULL);
    enter(2);
    first = storage_create(BYTES, NULL);
    fake_fill(NULL, first->address, 2, BYTES);
    save(first, NULL, &page);
    storage_drop(first);
    leave(2, NULL);
    cr_expect_gt(fw.held, 0, "one stays");

    enter(3);
    second = storage_create(2 * BYTES, NULL);
    fake_fill(NULL, second->address, 3, 2 * BYTES);
    cr_assert_eq(save(second, NULL, &large), 0);
    storage_drop(second);
    leave(3, NULL);

    cr_expect_eq(fw.held, 0, "all are gone");
    cr_expect_eq(((unsigned char *)need(pages[0], NULL).address)[0], 1);
    cr_expect_eq(((unsigned char *)need(page, NULL).address)[0], 2);
    cr_expect_eq(((unsigned char *)need(large, NULL).address)[0], 3);
    as_pager_drop(fw.pager, pages[0]);
    as_pager_drop(fw.pager, page);
    as_pager_drop(fw.pager, large);
    cr_expect_eq(fw.held, 0);
}

Test(pager_keep, what_stayed_goes_when_the_program_takes_more_than_it_did)
{
    as_ledger_budget(fw.ledger, 3 * BYTES);
    step(BYTES);
    struct storage *more;
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    for (int i = 0; i < PAGES; i++) {
        enter((uint64_t)i);
        struct storage *storage = storage_create(BYTES, NULL);
        fake_fill(NULL, storage->address, i + 1, BYTES);
        save(storage, NULL, &pages[i]);
        storage_drop(storage);
        if (i == 2) {
            more = storage_create(4 * BYTES, NULL);
            storage_drop(more);
        }
        leave((uint64_t)i, NULL);
    }
    cr_expect_eq(totals().out_bytes, (PAGES + PAGES - 1) * BYTES,
                 "at the exit at which it shows");
    backward(BYTES);
    cr_expect_eq(fw.held, 0);
}

Test(pager_keep, a_copy_that_fails_then_leaves_it_where_it_is)
{
    as_ledger_budget(fw.ledger, 3 * BYTES);
    step(BYTES);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    for (int i = 0; i < 2; i++) {
        enter((uint64_t)i);
        struct storage *storage = storage_create(BYTES, NULL);
        fake_fill(NULL, storage->address, i + 1, BYTES);
        save(storage, NULL, &pages[i]);
        storage_drop(storage);
        leave((uint64_t)i, NULL);
    }
    fake_fail("as_cuda_copy_out", 1);
    struct actswap_page *large;
    struct storage *second = storage_create(2 * BYTES, NULL);
    save(second, NULL, &large);
    storage_drop(second);

    for (int i = 0; i < 2; i++) {
        cr_expect_eq(((unsigned char *)need(pages[i], NULL).address)[0], i + 1);
        as_pager_drop(fw.pager, pages[i]);
    }
    as_pager_drop(fw.pager, large);
    cr_expect_eq(totals().kept[ACTSWAP_KEPT_DEVICE], 1);
    cr_expect_eq(fw.held, 0);
}

Test(pager_keep, a_kept_graph_is_counted_to_its_end)
{
    as_ledger_budget(fw.ledger, 3 * BYTES);
    for (int n = 0; n < 4; n++) {
        forward(BYTES);
        as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
        for (int i = PAGES - 1; i >= 0; i--)
            need(pages[i], NULL);
        as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
        backward(BYTES);
        as_pager_mark(fw.pager, ACTSWAP_STEP);
        cr_expect_eq(fw.held, 0);
    }
}
