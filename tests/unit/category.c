// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "track/ledger.h"
#include "track/timeline.h"

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

TestSuite(category, .init = start, .fini = finish);

static void *at(uintptr_t address)
{
    return (void *)address;
}

static void add(uintptr_t address)
{
    as_ledger_add(ledger, 0, at(address), 512, AS_LEDGER_ALL_LIVE, NULL);
}

static void freed(uintptr_t address)
{
    cr_assert(as_ledger_remove(ledger, 0, at(address), 0, AS_LEDGER_ALL_LIVE));
}

static enum actswap_category category_of(uintptr_t address)
{
    struct as_block block;

    cr_assert(as_ledger_find(ledger, 0, at(address), &block));
    return block.category;
}

static uint64_t peak_of(enum actswap_category category)
{
    struct as_peak peak;

    as_ledger_peak(ledger, &peak);
    return peak.at[category].bytes;
}

static void step(void)
{
    as_ledger_settle(ledger, ACTSWAP_STEP);
    as_ledger_step(ledger);
    as_ledger_place(ledger, 1, AS_PHASE_OTHER);
}

Test(category, what_dies_in_its_phase_was_temporary)
{
    as_ledger_place(ledger, 0, AS_PHASE_FORWARD);
    add(0x1000);
    cr_expect_eq(as_ledger_unnamed(ledger, AS_PHASE_FORWARD), 512);
    freed(0x1000);
    cr_expect_eq(peak_of(ACTSWAP_TEMPORARY), 512);
    cr_expect_eq(peak_of(ACTSWAP_UNKNOWN), 0);
    cr_expect_eq(as_ledger_unnamed(ledger, AS_PHASE_FORWARD), 0);
}

Test(category, what_a_phase_leaves_behind_is_named_by_it)
{
    as_ledger_place(ledger, 0, AS_PHASE_FORWARD);
    add(0x1000);
    as_ledger_settle(ledger, ACTSWAP_BACKWARD);
    cr_expect_eq(category_of(0x1000), ACTSWAP_ACTIVATION);

    as_ledger_place(ledger, 0, AS_PHASE_BACKWARD);
    add(0x2000);
    as_ledger_settle(ledger, ACTSWAP_AGAIN);
    cr_expect_eq(category_of(0x2000), ACTSWAP_UNKNOWN, "the backward goes on");
    as_ledger_place(ledger, 0, AS_PHASE_RECOMPUTE);
    add(0x3000);
    as_ledger_settle(ledger, ACTSWAP_AGAIN_END);
    cr_expect_eq(category_of(0x3000), ACTSWAP_ACTIVATION);
    as_ledger_settle(ledger, ACTSWAP_BACKWARD_END);
    cr_expect_eq(category_of(0x2000), ACTSWAP_GRADIENT);

    as_ledger_place(ledger, 0, AS_PHASE_OPTIMIZER);
    add(0x4000);
    step();
    cr_expect_eq(category_of(0x4000), ACTSWAP_OPTIMIZER_STATE);
}

Test(category, what_was_made_outside_and_used_up_was_input)
{
    as_ledger_place(ledger, 0, AS_PHASE_OTHER);
    add(0x1000);
    as_ledger_place(ledger, 0, AS_PHASE_FORWARD);
    freed(0x1000);
    cr_expect_eq(peak_of(ACTSWAP_INPUT), 512);
}

Test(category, who_never_looked_leaves_what_was_made_outside_unknown)
{
    add(0x1000);
    step();
    cr_expect_eq(category_of(0x1000), ACTSWAP_UNKNOWN);
    as_ledger_place(ledger, 1, AS_PHASE_FORWARD);
    freed(0x1000);
    cr_expect_eq(peak_of(ACTSWAP_UNKNOWN), 512, "it lived for longer than a batch does");
}

Test(category, what_no_tensor_holds_is_a_librarys)
{
    add(0x1000);
    as_ledger_place(ledger, 0, AS_PHASE_FORWARD);
    add(0x2000);
    as_ledger_held(ledger, 0, at(0x1000));
    as_ledger_looked(ledger);
    add(0x3000); // after the look
    as_ledger_settle(ledger, ACTSWAP_BACKWARD);
    cr_expect_eq(category_of(0x2000), ACTSWAP_WORKSPACE);
    cr_expect_eq(category_of(0x3000), ACTSWAP_ACTIVATION);
    step();
    cr_expect_eq(category_of(0x1000), ACTSWAP_INPUT);

    as_ledger_place(ledger, 1, AS_PHASE_FORWARD);
    add(0x4000);
    as_ledger_looked(ledger);
    as_ledger_settle(ledger, ACTSWAP_BACKWARD);
    cr_expect_eq(category_of(0x4000), ACTSWAP_WORKSPACE);
    freed(0x4000);
    cr_expect_eq(peak_of(ACTSWAP_TEMPORARY), 512, "it was none after all");
}

Test(category, a_name_that_was_given_wins_over_an_inferred_one)
{
    as_ledger_place(ledger, 0, AS_PHASE_FORWARD);
    add(0x1000);
    as_ledger_settle(ledger, ACTSWAP_BACKWARD);
    as_ledger_suggest(ledger, 0, at(0x1000), ACTSWAP_PARAMETER);
    cr_expect_eq(category_of(0x1000), ACTSWAP_ACTIVATION, "it has one");
    as_ledger_tag(ledger, 0, at(0x1000), ACTSWAP_INPUT);
    cr_expect_eq(category_of(0x1000), ACTSWAP_INPUT);

    struct as_peak peak;
    as_ledger_peak(ledger, &peak);
    cr_expect_eq(peak.at[ACTSWAP_INPUT].inferred_bytes, 0);
    cr_expect_eq(peak.at[ACTSWAP_INPUT].count, 1);
    as_ledger_tag(ledger, 0, at(0x1000), ACTSWAP_ACTIVATION);
    cr_expect_eq(category_of(0x1000), ACTSWAP_INPUT);
}

