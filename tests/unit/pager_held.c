// SPDX-License-Identifier: Apache-2.0
//
// Storages that others held at the backward of the step before, and those of a device that
// has one memory with the host: they are not copied.
#include "pager/pager.h"

#include <criterion/criterion.h>

#include "fake_cuda.h"
#include "framework.h"

enum { BYTES = 4096 };

static void start(void)
{
    framework_start();
    framework_tell_holders();
}

TestSuite(pager_held, .init = start);

static struct storage *filled(int value, void *stream, size_t bytes)
{
    struct storage *storage = storage_create(bytes, stream);
    fake_fill(stream, storage->address, value, bytes);
    return storage;
}

static uint64_t copied_bytes(void)
{
    return totals().out_bytes;
}

// A step whose one block saves `value`. `held`: somebody else has it until it is over.
static void step(int value, bool held, void *stream, size_t bytes)
{
    struct actswap_page *page;
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    struct storage *x = filled(value, stream, bytes);
    enter(1);
    cr_assert_eq(save(x, stream, &page), 0);
    if (!held)
        storage_drop(x);
    leave(1, stream);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    const unsigned char *back = need(page, stream).address;
    fake_finish();
    cr_expect_eq(back[0], value);
    cr_expect_eq(back[bytes - 1], value);
    as_pager_drop(fw.pager, page);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    if (held)
        storage_drop(x);
    as_pager_mark(fw.pager, ACTSWAP_STEP);
    cr_expect_eq(fw.held, 0);
}

Test(pager_held, what_was_held_before_is_not_copied_again)
{
    step(1, true, NULL, BYTES);
    cr_expect_eq(copied_bytes(), BYTES, "of the first step nothing is known");

    step(2, true, NULL, BYTES);
    step(3, true, NULL, BYTES);
    cr_expect_eq(copied_bytes(), BYTES);
    cr_expect_eq(totals().held_elsewhere, 3);
    as_pager_destroy(fw.pager);
}

Test(pager_held, what_nobody_holds_any_more_goes_at_the_exit_and_comes_back)
{
    void *stream = fake_stream(FAKE_LAZY);
    fake_lane_pace(0, FAKE_LAZY);
    step(1, true, stream, BYTES);

    step(2, false, stream, BYTES);
    cr_expect_eq(copied_bytes(), 2 * BYTES);
    cr_expect_eq(totals().let_go, 1);
    step(3, false, stream, BYTES);
    cr_expect_eq(totals().let_go, 2);
    cr_expect_eq(totals().in_bytes, 2 * BYTES);
}

Test(pager_held, another_size_in_its_place_is_copied)
{
    step(1, true, NULL, BYTES);
    step(2, true, NULL, 2 * BYTES);

    cr_expect_eq(copied_bytes(), 3 * BYTES);
}

Test(pager_held, the_end_of_its_other_holder_lets_it_go_with_a_copy)
{
    struct actswap_page *page;
    step(1, true, NULL, BYTES);
    struct storage *x = filled(7, NULL, BYTES);
    enter(1);
    cr_assert_eq(save(x, NULL, &page), 0);
    leave(1, NULL);
    cr_expect_eq(copied_bytes(), BYTES);
    storage_drop(x);

    enter(2);
    cr_expect_eq(released_bytes(), BYTES);
    leave(2, NULL);
    const unsigned char *back = need(page, NULL).address;
    fake_finish();
    cr_expect_eq(back[BYTES - 1], 7);
    as_pager_drop(fw.pager, page);
}

Test(pager_held, what_was_given_other_memory_is_not_copied)
{
    struct actswap_page *page;
    step(1, true, NULL, BYTES);
    struct storage *x = filled(7, NULL, BYTES);
    enter(1);
    cr_assert_eq(save(x, NULL, &page), 0);
    storage_replace(x);
    storage_drop(x);

    leave(1, NULL);
    cr_expect_eq(copied_bytes(), BYTES);
    cr_expect_eq(totals().let_go, 0);
    as_pager_drop(fw.pager, page);
}

