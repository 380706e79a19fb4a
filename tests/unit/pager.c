// SPDX-License-Identifier: Apache-2.0
#include "pager/pager.h"

#include <errno.h>
#include <string.h>

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

TestSuite(pager, .init = framework_start);

Test(pager, a_page_is_let_go_at_the_exit_of_its_block_and_comes_back)
{
    struct storage *x = filled(7, NULL);
    struct actswap_page *page;
    enter(1);
    cr_assert_eq(save(x, NULL, &page), 0);
    storage_drop(x);
    cr_expect_eq(fw.held, 1, "the page holds it inside the block");

    leave(1, NULL);
    cr_expect_eq(fw.held, 0);
    cr_expect_eq(released_bytes(), BYTES);
    cr_expect_eq(totals().let_go, 1);
    struct storage *other = filled(9, NULL); // the same memory again
    cr_expect_eq(other->address, x->address);

    struct actswap_resident back = need(page, NULL);
    fake_finish();
    cr_expect(holds(back.address, 7));
    cr_expect_eq(totals().out_bytes, BYTES);
    cr_expect_eq(totals().in_bytes, BYTES);
    as_pager_drop(fw.pager, page);
    storage_drop(other);
    cr_expect_eq(fw.held, 0);
    cr_expect_eq(totals().pages, 0);
    as_pager_destroy(fw.pager);
}

Test(pager, blocks_nest_and_each_lets_go_of_its_own)
{
    struct actswap_page *inner, *outer;
    struct storage *x = filled(1, NULL), *y = filled(2, NULL);
    enter(1);
    save(x, NULL, &outer);
    enter(2);
    save(y, NULL, &inner);
    storage_drop(x);
    storage_drop(y);

    leave(2, NULL);
    cr_expect_eq(fw.held, 1);
    leave(1, NULL);
    cr_expect_eq(fw.held, 0);
    as_pager_drop(fw.pager, inner);
    as_pager_drop(fw.pager, outer);
}

Test(pager, an_exit_that_matches_no_entry_does_nothing)
{
    struct actswap_page *page;
    struct storage *x = filled(1, NULL);
    enter(1);
    save(x, NULL, &page);

    leave(2, NULL);
    cr_expect_eq(totals().let_go, 0);
    leave(1, NULL);
    cr_expect_eq(totals().let_go, 1);
    as_pager_drop(fw.pager, page);
}

Test(pager, an_exit_closes_the_blocks_that_raised_inside)
{
    struct actswap_page *page;
    struct storage *x = filled(1, NULL);
    enter(1);
    enter(2);
    save(x, NULL, &page);

    leave(1, NULL);
    cr_expect_eq(totals().let_go, 1);
    as_pager_drop(fw.pager, page);
}

Test(pager, what_is_saved_outside_blocks_goes_when_backward_begins)
{
    struct actswap_page *page;
    struct storage *x = filled(5, NULL);
    save(x, NULL, &page);
    storage_drop(x);
    cr_expect_eq(fw.held, 1);

    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    cr_expect_eq(fw.held, 0);
    struct actswap_resident back = need(page, NULL);
    fake_finish();
    cr_expect(holds(back.address, 5));
    as_pager_drop(fw.pager, page);
}

Test(pager, outside_blocks_it_goes_some_saves_later_unless_others_hold_it)
{
    enum { SAVES = 32 };
    struct actswap_page *pages[SAVES];
    framework_tell_holders();
    struct storage *kept = filled(0, NULL);
    save(kept, NULL, &pages[0]);
    for (unsigned char i = 1; i < SAVES; i++) {
        struct storage *x = filled(i, NULL);
        save(x, NULL, &pages[i]);
        storage_drop(x);
    }

    cr_expect_lt(fw.held, SAVES / 2, "%d of %d are still held", fw.held, SAVES);
    for (unsigned char i = SAVES; i-- > 0;) {
        struct actswap_resident back = need(pages[i], NULL);
        fake_finish();
        cr_expect(holds(back.address, i));
        cr_expect(i != 0 || back.address == kept->address);
        as_pager_drop(fw.pager, pages[i]);
    }
    storage_drop(kept);
}

