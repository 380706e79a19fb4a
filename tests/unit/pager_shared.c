// SPDX-License-Identifier: Apache-2.0
//
// Storages that others hold beside us: we keep our reference as long as they do.
#include "pager/pager.h"

#include <criterion/criterion.h>

#include "fake_cuda.h"
#include "framework.h"

enum { BYTES = 4096 };

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

static void start(void)
{
    framework_start();
    framework_tell_holders();
}

TestSuite(pager_shared, .init = start);

Test(pager_shared, what_others_hold_is_let_go_by_us_once_they_have_gone)
{
    struct actswap_page *first, *second;
    struct storage *x = filled(1, NULL), *y = filled(2, NULL);
    enter(1);
    save(x, NULL, &first);
    save(y, NULL, &second);
    leave(1, NULL);
    cr_expect_eq(totals().let_go, 0);
    storage_drop(x);
    cr_expect_eq(released_bytes(), 0, "we hold it");

    enter(2);
    cr_expect_eq(released_bytes(), BYTES);
    storage_drop(y);
    leave(2, NULL);
    cr_expect_eq(released_bytes(), 2 * BYTES);
    cr_expect_eq(totals().held_elsewhere, 0);
    void *a = need(first, NULL).address, *b = need(second, NULL).address;
    fake_finish();
    cr_expect(holds(a, 1));
    cr_expect(holds(b, 2));
    as_pager_drop(fw.pager, first);
    as_pager_drop(fw.pager, second);
}

Test(pager_shared, what_others_hold_at_backward_is_there_and_counted_once)
{
    struct actswap_page *page;
    struct storage *x = filled(1, NULL);
    save(x, NULL, &page);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);

    cr_expect_eq(totals().held_elsewhere, 1);
    cr_expect_eq(totals().let_go, 0);
    cr_expect_eq(need(page, NULL).address, x->address);
    cr_expect_eq(totals().in_bytes, 0);
    as_pager_drop(fw.pager, page);
    storage_drop(x);
    cr_expect_eq(fw.held, 0);
}

Test(pager_shared, nothing_shared_is_let_go_while_a_backward_runs)
{
    struct actswap_page *page;
    struct storage *x = filled(1, NULL);
    save(x, NULL, &page);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    storage_drop(x);
    enter(1);
    leave(1, NULL);

    cr_expect_eq(totals().let_go, 0, "it is needed soon");
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    enter(1);
    cr_expect_eq(totals().let_go, 1, "the graph was kept");
    leave(1, NULL);
    as_pager_drop(fw.pager, page);
}

Test(pager_shared, a_kept_graph_that_others_read_is_let_go_when_they_are_done)
{
    struct actswap_page *page;
    struct storage *x = filled(8, NULL);
    enter(1);
    save(x, NULL, &page);
    storage_drop(x);
    leave(1, NULL);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    struct storage *reader = storage_share(need(page, NULL).ref);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    cr_expect_eq(totals().let_go, 1);

    storage_drop(reader);
    enter(2);
    cr_expect_eq(totals().let_go, 2);
    leave(2, NULL);
    cr_expect_eq(fw.held, 0);
    as_pager_drop(fw.pager, page);
}

// Verbs are called without a lock, so that anything may happen in them.
static struct actswap_page *wanted;

static size_t need_and_hold(void *context, void *ref)
{
    (void)context;
    (void)ref;
    need(wanted, NULL);
    return 0;
}

Test(pager_shared, what_is_needed_while_its_holders_are_counted_stays)
{
    struct storage *x = filled(8, NULL);
    enter(1);
    save(x, NULL, &wanted);
    storage_drop(x);
    fw.verbs.holders = need_and_hold;

    leave(1, NULL);
    cr_expect_eq(totals().let_go, 0);
    cr_expect_eq(fw.held, 1);
    as_pager_drop(fw.pager, wanted);
    cr_expect_eq(fw.held, 0);
}

Test(pager_shared, a_kept_page_needed_at_the_end_of_its_backward_goes_after_the_next)
{
    struct storage *x = filled(8, NULL);
    enter(1);
    save(x, NULL, &wanted);
    storage_drop(x);
    leave(1, NULL);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    need(wanted, NULL);
    fw.verbs.holders = need_and_hold;
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    cr_expect_eq(totals().let_go, 1);

    framework_tell_holders();
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    cr_expect_eq(totals().let_go, 2);
    as_pager_drop(fw.pager, wanted);
    cr_expect_eq(fw.held, 0);
}

static size_t drop_and_say_alone(void *context, void *ref)
{
    (void)context;
    (void)ref;
    as_pager_drop(fw.pager, wanted);
    return 0;
}

Test(pager_shared, what_is_dropped_while_its_holders_are_counted_ends_once)
{
    struct storage *x = filled(8, NULL);
    enter(1);
    save(x, NULL, &wanted);
    storage_drop(x);
    fw.verbs.holders = drop_and_say_alone;

    leave(1, NULL);
    cr_expect_eq(fw.held, 0);
    cr_expect_eq(totals().pages, 0);
    as_pager_destroy(fw.pager);
}
