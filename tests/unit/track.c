// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "core/clock.h"
#include "track/digest.h"
#include "track/index.h"
#include "track/ledger.h"
#include "track/notes.h"
#include "track/steps.h"

static struct as_ledger *ledger;

static void start(void)
{
    ledger = as_ledger_create();
    cr_assert_not_null(ledger);
}

static void finish(void)
{
    as_ledger_destroy(ledger);
}

TestSuite(ledger, .init = start, .fini = finish);

static void *at(uintptr_t address)
{
    return (void *)address;
}

static void add(uintptr_t address, size_t bytes)
{
    as_ledger_add(ledger, 0, at(address), bytes, AS_LEDGER_ALL_LIVE, NULL);
}

static bool removed(uintptr_t address)
{
    return as_ledger_remove(ledger, 0, at(address), 0, AS_LEDGER_ALL_LIVE);
}

static struct as_ledger_totals totals(void)
{
    struct as_ledger_totals figures;

    as_ledger_totals(ledger, -1, &figures);
    return figures;
}

Test(ledger, peak_outlives_the_free)
{
    add(0x1000, 512);
    add(0x2000, 1024);
    cr_assert(removed(0x1000));
    add(0x3000, 256);

    cr_expect_eq(totals().live_bytes, 1280);
    cr_expect_eq(totals().peak_bytes, 1536);
    cr_expect_eq(totals().allocations, 3);
    cr_expect_eq(totals().frees, 1);
}

Test(ledger, any_address_inside_a_block_finds_it)
{
    struct as_block block;

    add(0x2000, 0x100);
    cr_assert(as_ledger_find(ledger, 0, at(0x20ff), &block));
    cr_expect_eq(block.address, at(0x2000));
    cr_expect_eq(block.bytes, 0x100);
    cr_expect_not(as_ledger_find(ledger, 0, at(0x2100), &block));
    cr_expect_not(as_ledger_find(ledger, 0, at(0x1fff), &block));
    cr_expect_not(as_ledger_find(ledger, 1, at(0x2000), &block));
    cr_assert(as_ledger_find(ledger, -1, at(0x2000), &block));
    cr_expect_eq(block.device, 0);
}

Test(ledger, an_address_that_comes_back_has_another_generation)
{
    struct as_block first, second;

    add(0x1000, 512);
    cr_assert(as_ledger_find(ledger, 0, at(0x1000), &first));
    removed(0x1000);
    add(0x1000, 512);
    cr_assert(as_ledger_find(ledger, 0, at(0x1000), &second));

    cr_expect_lt(first.generation, second.generation);
    cr_expect_lt(second.generation, as_ledger_now(ledger, 0));
    cr_expect_eq(as_ledger_expect_free(ledger, 0, at(0x1000), first.generation), -ENOENT);
    cr_expect_not(
        as_ledger_remove(ledger, 0, at(0x1000), first.generation, AS_LEDGER_ALL_LIVE),
        "a late free of the first block must not take the second");
    cr_expect_eq(totals().live_bytes, 512);
}

Test(ledger, released_is_a_free_that_was_expected)
{
    struct as_block block;

    add(0x1000, 512);
    add(0x2000, 2048);
    cr_assert(as_ledger_find(ledger, 0, at(0x1000), &block));
    cr_assert_eq(as_ledger_expect_free(ledger, 0, at(0x1000), block.generation), 0);
    cr_expect_eq(totals().released_bytes, 0, "not before the free");

    removed(0x2000);
    cr_expect_eq(totals().released_bytes, 0);
    removed(0x1000);
    cr_expect_eq(totals().released_bytes, 512);
}

Test(ledger, unknown_frees_change_nothing)
{
    add(0x1000, 512);
    cr_expect_not(removed(0x5000));
    cr_expect_not(removed(0x1100));
    cr_expect_eq(totals().live_bytes, 512);
    cr_expect_eq(totals().frees, 0);
}

Test(ledger, a_missed_free_is_made_up_for)
{
    add(0x1000, 512);
    add(0x1000, 1024);
    cr_expect_eq(totals().live_bytes, 1024);
    cr_expect_eq(totals().frees, 1);
}