Test(pager, one_storage_saved_often_is_one_page_and_one_copy)
{
    struct actswap_page *first, *second;
    struct storage *x = filled(3, NULL);
    enter(1);
    save(x, NULL, &first);
    save(x, NULL, &second);
    cr_expect_eq(first, second);
    cr_expect_eq(x->references, 2, "the caller's and the page's");
    storage_drop(x);
    leave(1, NULL);

    cr_expect_eq(totals().out_bytes, BYTES);
    as_pager_drop(fw.pager, first);
    cr_expect_eq(totals().pages, 1, "the other save still wants it");
    struct actswap_resident back = need(second, NULL);
    fake_finish();
    cr_expect(holds(back.address, 3));
    as_pager_drop(fw.pager, second);
    cr_expect_eq(fw.held, 0);
}

Test(pager, a_reused_address_is_a_new_page)
{
    struct actswap_page *first, *second;
    struct storage *x = filled(3, NULL);
    enter(1);
    save(x, NULL, &first);
    storage_drop(x);
    leave(1, NULL);
    struct storage *y = filled(4, NULL);
    cr_assert_eq(y->address, x->address);
    enter(2);
    save(y, NULL, &second);
    storage_drop(y);
    leave(2, NULL);

    cr_expect_neq(first, second);
    void *a = need(first, NULL).address, *b = need(second, NULL).address;
    fake_finish();
    cr_expect(holds(a, 3));
    cr_expect(holds(b, 4));
    as_pager_drop(fw.pager, first);
    as_pager_drop(fw.pager, second);
}

Test(pager, a_storage_written_since_is_a_new_page)
{
    struct storage *x = filled(3, NULL);
    struct actswap_page *pages[2];
    for (int version = 0; version < 2; version++) {
        struct actswap_saved saved = {.size = sizeof(saved),
                                      .address = x->address,
                                      .bytes = BYTES,
                                      .used_bytes = BYTES,
                                      .version = (uint64_t)version,
                                      .ref = storage_share(x)};
        cr_assert_eq(as_pager_save(fw.pager, &saved, &pages[version]), 0);
        fake_fill(NULL, x->address, 4, BYTES);
    }

    cr_expect_neq(pages[0], pages[1]);
    storage_drop(x);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    void *a = need(pages[0], NULL).address, *b = need(pages[1], NULL).address;
    fake_finish();
    cr_expect(holds(a, 3));
    cr_expect(holds(b, 4));
    as_pager_drop(fw.pager, pages[0]);
    as_pager_drop(fw.pager, pages[1]);
}

Test(pager, saved_again_after_it_was_let_go_the_live_storage_is_taken_over)
{
    struct actswap_page *first, *second;
    struct storage *x = filled(6, NULL);
    enter(1);
    save(x, NULL, &first);
    leave(1, NULL);
    cr_expect_eq(released_bytes(), 0, "the caller holds it");
    enter(2);
    save(x, NULL, &second);
    cr_expect_eq(first, second);
    storage_drop(x);
    cr_expect_eq(fw.held, 1);

    leave(2, NULL);
    cr_expect_eq(fw.held, 0);
    cr_expect_eq(totals().out_bytes, BYTES, "it is copied once");
    void *back = need(first, NULL).address;
    fake_finish();
    cr_expect(holds(back, 6));
    as_pager_drop(fw.pager, first);
    as_pager_drop(fw.pager, second);
    cr_expect_eq(fw.held, 0);
}

Test(pager, a_storage_that_lives_on_is_counted_once)
{
    struct actswap_page *page;
    struct storage *x = filled(6, NULL);
    enter(1);
    save(x, NULL, &page);
    leave(1, NULL);

    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    cr_expect_eq(totals().held_elsewhere, 1);
    cr_expect_eq(totals().let_go, 1);
    as_pager_drop(fw.pager, page);
}

