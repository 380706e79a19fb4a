// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "track/ledger.h"
#include "track/place.h"
#include "track/site.h"
#include "track/tally.h"

static struct as_ledger *ledger;
static struct as_tally *tally;

static void start(void)
{
    ledger = as_ledger_create();
    tally = malloc(sizeof(*tally));
    cr_assert_not_null(ledger);
    cr_assert_not_null(tally);
}

static void finish(void)
{
    as_ledger_destroy(ledger);
    free(tally);
}

TestSuite(places, .init = start, .fini = finish);

static void *at(uintptr_t address)
{
    return (void *)address;
}

static void add(uintptr_t address, size_t bytes)
{
    as_ledger_add(ledger, 0, at(address), bytes, AS_LEDGER_ALL_LIVE, NULL);
}

static void freed(uintptr_t address)
{
    cr_assert(as_ledger_remove(ledger, 0, at(address), 0, AS_LEDGER_ALL_LIVE));
}

static void save(uintptr_t address, uint32_t stack)
{
    as_ledger_save(ledger, 0, at(address), ACTSWAP_ACTIVATION, stack);
}

Test(places, blocks_nest_and_have_names)
{
    char text[64];

    as_place_name(77, "layers.0");
    as_place_enter(77);
    const uint32_t first = as_place_now();
    as_place_text(first, text, sizeof(text));
    cr_expect_str_eq(text, "layers.0");
    as_place_enter(78);
    cr_expect_neq(as_place_now(), first);
    as_place_text(as_place_now(), text, sizeof(text));
    cr_expect_str_eq(text, "block 78");
    as_place_leave(78);
    cr_expect_eq(as_place_now(), first);
    as_place_leave(77);
    cr_expect_eq(as_place_now(), 0);
    as_place_leave(77);
    as_place_text(0, text, sizeof(text));
    cr_expect_str_eq(text, "");
}

Test(places, an_exit_that_was_not_told_ends_with_the_outer_one)
{
    as_place_enter(1);
    const uint32_t outer = as_place_now();
    as_place_enter(2);
    as_place_enter(3);
    as_place_leave(4); // was never entered
    cr_expect_eq(as_place_now(), as_place_of(3));
    as_place_leave(2);
    cr_expect_eq(as_place_now(), outer);
    as_place_leave(1);
    cr_expect_eq(as_place_now(), 0);
}

Test(places, a_backward_inside_of_a_forward_ends_in_it)
{
    as_place_enter(1);
    as_place_set(as_place_of(2));
    as_place_enter(3); // what is run again
    cr_expect_eq(as_place_now(), as_place_of(3));
    as_place_leave(3);
    cr_expect_eq(as_place_now(), as_place_of(2));
    as_place_reset();
    cr_expect_eq(as_place_now(), as_place_of(1));
    as_place_leave(1);
    as_place_set(as_place_of(2));
    as_place_reset();
    cr_expect_eq(as_place_now(), 0);
}

Test(places, a_backward_is_at_work_on_what_it_ran_again)
{
    as_place_set(as_place_of(9)); // used last, before
    as_place_again(true);
    cr_expect_eq(as_place_now(), 0);
    as_place_enter(1);
    as_place_enter(2);
    as_place_leave(2);
    cr_expect_eq(as_place_now(), as_place_of(1));
    as_place_leave(1);
    as_place_again(false);
    cr_expect_eq(as_place_now(), as_place_of(1));
    as_place_enter(3);
    as_place_leave(3);
    cr_expect_eq(as_place_now(), as_place_of(1));
    as_place_reset();
    cr_expect_eq(as_place_now(), 0);
}

Test(places, any_depth_comes_back_to_where_it_began)
{
    as_place_enter(1);
    const uint32_t outer = as_place_now();
    for (uint64_t i = 0; i < 100; i++)
        as_place_enter(2 + i);
    for (uint64_t i = 100; i-- > 0;)
        as_place_leave(2 + i);
    cr_expect_eq(as_place_now(), outer);
    as_place_leave(1);
}