Test(ledger, devices_have_books_of_their_own)
{
    as_ledger_add(ledger, 0, at(0x1000), 512, 1000, NULL);
    as_ledger_add(ledger, 1, at(0x9000), 2048, 4000, NULL);
    cr_assert(as_ledger_remove(ledger, -1, at(0x9000), 0, 3000));

    struct as_ledger_totals first, second;
    as_ledger_totals(ledger, 0, &first);
    as_ledger_totals(ledger, 1, &second);
    cr_expect_eq(first.live_bytes, 512);
    cr_expect_eq(first.reserved_bytes, 1000);
    cr_expect_eq(second.live_bytes, 0);
    cr_expect_eq(second.peak_bytes, 2048);
    cr_expect_eq(second.reserved_bytes, 3000);
    cr_expect_eq(totals().peak_bytes, 2560);
}

Test(ledger, a_device_that_cannot_be_is_ignored)
{
    as_ledger_add(ledger, -1, at(0x1000), 512, 0, NULL);
    as_ledger_add(ledger, 1000, at(0x1000), 512, 0, NULL);
    cr_expect_eq(totals().allocations, 0);
    cr_expect_not(as_ledger_remove(ledger, 1000, at(0x1000), 0, 0));
    cr_expect_eq(as_ledger_tag(ledger, 1000, at(0x1000), ACTSWAP_INPUT), -ENOENT);
}

Test(ledger, a_step_begins_with_what_is_alive)
{
    as_ledger_add(ledger, 0, at(0x1000), 4096, 8192, NULL);
    as_ledger_add(ledger, 0, at(0x9000), 4096, 16384, NULL);
    as_ledger_remove(ledger, 0, at(0x9000), 0, 8192);
    cr_expect_eq(totals().step_peak_bytes, 8192);
    cr_expect_eq(totals().step_peak_reserved_bytes, 16384);

    as_ledger_step(ledger);
    cr_expect_eq(totals().step_peak_bytes, 4096);
    cr_expect_eq(totals().step_peak_reserved_bytes, 8192);
    cr_expect_eq(totals().peak_bytes, 8192);
}

Test(ledger, a_name_given_after_the_peak_counts_there_too)
{
    add(0x1000, 512);
    add(0x2000, 1024); // the peak
    removed(0x2000);
    add(0x3000, 256); // born after it

    cr_assert_eq(as_ledger_tag(ledger, 0, at(0x1080), ACTSWAP_PARAMETER), 0);
    cr_assert_eq(as_ledger_tag(ledger, 0, at(0x3000), ACTSWAP_GRADIENT), 0);
    cr_expect_eq(totals().peak_by_category[ACTSWAP_PARAMETER], 512);
    cr_expect_eq(totals().peak_by_category[ACTSWAP_TEMPORARY], 1024);
    cr_expect_eq(totals().peak_by_category[ACTSWAP_GRADIENT], 0);
    cr_expect_eq(totals().live_by_category[ACTSWAP_GRADIENT], 256);

    removed(0x1000);
    cr_expect_eq(totals().live_by_category[ACTSWAP_PARAMETER], 0);
    cr_expect_eq(totals().peak_by_category[ACTSWAP_PARAMETER], 512);
}

Test(ledger, an_activation_never_replaces_another_name)
{
    struct as_block block;

    add(0x1000, 512);
    as_ledger_tag(ledger, 0, at(0x1000), ACTSWAP_PARAMETER);
    cr_expect_eq(as_ledger_tag(ledger, 0, at(0x1000), ACTSWAP_ACTIVATION), 0);
    cr_assert(as_ledger_find(ledger, 0, at(0x1000), &block));
    cr_expect_eq(block.category, ACTSWAP_PARAMETER);
    cr_expect_eq(as_ledger_tag(ledger, 0, at(0x1000), (enum actswap_category)99),
                 -EINVAL);
}

Test(ledger, the_peak_knows_where_it_was)
{
    as_ledger_place(ledger, 4, AS_PHASE_BACKWARD);
    add(0x1000, 512);
    as_ledger_place(ledger, 5, AS_PHASE_FORWARD);
    removed(0x1000);
    add(0x1000, 256);

    cr_expect_eq(totals().peak_step, 4);
    cr_expect_eq(totals().peak_phase, AS_PHASE_BACKWARD);
}