Test(pager, a_storage_with_other_memory_stays_as_it_is)
{
    struct actswap_page *page;
    struct storage *x = filled(8, NULL);
    enter(1);
    save(x, NULL, &page);
    storage_replace(x);
    fake_fill(NULL, x->address, 9, BYTES);
    storage_drop(x);

    leave(1, NULL);
    cr_expect_eq(totals().let_go, 0, "what was copied out may be anything");
    cr_expect_eq(need(page, NULL).ref, x);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fw.held, 0);
}

Test(pager, a_storage_that_came_back_and_got_other_memory_stays)
{
    struct actswap_page *page;
    struct storage *x = filled(8, NULL);
    enter(1);
    save(x, NULL, &page);
    storage_drop(x);
    leave(1, NULL);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    struct storage *back = need(page, NULL).ref;
    storage_replace(back);

    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    cr_expect_eq(totals().let_go, 1);
    cr_expect_eq(need(page, NULL).ref, back);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fw.held, 0);
}

Test(pager, needed_twice_it_is_brought_in_once)
{
    struct actswap_page *page;
    struct storage *x = filled(8, NULL);
    enter(1);
    save(x, NULL, &page);
    storage_drop(x);
    leave(1, NULL);

    void *once = need(page, NULL).address, *twice = need(page, NULL).address;
    cr_expect_eq(once, twice);
    cr_expect_eq(totals().in_bytes, BYTES);
    as_pager_drop(fw.pager, page);
}

Test(pager, a_kept_graph_is_let_go_after_its_backward_and_comes_back_again)
{
    struct actswap_page *page;
    struct storage *x = filled(8, NULL);
    enter(1);
    save(x, NULL, &page);
    storage_drop(x);
    leave(1, NULL);

    for (int backward = 0; backward < 3; backward++) {
        as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
        void *back = need(page, NULL).address;
        unsigned char seen[BYTES];
        fake_read(NULL, back, seen, BYTES);
        as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
        cr_expect_eq(fw.held, 0);
        fake_finish();
        cr_expect(holds(seen, 8));
    }
    cr_expect_eq(totals().out_bytes, BYTES, "the host copy is still good");
    cr_expect_eq(totals().in_bytes, 3 * BYTES);
    as_pager_drop(fw.pager, page);
}

Test(pager, nothing_is_taken_away_while_another_backward_runs)
{
    struct actswap_page *page;
    struct storage *x = filled(8, NULL);
    enter(1);
    save(x, NULL, &page);
    storage_drop(x);
    leave(1, NULL);

    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    need(page, NULL);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    cr_expect_eq(fw.held, 1);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    cr_expect_eq(fw.held, 0);
    as_pager_drop(fw.pager, page);
}

Test(pager, what_is_in_use_already_stays_at_the_exit)
{
    struct actswap_page *page;
    struct storage *x = filled(8, NULL);
    enter(1);
    save(x, NULL, &page);
    storage_drop(x);
    need(page, NULL);

    leave(1, NULL);
    cr_expect_eq(fw.held, 1);
    cr_expect_eq(totals().let_go, 0);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fw.held, 0);
}

Test(pager, an_unused_graph_leaves_nothing_behind)
{
    struct actswap_page *page;
    struct storage *x = filled(8, NULL);
    enter(1);
    save(x, NULL, &page);
    as_pager_drop(fw.pager, page);
    leave(1, NULL);

    storage_drop(x);
    cr_expect_eq(fw.held, 0);
    cr_expect_eq(totals().pages, 0);
    as_pager_destroy(fw.pager);
}