Test(places, members_of_a_list_are_alike)
{
    static const char *const names[] = {"layers.0.mlp", "layers.17.mlp", "layers.0.attn",
                                        "conv1",        "conv2",         "layers.2b"};
    char text[64];

    for (uint64_t i = 0; i < 6; i++)
        as_place_name(i, names[i]);
    cr_expect_eq(as_place_shared(as_place_of(0), as_place_of(1)), 3);
    cr_expect_eq(as_place_shared(as_place_of(0), as_place_of(2)), 2);
    cr_expect_eq(as_place_shared(as_place_of(3), as_place_of(4)), 0);
    cr_expect_eq(as_place_shared(as_place_of(2), as_place_of(5)), 1);
    cr_expect_eq(as_place_shared(as_place_of(90), as_place_of(91)), 0, "without a name");
    cr_expect_eq(as_place_shared(0, 0), 0);
    as_place_kind_text(as_place_of(1), 3, text, sizeof(text));
    cr_expect_str_eq(text, "layers.*.mlp");
    as_place_kind_text(as_place_of(1), 2, text, sizeof(text));
    cr_expect_str_eq(text, "layers.*");
    as_place_kind_text(as_place_of(5), AS_PLACE_WORDS, text, sizeof(text));
    cr_expect_str_eq(text, "layers.2b");
    as_place_name(7, "0.1.a");
    as_place_kind_text(as_place_of(7), 3, text, 5);
    cr_expect_str_eq(text, "*.*.");
    as_place_kind_text(as_place_of(7), 0, text, sizeof(text));
    cr_expect_str_eq(text, "");
    as_place_name(8, "1.1.1.1.1.1.1.1.1.1.1.1.1.1");
    as_place_name(9, "1.1.1.1.1.1.1.1.1.1.1.1.1.2");
    cr_expect_eq(as_place_shared(as_place_of(8), as_place_of(9)), AS_PLACE_WORDS - 1);
}

Test(places, a_stack_tells_where_its_activations_were_made)
{
    as_place_name(1, "layers.0");
    as_place_name(2, "layers.1");
    as_place_name(3, "head");
    static const uint64_t made_in[] = {1, 1, 2, 2, 3};
    static const uint32_t stacks[] = {5, 6, 6, 7, 7};

    for (unsigned i = 0; i < 5; i++) {
        as_place_enter(made_in[i]);
        add(0x1000 * (i + 1), 512);
        as_place_leave(made_in[i]);
        save(0x1000 * (i + 1), stacks[i]);
    }
    cr_assert(as_ledger_tally(ledger, tally));
    cr_expect_eq(tally->spreads[5].block, as_place_of(1));
    cr_expect(tally->spreads[6].several);
    cr_expect_geq(tally->spreads[6].words, 2);
    cr_expect_not(tally->spreads[5].several);
    cr_expect_eq(tally->spreads[7].words, 0);
}

Test(places, there_is_an_end_to_stacks_and_blocks)
{
    char frames[32];

    const uint32_t first = as_site_keep("a.py:1 f");
    cr_expect_gt(first, 0);
    cr_expect_eq(as_site_keep("a.py:1 f"), first);
    for (unsigned i = 0; i < AS_PLACES + 100; i++) {
        snprintf(frames, sizeof(frames), "b.py:%u g", i);
        cr_assert_lt(as_site_keep(frames), AS_PLACES);
        cr_assert_lt(as_place_of(1000 + i), AS_PLACES);
    }
    cr_expect_eq(as_site_keep("c.py:1 h"), AS_PLACE_FURTHER);
    cr_expect_eq(as_site_keep(NULL), AS_PLACE_FURTHER);
    cr_expect_eq(as_place_of(1), AS_PLACE_FURTHER);
    cr_expect_str_eq(as_site_text(AS_PLACE_FURTHER), "(further call sites)");
    as_place_name(1, "late");
    char text[64];
    as_place_text(AS_PLACE_FURTHER, text, sizeof(text));
    cr_expect_str_eq(text, "(further modules)");
    cr_expect_str_eq(as_site_text(first), "a.py:1 f");
    cr_expect_null(as_site_text(AS_PLACES));
}

Test(places, there_is_an_end_to_the_text_of_stacks)
{
    enum { LENGTH = 1 << 20 };
    char *frames = malloc(LENGTH + 1);

    cr_assert_not_null(frames);
    memset(frames, 'x', LENGTH);
    frames[LENGTH] = '\0';
    for (char i = 0; i < 4; i++) {
        frames[0] = (char)('a' + i);
        cr_expect_neq(as_site_keep(frames), AS_PLACE_FURTHER);
    }
    frames[0] = 'e';
    cr_expect_eq(as_site_keep(frames), AS_PLACE_FURTHER);
    cr_expect_eq(as_site_keep("short"), AS_PLACE_FURTHER);
    free(frames);
}

Test(places, the_peak_knows_its_block)
{
    struct as_peak peak;
    char text[64];

    as_place_name(5, "layers.5");
    as_place_enter(5);
    add(0x1000, 512);
    as_place_leave(5);
    freed(0x1000);
    add(0x1000, 256);
    as_ledger_peak(ledger, &peak);
    as_place_text(peak.block, text, sizeof(text));
    cr_expect_str_eq(text, "layers.5");
}