Test(ledger, the_first_moment_above_the_budget_is_kept)
{
    struct as_excess excess;

    as_ledger_budget(ledger, 1024);
    add(0x1000, 1024);
    cr_expect_not(as_ledger_excess(ledger, 0, &excess), "all of it is not too much");
    as_ledger_place(ledger, 2, AS_PHASE_BACKWARD);
    add(0x2000, 1);
    cr_assert(removed(0x2000));
    as_ledger_place(ledger, 5, AS_PHASE_FORWARD);
    add(0x3000, 4096);

    cr_assert(as_ledger_excess(ledger, 0, &excess));
    cr_expect_eq(excess.step, 2);
    cr_expect_eq(excess.phase, AS_PHASE_BACKWARD);
    cr_expect_not(as_ledger_excess(ledger, 1, &excess), "the budget is each device's");
    cr_expect_not(as_ledger_excess(ledger, -1, &excess));
    as_ledger_clear(ledger);
    cr_expect_not(as_ledger_excess(ledger, 0, &excess));
}

Test(ledger, a_budget_that_comes_late_finds_the_peak)
{
    struct as_excess excess;

    as_ledger_place(ledger, 3, AS_PHASE_OPTIMIZER);
    add(0x1000, 1024);
    as_ledger_place(ledger, 4, AS_PHASE_FORWARD);
    as_ledger_budget(ledger, 1000);

    cr_assert(as_ledger_excess(ledger, 0, &excess));
    cr_expect_eq(excess.step, 3);
    cr_expect_eq(excess.phase, AS_PHASE_OPTIMIZER);
}

Test(ledger, streams_used_since_a_generation)
{
    void *streams[4] = {NULL};

    as_ledger_add(ledger, 0, at(0x1000), 512, 0, at(0xa));
    as_ledger_add(ledger, 0, at(0x2000), 512, 0, at(0xb));
    const uint64_t now = as_ledger_now(ledger, 0);
    cr_expect_eq(as_ledger_streams(ledger, 0, now, streams, 4), 0);
    as_ledger_add(ledger, 0, at(0x3000), 512, 0, at(0xc));
    as_ledger_add(ledger, 0, at(0x4000), 512, 0, at(0xa));

    cr_expect_eq(as_ledger_streams(ledger, 0, now, streams, 4), 2);
    cr_expect_eq(streams[0], at(0xa));
    cr_expect_eq(streams[1], at(0xc));
    cr_expect_eq(as_ledger_streams(ledger, 0, 0, streams, 1), 3, "all are counted");
}

Test(ledger, clear_forgets_all_but_the_generation)
{
    add(0x1000, 512);
    const uint64_t now = as_ledger_now(ledger, 0);
    as_ledger_clear(ledger);

    struct as_block block;
    cr_expect_eq(totals().peak_bytes, 0);
    cr_expect_not(as_ledger_find(ledger, 0, at(0x1000), &block));
    add(0x1000, 256);
    cr_assert(as_ledger_find(ledger, 0, at(0x1000), &block));
    cr_expect_geq(block.generation, now);
}

// The same calls on a table so simple that it cannot be wrong.
enum { MODEL = 512, BLOCK = 64 };

Test(ledger, agrees_with_a_plain_table_over_random_events)
{
    static size_t model[MODEL];
    uint64_t live = 0, peak = 0;

    srand(1);
    for (int event = 0; event < 200000; event++) {
        const int slot = rand() % MODEL;
        const uintptr_t address = (uintptr_t)(slot + 1) * BLOCK;
        struct as_block block;

        if (model[slot]) {
            const size_t inside = (size_t)rand() % BLOCK;
            const bool found = as_ledger_find(ledger, 0, at(address + inside), &block);

            cr_assert_eq(found, inside < model[slot]);
            cr_assert(removed(address));
            live -= model[slot];
            model[slot] = 0;
        } else {
            cr_assert_not(as_ledger_find(ledger, 0, at(address), &block));
            model[slot] = (size_t)rand() % BLOCK + 1;
            add(address, model[slot]);
            live += model[slot];
            peak = live > peak ? live : peak;
        }
        cr_assert_eq(totals().live_bytes, live);
    }
    cr_expect_eq(totals().peak_bytes, peak);
}

// --- Steps, notes, digest

Test(steps, roots_arrive_after_the_step_is_over)
{
    struct as_steps *steps = as_steps_create();
    struct as_step step;
    uint64_t number;

    const int early = as_steps_expect_root(steps, &number);
    const int place = as_steps_expect_root(steps, &number);
    cr_assert_eq(place, 1);
    as_steps_root(steps, number, early, "\x05", 1);
    as_steps_end(steps, &(struct as_step){.peak_bytes = 7});
    as_steps_root(steps, number, place, "\x01\x02\x03\x04", 4);

    cr_assert(as_steps_read(steps, 0, &step));
    cr_expect_eq(step.peak_bytes, 7);
    cr_expect_eq(step.root_count, 2);
    cr_expect_eq(step.roots[0].bytes, 1);
    cr_expect_eq(step.roots[0].bits[0], 5);
    cr_expect_eq(step.roots[1].bytes, 4);
    cr_expect_eq(memcmp(step.roots[1].bits, "\x01\x02\x03\x04", 4), 0);
    as_steps_destroy(steps);
}