Test(pager, the_second_step_pins_nothing_new)
{
    uint64_t pinned = 0;
    for (int step = 0; step < 3; step++) {
        struct actswap_page *pages[4];
        enter(1);
        for (int i = 0; i < 4; i++) {
            struct storage *x = filled(i, NULL);
            save(x, NULL, &pages[i]);
            storage_drop(x);
        }
        leave(1, NULL);
        for (int i = 3; i >= 0; i--) {
            need(pages[i], NULL);
            as_pager_drop(fw.pager, pages[i]);
        }
        if (step == 0)
            pinned = totals().pinned_bytes;
    }

    cr_expect_eq(pinned, 4 * BYTES, "exact sizes");
    cr_expect_eq(totals().pinned_bytes, pinned);
    cr_expect_eq(fake_calls("as_cuda_host_alloc"), 4);
}

// --- Admission

static int save_with(struct actswap_saved saved)
{
    struct actswap_page *page;
    saved.size = sizeof(saved);
    return as_pager_save(fw.pager, &saved, &page);
}

Test(pager, each_refusal_has_its_reason_and_takes_nothing)
{
    struct storage *x = filled(1, NULL);
    struct actswap_page *page;

    as_pager_attach(fw.pager, NULL, NULL);
    cr_expect_eq(save(x, NULL, &page), ACTSWAP_KEPT_DETACHED);
    as_pager_attach(fw.pager, &fw.verbs, NULL);

    char stranger[BYTES];
    cr_expect_eq(save_with((struct actswap_saved){
                     .address = stranger, .bytes = BYTES, .used_bytes = BYTES, .ref = x}),
                 ACTSWAP_KEPT_UNKNOWN);
    cr_expect_eq(
        save_with((struct actswap_saved){
            .address = x->address + 512, .bytes = 512, .used_bytes = 512, .ref = x}),
        ACTSWAP_KEPT_UNKNOWN, "only whole blocks free anything");
    cr_expect_eq(save_with((struct actswap_saved){.address = x->address,
                                                  .bytes = BYTES,
                                                  .used_bytes = BYTES / 4 - 1,
                                                  .ref = x}),
                 ACTSWAP_KEPT_PART);

    cr_expect_eq(save_with((struct actswap_saved){.address = x->address,
                                                  .bytes = BYTES,
                                                  .used_bytes = BYTES,
                                                  .category = ACTSWAP_PARAMETER,
                                                  .ref = x}),
                 ACTSWAP_KEPT_OLD, "gathered just now");

    fw.settings.offload_min_bytes = BYTES + 1;
    cr_expect_eq(save(x, NULL, &page), ACTSWAP_KEPT_SMALL);
    fw.settings.offload_min_bytes = 0;
    fw.settings.policy = AS_POLICY_OFF;
    cr_expect_eq(save(x, NULL, &page), ACTSWAP_KEPT_POLICY);
    fw.settings.policy = AS_POLICY_OFFLOAD;

    as_pager_block(fw.pager, ACTSWAP_ENTER, 1, ACTSWAP_KEEP, NULL);
    cr_expect_eq(save(x, NULL, &page), ACTSWAP_KEPT_TAIL);
    leave(1, NULL);
    as_pager_block(fw.pager, ACTSWAP_ENTER, 1, ACTSWAP_RECOMPUTE, NULL);
    cr_expect_eq(save(x, NULL, &page), ACTSWAP_KEPT_POLICY);
    leave(1, NULL);

    fake_capture(NULL, true);
    cr_expect_eq(save(x, NULL, &page), ACTSWAP_KEPT_CAPTURE);
    fake_capture(NULL, false);

    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    cr_expect_eq(save(x, NULL, &page), ACTSWAP_KEPT_BACKWARD);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    cr_expect_eq(save(x, NULL, &page), ACTSWAP_KEPT_OLD);

    cr_expect_eq(x->references, 1);
    cr_expect_eq(totals().out_bytes, 0);
    cr_expect_eq(totals().kept[ACTSWAP_KEPT_OLD], 2);
    cr_expect_eq(totals().kept_bytes[ACTSWAP_KEPT_POLICY], 2 * BYTES);
}