Test(pager_held, what_was_given_other_memory_before_is_not_copied_again)
{
    for (int i = 0; i < 3; i++) {
        struct actswap_page *page;
        as_pager_mark(fw.pager, ACTSWAP_FORWARD);
        struct storage *x = filled(7, NULL, BYTES);
        enter(1);
        cr_assert_eq(save(x, NULL, &page), 0);
        storage_replace(x);
        storage_drop(x);
        leave(1, NULL);
        as_pager_drop(fw.pager, page);
        as_pager_mark(fw.pager, ACTSWAP_STEP);
    }
    cr_expect_eq(copied_bytes(), BYTES);
}

Test(pager_held, within_the_budget_it_is_copied_once_when_that_is_exceeded)
{
    struct actswap_page *page;
    as_ledger_budget(fw.ledger, 16 * BYTES);
    for (int i = 0; i < 3; i++)
        step(1, true, NULL, BYTES);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    struct storage *x = filled(7, NULL, BYTES);
    enter(1);
    cr_assert_eq(save(x, NULL, &page), 0);
    storage_drop(x);
    const uint64_t before = copied_bytes();
    struct storage *large = storage_create(20 * BYTES, NULL);

    leave(1, NULL);
    enter(2);
    leave(2, NULL);
    cr_expect_leq(copied_bytes(), before + BYTES);
    const unsigned char *back = need(page, NULL).address;
    fake_finish();
    cr_expect_eq(back[BYTES - 1], 7);
    as_pager_drop(fw.pager, page);
    storage_drop(large);
    cr_expect_eq(fw.held, 0);
}

// Its handle may be another's by then.
Test(pager_held, whose_stream_has_ended_stays)
{
    struct actswap_page *page;
    void *stream = fake_stream(FAKE_EAGER);
    as_pager_stream_made(fw.pager, 0, stream);
    step(1, true, stream, BYTES);
    struct storage *x = filled(7, stream, BYTES);
    enter(1);
    cr_assert_eq(save(x, stream, &page), 0);
    as_pager_stream_ending(fw.pager, stream);
    as_pager_stream_made(fw.pager, 0, stream);
    storage_drop(x);

    leave(1, NULL);
    cr_expect_eq(totals().let_go, 0);
    cr_expect_eq(totals().kept[ACTSWAP_KEPT_DEVICE], 1);
    cr_expect_eq(((unsigned char *)need(page, NULL).address)[0], 7);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fw.held, 0);
}

Test(pager_held, under_a_capture_or_a_refusal_it_stays)
{
    struct actswap_page *page;
    void *stream = fake_stream(FAKE_EAGER), *other = fake_stream(FAKE_EAGER);
    for (int refused = 0; refused < 2; refused++) {
        step(1, true, stream, BYTES);
        as_pager_mark(fw.pager, ACTSWAP_FORWARD);
        struct storage *x = filled(7, other, BYTES);
        enter(1);
        cr_assert_eq(save(x, stream, &page), 0);
        storage_drop(x);
        const uint64_t before = totals().let_go;
        if (refused)
            fake_fail("as_cuda_copy_out", 1);
        else
            fake_capture(stream, true);

        leave(1, NULL);
        fake_capture(stream, false);
        cr_expect_eq(totals().let_go, before);
        cr_expect_eq(fake_spoilt(), 0);
        as_pager_drop(fw.pager, page);
        cr_expect_eq(fw.held, 0);
        as_pager_mark(fw.pager, ACTSWAP_STEP);
    }
}

Test(pager_held, memory_that_is_the_hosts_stays_but_with_no_policy_nobody_asks)
{
    struct storage *x = filled(1, NULL, BYTES);
    struct actswap_page *page;
    fake_shares_memory(true);

    fw.settings.policy = AS_POLICY_OFF;
    cr_expect_eq(save(x, NULL, &page), ACTSWAP_KEPT_POLICY);
    fw.settings.policy = AS_POLICY_OFFLOAD;
    cr_expect_eq(save(x, NULL, &page), ACTSWAP_KEPT_COHERENT);
    fake_shares_memory(false);
    cr_expect_eq(save(x, NULL, &page), ACTSWAP_KEPT_COHERENT, "it is asked once");
    cr_expect_eq(totals().pinned_bytes, 0);
}