Test(steps, take_from_one_end_to_the_next)
{
    static const uint64_t times[] = {900, 40, 70, 50};
    static const uint64_t medians[] = {900, 40, 70, 50}; // of all but the first
    struct as_steps *steps = as_steps_create();
    uint64_t now = as_clock_started_ns();
    struct as_step step;

    cr_expect_eq(as_steps_median_ns(steps), 0);
    for (uint64_t i = 0; i < 4; i++) {
        now += times[i];
        as_steps_end(steps, &(struct as_step){.end_ns = now});
        cr_assert(as_steps_read(steps, i, &step));
        cr_expect_eq(step.time_ns, times[i]);
        cr_expect_eq(as_steps_median_ns(steps), medians[i]);
    }
    as_steps_destroy(steps);
}

Test(steps, a_step_has_room_for_sixteen_roots)
{
    struct as_steps *steps = as_steps_create();
    uint64_t number;

    for (int i = 0; i < AS_ROOTS; i++)
        cr_assert_eq(as_steps_expect_root(steps, &number), i);
    cr_expect_eq(as_steps_expect_root(steps, &number), -ENOSPC);
    as_steps_end(steps, &(struct as_step){0});
    cr_expect_eq(as_steps_expect_root(steps, &number), 0, "the next step begins anew");
    cr_expect_eq(number, 1);
    as_steps_destroy(steps);
}

Test(steps, of_a_long_run_the_first_and_the_last_are_kept)
{
    enum { STEPS = 3500 };
    struct as_steps *steps = as_steps_create();
    struct as_step step;

    for (uint64_t i = 0; i < STEPS; i++)
        as_steps_end(steps, &(struct as_step){.peak_bytes = i});

    cr_expect_eq(as_steps_count(steps), STEPS);
    for (uint64_t i = 0; i < STEPS; i++) {
        const bool kept = i < AS_STEPS_FIRST || i > STEPS - AS_STEPS_LAST;

        cr_assert_eq(as_steps_read(steps, i, &step), kept, "step %lu", i);
        if (kept)
            cr_assert_eq(step.peak_bytes, i);
    }
    as_steps_root(steps, 2250, 0, "late", 4);
    cr_expect(as_steps_read(steps, 3250, &step));
    cr_expect_eq(step.roots[0].bytes, 0, "late news of a lost step goes nowhere");
    as_steps_destroy(steps);
}

Test(notes, are_counted_by_phrase)
{
    static struct as_notes notes = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char same[] = "one";

    cr_expect_eq(as_notes_add(&notes, "one"), 1);
    as_notes_add(&notes, "two");
    cr_expect_eq(as_notes_add(&notes, same), 2);
    cr_expect_str_eq(as_notes_read(&notes, 0).what, "one");
    cr_expect_eq(as_notes_read(&notes, 0).count, 2);
    cr_expect_null(as_notes_read(&notes, 2).what);
}

Test(notes, beyond_the_table_they_are_counted_together)
{
    static struct as_notes notes = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static char phrases[AS_NOTES + 5][8];

    for (int i = 0; i < AS_NOTES + 5; i++) {
        snprintf(phrases[i], sizeof(phrases[i]), "n%d", i);
        as_notes_add(&notes, phrases[i]);
    }
    cr_expect_str_eq(as_notes_read(&notes, AS_NOTES - 1).what, "other notes");
    cr_expect_eq(as_notes_read(&notes, AS_NOTES - 1).count, 6);
}

static uint64_t digest_of(const char *text, size_t piece)
{
    struct as_digest digest;
    const size_t bytes = strlen(text);

    as_digest_start(&digest);
    for (size_t done = 0; done < bytes; done += piece)
        as_digest_add(&digest, text + done, piece < bytes - done ? piece : bytes - done);
    return as_digest_value(&digest);
}