Test(pager, before_the_first_forward_everything_is_old)
{
    struct actswap_page *page;
    fw.pager = as_pager_create(&fw.settings, fw.ledger);
    as_pager_attach(fw.pager, &fw.verbs, NULL);

    cr_expect_eq(save(filled(1, NULL), NULL, &page), ACTSWAP_KEPT_OLD);
}

Test(pager, a_backward_that_raised_does_not_stop_the_next_forward)
{
    struct actswap_page *page;
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);

    cr_expect_eq(save(filled(1, NULL), NULL, &page), 0);
}

Test(pager, off_knows_activations_too)
{
    struct actswap_page *page;
    struct as_block block;
    struct storage *old = filled(1, NULL);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    struct storage *x = filled(1, NULL);
    fw.settings.policy = AS_POLICY_OFF;
    save(x, NULL, &page);
    save(old, NULL, &page);

    as_ledger_find(fw.ledger, 0, x->address, &block);
    cr_expect_eq(block.category, ACTSWAP_ACTIVATION);
    as_ledger_find(fw.ledger, 0, old->address, &block);
    cr_expect_eq(block.category, ACTSWAP_INPUT);
}

Test(pager, a_block_that_keeps_holds_on_to_what_an_earlier_one_let_go)
{
    struct actswap_page *first, *second;
    struct storage *x = filled(6, NULL);
    enter(1);
    save(x, NULL, &first);
    leave(1, NULL);
    as_pager_block(fw.pager, ACTSWAP_ENTER, 2, ACTSWAP_KEEP, NULL);
    save(x, NULL, &second);
    storage_drop(x);
    leave(2, NULL);

    cr_expect_eq(fw.held, 1);
    cr_expect_eq(need(second, NULL).address, x->address);
    cr_expect_eq(totals().in_bytes, 0);
    as_pager_drop(fw.pager, first);
    as_pager_drop(fw.pager, second);
    cr_expect_eq(fw.held, 0);
}

// --- Verbs that call back

static struct actswap_page *victims[2];

static void drop_the_others(void)
{
    for (int i = 0; i < 2; i++) {
        struct actswap_page *page = victims[i];
        victims[i] = NULL;
        as_pager_drop(fw.pager, page);
    }
}

Test(pager, a_release_may_drop_pages_of_the_same_block)
{
    struct actswap_page *first;
    enter(1);
    struct storage *x = filled(1, NULL);
    save(x, NULL, &first);
    storage_drop(x);
    for (int i = 0; i < 2; i++) {
        x = filled(i, NULL);
        save(x, NULL, &victims[i]);
        storage_drop(x);
    }
    fw.on_release = drop_the_others;

    leave(1, NULL);
    cr_expect_eq(fw.held, 0);
    cr_expect_eq(totals().pages, 1);
    as_pager_drop(fw.pager, first);
    cr_expect_eq(totals().pages, 0);
}

Test(pager, at_the_boundary_goes_what_a_block_did_not_make)
{
    struct actswap_page *pages[4];
    fw.settings.offload_boundary = true;
    struct storage *x = storage_create(BYTES, NULL);

    cr_expect_eq(save(x, NULL, &pages[0]), ACTSWAP_KEPT_INSIDE, "in no block");
    enter(1);
    struct storage *y = storage_create(BYTES, NULL);
    cr_expect_eq(save(y, NULL, &pages[1]), ACTSWAP_KEPT_INSIDE);
    enter(2); // a part of the first
    cr_expect_eq(save(y, NULL, &pages[1]), ACTSWAP_KEPT_INSIDE);
    cr_expect_eq(save(x, NULL, &pages[2]), 0);
    leave(2, NULL);
    leave(1, NULL);
    enter(3);
    cr_expect_eq(save(y, NULL, &pages[3]), 0);
    leave(3, NULL);

    as_pager_drop(fw.pager, pages[2]);
    as_pager_drop(fw.pager, pages[3]);
    storage_drop(x);
    storage_drop(y);
    cr_expect_eq(fw.held, 0);
}