Test(category, the_peaks_step_has_a_begin_and_an_end)
{
    struct as_peak peak;

    add(0x1000);
    as_ledger_tag(ledger, 0, at(0x1000), ACTSWAP_PARAMETER);
    step();
    as_ledger_place(ledger, 1, AS_PHASE_FORWARD);
    add(0x2000);
    add(0x3000);
    freed(0x3000);
    step();
    freed(0x2000);
    as_ledger_peak(ledger, &peak);
    cr_expect_eq(peak.before[ACTSWAP_PARAMETER].bytes, 512);
    cr_expect_eq(peak.before[ACTSWAP_ACTIVATION].bytes, 0);
    cr_expect_eq(peak.at[ACTSWAP_ACTIVATION].bytes, 512);
    cr_expect_eq(peak.at[ACTSWAP_TEMPORARY].bytes, 512);
    cr_expect_eq(peak.after[ACTSWAP_ACTIVATION].bytes, 512);
}

Test(category, a_higher_peak_of_a_later_step_begins_with_that_step)
{
    struct as_peak peak;

    add(0x1000);
    step();
    as_ledger_place(ledger, 1, AS_PHASE_FORWARD);
    add(0x2000);
    step();
    as_ledger_place(ledger, 2, AS_PHASE_FORWARD);
    add(0x3000);
    as_ledger_peak(ledger, &peak);
    cr_expect_eq(peak.before[ACTSWAP_ACTIVATION].bytes, 512);
    cr_expect_eq(peak.after[ACTSWAP_UNKNOWN].bytes, 1024, "so far");
}

// --- Timeline

static struct as_timeline timeline;

static void note(uint64_t t_ns, uint64_t total_bytes)
{
    static struct as_sample level;

    level.t_ns = t_ns;
    as_timeline_reach(&timeline, &level);
    level.total_bytes = total_bytes;
    level.generation++;
    if (as_timeline_lacks(&timeline, total_bytes))
        as_timeline_note(&timeline, &level);
}

Test(timeline, a_bucket_keeps_its_highest_moment)
{
    as_timeline_start(&timeline, 1000);
    note(1000, 5);
    note(1200, 9);
    note(1300, 2);
    note(1000 + 2 * timeline.width_ns, 3);

    cr_assert_eq(timeline.count, 3);
    cr_expect_eq(timeline.samples[0].total_bytes, 9);
    cr_expect_eq(timeline.samples[0].t_ns, 1200);
    cr_expect_eq(timeline.samples[1].total_bytes, 2, "as it was all the time");
    cr_expect_eq(timeline.samples[2].total_bytes, 3);
}

Test(timeline, a_long_run_keeps_every_peak_in_the_same_memory)
{
    const uint64_t seconds = 100000, peak_at = 31234;
    uint64_t highest = 0, covered = 0;

    as_timeline_start(&timeline, 0);
    for (uint64_t i = 0; i < seconds; i++)
        note(i * 1000000000, i == peak_at ? 1000 : i % 7);
    cr_expect_leq(timeline.count, AS_TIMELINE_BUCKETS);
    cr_expect_gt(timeline.count, AS_TIMELINE_BUCKETS / 2 - 1);
    for (uint32_t i = 0; i < timeline.count; i++) {
        const struct as_sample *sample = &timeline.samples[i];

        cr_assert_geq(sample->t_ns, i * timeline.width_ns);
        cr_assert_lt(sample->t_ns, (i + 1) * timeline.width_ns);
        covered += sample->total_bytes >= 6;
        if (sample->total_bytes > highest)
            highest = sample->total_bytes;
    }
    cr_expect_eq(highest, 1000);
    cr_expect_geq(covered, timeline.count - 1, "each bucket is wider than a round of 7");
}

Test(timeline, a_late_name_leaves_alone_what_was_before_the_block)
{
    as_timeline_start(&timeline, 0);
    for (uint64_t i = 0; i < 4; i++)
        note(i * 1000000, 10 + i); // generations 1 to 4
    as_timeline_rename(&timeline, 2, 7, ACTSWAP_UNKNOWN, ACTSWAP_GRADIENT);
    for (uint32_t i = 0; i < 4; i++)
        cr_expect_eq(timeline.samples[i].bytes[ACTSWAP_GRADIENT], i < 2 ? 0 : 7);
}

Test(category, a_late_name_counts_in_the_timeline)
{
    struct as_timeline *copy = malloc(sizeof(*copy));

    cr_assert_not_null(copy);
    add(0x1000);
    add(0x2000);
    as_ledger_tag(ledger, 0, at(0x2000), ACTSWAP_GRADIENT);
    as_ledger_timeline(ledger, 0, copy);
    cr_assert_gt(copy->count, 0);
    const struct as_sample *last = &copy->samples[copy->count - 1];
    cr_expect_eq(last->total_bytes, 1024);
    cr_expect_eq(last->bytes[ACTSWAP_GRADIENT], 512);
    cr_expect_eq(last->bytes[ACTSWAP_UNKNOWN], 512);
    as_ledger_timeline(ledger, 3, copy);
    cr_expect_eq(copy->count, 0);
    free(copy);
}