// Values that the public xxHash implementations give.
Test(digest, is_xxh64)
{
    cr_expect_eq(digest_of("", 1), UINT64_C(0xef46db3751d8e999));
    cr_expect_eq(digest_of("abc", 3), UINT64_C(0x44bc2cf5ad770999));
    cr_expect_eq(digest_of("Nobody inspects the spammish repetition", 39),
                 UINT64_C(0xfbcea83c8a378bf1));
}

Test(digest, does_not_depend_on_the_pieces)
{
    static const char text[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
        "WXYZ.,;:-_#+*!?0123456789abcdefghijklmnopqrstuvwxyz";
    const uint64_t whole = digest_of(text, sizeof(text));

    for (size_t piece = 1; piece < sizeof(text); piece++)
        cr_expect_eq(digest_of(text, piece), whole, "pieces of %zu", piece);
    cr_expect_neq(digest_of(text + 1, 1), whole);
}

// --- The index, against a sorted array that is searched from end to end

enum { ADDRESSES = 3000, CHANGES = 60000 };

static struct as_node *slow_find(struct as_node *nodes[], uintptr_t address)
{
    for (int i = 0; i < ADDRESSES; i++) {
        if (nodes[i] && address >= nodes[i]->address &&
            address - nodes[i]->address < nodes[i]->bytes)
            return nodes[i];
    }
    return NULL;
}

static void check_order(const struct as_index *index, struct as_node *nodes[])
{
    struct as_cursor cursor = {0};

    for (int i = 0; i < ADDRESSES; i++) {
        if (!nodes[i])
            continue;
        cr_assert_eq(as_index_next(index, &cursor), nodes[i]);
        cr_assert_eq(as_index_at(index, nodes[i]->address), nodes[i]);
    }
    cr_assert_null(as_index_next(index, &cursor));
}

Test(index, random_changes_leave_what_a_plain_search_finds)
{
    static struct as_node *nodes[ADDRESSES];
    struct as_index index = {0};

    srand(20);
    for (int i = 0; i < CHANGES; i++) {
        // Filled, then half full, then emptied, so that leaves are split and joined.
        const int wanted = i < CHANGES / 3 ? 90 : i < CHANGES * 2 / 3 ? 50 : 3;
        const int place = rand() % ADDRESSES;
        const uintptr_t address = 0x10000 + (uintptr_t)place * 0x400;
        const uintptr_t inside = address + (uintptr_t)rand() % 0x400;

        if (rand() % 100 < wanted) {
            struct as_node *node = as_index_take(&index, address);
            cr_assert_not_null(node);
            cr_assert(!nodes[place] || node == nodes[place]);
            node->bytes = 0x200;
            nodes[place] = node;
        } else if (nodes[place]) {
            as_index_remove(&index, nodes[place]);
            nodes[place] = NULL;
        }
        cr_assert_eq(as_index_at(&index, address), nodes[place]);
        if (i % 64 == 0)
            cr_assert_eq(as_index_find(&index, inside), slow_find(nodes, inside));
        if (i % 16 == 0)
            check_order(&index, nodes);
    }
    as_index_finish(&index);
}

Test(index, seek_stands_in_front_of_the_address)
{
    struct as_index index = {0};
    struct as_cursor cursor = as_index_seek(&index, 7);

    cr_expect_null(as_index_next(&index, &cursor));
    for (uintptr_t i = 1; i <= 1000; i++)
        cr_assert_not_null(as_index_take(&index, i * 16));
    for (uintptr_t i = 1; i <= 1000; i++) {
        cursor = as_index_seek(&index, i * 16 - 15);
        cr_expect_eq(as_index_next(&index, &cursor)->address, i * 16);
        cursor = as_index_seek(&index, i * 16);
        cr_expect_eq(as_index_next(&index, &cursor)->address, i * 16);
    }
    cursor = as_index_seek(&index, 16001);
    cr_expect_null(as_index_next(&index, &cursor));
    as_index_finish(&index);
}

Test(ledger, generations_are_each_devices_own)
{
    struct as_block block;

    as_ledger_add(ledger, 1, at(0x1000), 512, AS_LEDGER_ALL_LIVE, NULL);
    cr_expect_eq(as_ledger_now(ledger, 0), 1);
    cr_expect_eq(as_ledger_now(ledger, 1), 2);
    cr_assert(as_ledger_find(ledger, -1, at(0x1000), &block));
    cr_expect_eq(block.device, 1);
    cr_expect_eq(as_ledger_now(ledger, -1), 0);
    cr_expect_eq(as_ledger_now(ledger, AS_LEDGER_DEVICES), 0);
}