Test(places, the_peak_is_counted_whether_freed_or_alive)
{
    add(0x1000, 512);
    save(0x1000, 1);
    add(0x2000, 1024);
    save(0x2000, 2);
    add(0x3000, 2048); // an earlier peak, with this one in it
    save(0x3000, 3);
    freed(0x3000);
    add(0x4000, 4096); // the peak
    save(0x4000, 2);
    freed(0x1000);
    add(0x5000, 512);
    save(0x5000, 1);
    freed(0x5000); // not in it

    cr_assert(as_ledger_tally(ledger, tally));
    cr_expect_eq(tally->stacks[1].bytes, 512);
    cr_expect_eq(tally->stacks[2].bytes, 5120);
    cr_expect_eq(tally->stacks[2].count, 2);
    cr_expect_eq(tally->stacks[3].bytes, 0);
    cr_expect_eq(tally->blocks[0].bytes, 5632);

    as_ledger_add(ledger, 1, at(0x1000), 512, AS_LEDGER_ALL_LIVE, NULL);
    as_ledger_save(ledger, 1, at(0x1000), ACTSWAP_ACTIVATION, 2);
    cr_assert(as_ledger_tally(ledger, tally));
    cr_expect_eq(tally->stacks[1].bytes, 512, "another device's peak leaves this one's");
    cr_expect_eq(tally->stacks[2].bytes, 5632);
    cr_expect_eq(tally->blocks[0].count, 4);
}

Test(places, waits_are_counted_once_a_save)
{
    add(0x1000, 512);
    save(0x1000, 4);
    as_ledger_use(ledger, 0, at(0x1000));
    as_ledger_use(ledger, 0, at(0x1000));
    for (unsigned i = 0; i < 9; i++)
        as_ledger_waited(ledger, 0, 5, 1000, 5000);
    as_ledger_waited(ledger, 0, 5, 1000, UINT64_C(3000000000));

    cr_assert(as_ledger_tally(ledger, tally));
    uint64_t bytes = 0, count = 0;
    for (unsigned n = 0; n < AS_GAPS; n++) {
        bytes += tally->gaps[n].bytes;
        count += tally->gaps[n].count;
        cr_expect_lt(as_tally_edge_ns(n), as_tally_edge_ns(n + 1));
    }
    cr_expect_eq(count, 11);
    cr_expect_eq(bytes, 10512);
    cr_expect_geq(as_tally_wait_ns(tally, 5, 50), 4000);
    cr_expect_leq(as_tally_wait_ns(tally, 5, 90), 8000);
    cr_expect_gt(as_tally_wait_ns(tally, 5, 95), UINT64_C(2000000000));
    cr_expect_eq(as_tally_wait_ns(tally, 6, 50), 0);
}

Test(places, holes_lie_between_blocks_of_a_segment)
{
    struct as_ledger *segments = as_ledger_create();
    struct as_holes holes;

    cr_assert_not_null(segments);
    as_ledger_add(segments, 0, at(0x10000), 0x10000, AS_LEDGER_ALL_LIVE, NULL);
    as_ledger_add(segments, 0, at(0x90000), 0x10000, AS_LEDGER_ALL_LIVE, NULL);
    add(0x10000, 0x1000);
    add(0x14000, 0x2000);

    cr_expect(as_ledger_holes(ledger, segments, 0, &holes));
    cr_expect_eq(holes.bytes, 0x10000 - 0x3000);
    cr_expect_eq(holes.largest_bytes, 0xa000);
    add(0x50000, 0x1000); // in no segment: what was asked for is not known
    cr_expect_not(as_ledger_holes(ledger, segments, 0, &holes));
    as_ledger_destroy(segments);
}

Test(places, at_an_end_what_runs_is_temporary)
{
    struct as_share shares[ACTSWAP_CATEGORIES];

    add(0x1000, 512);
    as_ledger_place(ledger, 0, AS_PHASE_FORWARD);
    add(0x2000, 1024);
    as_ledger_presume(ledger);
    as_ledger_shares(ledger, shares);
    cr_expect_eq(shares[ACTSWAP_UNKNOWN].bytes, 512);
    cr_expect_eq(shares[ACTSWAP_TEMPORARY].bytes, 1024);
    save(0x2000, 0); // the program went on
    as_ledger_shares(ledger, shares);
    cr_expect_eq(shares[ACTSWAP_ACTIVATION].bytes, 1024);
}
