// SPDX-License-Identifier: Apache-2.0
//
// What another thread may do between two steps of the pager's: no lock is held over a CUDA
// call or a verb, so it can come in at each. Here it always does.
#include "pager/pager.h"

#include <string.h>

#include <criterion/criterion.h>

#include "fake_cuda.h"
#include "framework.h"

enum { BYTES = 4096 };

static struct storage *x;
static struct actswap_page *page, *other;
static const char *moment;
static void (*action)(void);

static void come_in(const char *function)
{
    if (!moment || strcmp(function, moment) != 0)
        return;
    moment = NULL;
    action();
}

// At the next call of that function.
static void between(const char *function, void (*what)(void))
{
    moment = function;
    action = what;
    fake_watch(come_in);
}

static void start(void)
{
    framework_start();
    x = storage_create(BYTES, NULL);
    fake_fill(NULL, x->address, 7, BYTES);
}

static bool is_seven(const void *memory)
{
    const unsigned char *bytes = memory;
    for (size_t i = 0; i < BYTES; i++)
        if (bytes[i] != 7)
            return false;
    return true;
}

static void need_it(void)
{
    need(page, NULL);
}

static void drop_it(void)
{
    as_pager_drop(fw.pager, page);
}

static void save_it(void)
{
    cr_assert_eq(save(x, NULL, &other), 0);
}

static void save_and_need_it(void)
{
    save_it();
    need(other, NULL);
}

static void finish(void)
{
    cr_expect_eq(fw.held, 0, "no reference is lost");
    cr_expect_eq(totals().pages, 0);
    as_pager_destroy(fw.pager);
}

TestSuite(pager_between, .init = start);

Test(pager_between, needed_while_it_is_let_go_it_stays)
{
    enter(1);
    save(x, NULL, &page);
    storage_drop(x);
    between("as_cuda_stream_wait", need_it);

    leave(1, NULL);
    cr_expect_eq(totals().let_go, 0);
    cr_expect_eq(fw.held, 1);
    drop_it();
    finish();
}

Test(pager_between, dropped_while_it_is_let_go_it_ends_once)
{
    enter(1);
    save(x, NULL, &page);
    storage_drop(x);
    between("as_cuda_stream_wait", drop_it);

    leave(1, NULL);
    finish();
}

Test(pager_between, dropped_by_its_own_release_it_ends_once)
{
    enter(1);
    save(x, NULL, &page);
    storage_drop(x);
    fw.on_release = drop_it;

    leave(1, NULL);
    finish();
}

static void need_it_first(void)
{
    fw.on_allocate = NULL;
    need_it();
}

Test(pager_between, of_two_that_need_it_one_brings_it_in)
{
    enter(1);
    save(x, NULL, &page);
    storage_drop(x);
    leave(1, NULL);
    fw.on_allocate = need_it_first;

    void *back = need(page, NULL).address;
    cr_expect_eq(totals().in_bytes, BYTES);
    cr_expect_eq(fw.held, 1, "the other's memory went back");
    fake_finish();
    cr_expect(is_seven(back));
    drop_it();
    finish();
}

Test(pager_between, of_two_that_save_it_first_one_copies)
{
    enter(1);
    between("as_cuda_stream_create", save_it);

    save(x, NULL, &page);
    cr_expect_eq(page, other);
    cr_expect_eq(totals().out_bytes, BYTES);
    storage_drop(x);
    leave(1, NULL);
    cr_expect_eq(fw.held, 0);
    drop_it();
    drop_it();
    finish();
}

Test(pager_between, needed_before_its_copy_is_queued_it_stays)
{
    enter(1);
    between("as_cuda_copy_out", save_and_need_it);

    save(x, NULL, &page);
    storage_drop(x);
    leave(1, NULL);
    cr_expect_eq(totals().let_go, 0);
    cr_expect_eq(fw.held, 1);
    drop_it();
    drop_it();
    finish();
}

Test(pager_between, joined_while_its_copy_fails_it_stays_for_both)
{
    enter(1);
    between("as_cuda_copy_out", save_it);
    fake_fail("as_cuda_copy_out", 1);

    cr_expect_eq(save(x, NULL, &page), 0);
    cr_expect_eq(page, other);
    cr_expect_eq(totals().kept[ACTSWAP_KEPT_DEVICE], 1);
    storage_drop(x);
    leave(1, NULL);
    cr_expect_eq(fw.held, 1);
    cr_expect_eq(need(page, NULL).address, x->address);
    drop_it();
    drop_it();
    finish();
}
