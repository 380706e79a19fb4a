// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <string.h>

#include <criterion/criterion.h>

#include "core/settings.h"
#include "plan/segments.h"
#include "track/place.h"

static struct as_settings settings;
static struct as_plan *plan;

static void make(enum as_policy policy, unsigned keep_last)
{
    settings = (struct as_settings){.policy = policy, .offload_keep_last = keep_last};
    as_plan_destroy(plan);
    plan = as_plan_create(&settings);
    cr_assert_not_null(plan);
}

static void finish(void)
{
    as_plan_destroy(plan);
}

TestSuite(plan, .fini = finish);

static bool tell(uint64_t number, uint32_t faults)
{
    struct as_trial entry;
    const struct actswap_trial trial = {.size = sizeof(trial),
                                        .faults = faults,
                                        .saved_bytes = 9,
                                        .boundary_bytes = 1,
                                        .values = 1};
    return as_plan_tried(plan, number, &trial, &entry);
}

static void prove(uint64_t number)
{
    cr_assert_not(tell(number, 0));
}

static enum actswap_verdict enter(uint64_t number)
{
    const enum actswap_verdict verdict = as_plan_enter(plan, number);

    as_plan_exit(plan);
    return verdict;
}

static void end_step(void)
{
    as_plan_mark(plan, ACTSWAP_BACKWARD);
    as_plan_mark(plan, ACTSWAP_BACKWARD_END);
    as_plan_mark(plan, ACTSWAP_STEP);
}

static enum actswap_verdict block(void)
{
    const enum actswap_verdict verdict = as_plan_enter(plan, 1);

    as_plan_exit(plan);
    return verdict;
}

Test(plan, each_policy_has_its_verdict)
{
    make(AS_POLICY_OFF, 0);
    cr_expect_eq(block(), ACTSWAP_KEEP);
    make(AS_POLICY_OFFLOAD, 0);
    cr_expect_eq(block(), ACTSWAP_OFFLOAD);
    make(AS_POLICY_RECOMPUTE, 0);
    prove(1);
    cr_expect_eq(block(), ACTSWAP_RECOMPUTE);
}

Test(plan, the_last_blocks_are_kept_once_their_number_is_known)
{
    make(AS_POLICY_OFFLOAD, 2);
    for (int forward = 0; forward < 3; forward++) {
        as_plan_mark(plan, ACTSWAP_FORWARD);
        for (int i = 0; i < 5; i++)
            cr_expect_eq(block(), forward > 0 && i >= 3 ? ACTSWAP_KEEP : ACTSWAP_OFFLOAD,
                         "block %d of forward %d", i, forward);
        as_plan_mark(plan, ACTSWAP_BACKWARD);
        as_plan_mark(plan, ACTSWAP_BACKWARD_END);
        as_plan_mark(plan, ACTSWAP_STEP);
    }
}

Test(plan, a_second_forward_before_the_backward_leaves_too)
{
    make(AS_POLICY_OFFLOAD, 1);
    for (int i = 0; i < 2; i++) {
        as_plan_mark(plan, ACTSWAP_FORWARD);
        cr_expect_eq(block(), ACTSWAP_OFFLOAD);
        cr_expect_eq(block(), i ? ACTSWAP_KEEP : ACTSWAP_OFFLOAD);
    }

    cr_expect_eq(block(), ACTSWAP_OFFLOAD);
    cr_expect_eq(block(), ACTSWAP_OFFLOAD);
}

Test(plan, a_block_that_backward_runs_again_is_kept)
{
    make(AS_POLICY_RECOMPUTE, 0);
    prove(1);
    as_plan_mark(plan, ACTSWAP_FORWARD);
    cr_expect_eq(block(), ACTSWAP_RECOMPUTE);
    as_plan_mark(plan, ACTSWAP_BACKWARD);
    cr_expect_eq(block(), ACTSWAP_KEEP);
    as_plan_mark(plan, ACTSWAP_BACKWARD_END);
    cr_expect_eq(block(), ACTSWAP_RECOMPUTE);
}

Test(plan, what_is_recomputed_as_a_whole_is_not_recomputed_in_parts)
{
    make(AS_POLICY_RECOMPUTE, 0);
    prove(1);
    cr_expect_eq(as_plan_enter(plan, 1), ACTSWAP_RECOMPUTE);
    cr_expect_eq(as_plan_enter(plan, 1), ACTSWAP_KEEP);
    as_plan_exit(plan);
    as_plan_exit(plan);

    make(AS_POLICY_OFFLOAD, 0);
    cr_expect_eq(as_plan_enter(plan, 1), ACTSWAP_OFFLOAD);
    cr_expect_eq(as_plan_enter(plan, 1), ACTSWAP_OFFLOAD);
    as_plan_exit(plan);
    as_plan_exit(plan);
}

Test(plan, nesting_deeper_than_the_table_comes_back_in_order)
{
    make(AS_POLICY_OFFLOAD, 0);
    for (int i = 0; i < 100; i++)
        as_plan_enter(plan, 1);
    for (int i = 0; i < 100; i++)
        as_plan_exit(plan);
    as_plan_exit(plan); // one too many is forgiven
    cr_expect_eq(block(), ACTSWAP_OFFLOAD);
}

// --- Trials

Test(plan, nothing_is_recomputed_before_a_trial_without_faults)
{
    make(AS_POLICY_RECOMPUTE, 0);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(enter(1), ACTSWAP_TRIAL);
    prove(1);
    cr_expect_eq(enter(1), ACTSWAP_RECOMPUTE);
    cr_expect_eq(enter(2), ACTSWAP_TRIAL, "each block by itself");
}

Test(plan, what_is_inside_a_block_on_trial_is_saved_with_it)
{
    make(AS_POLICY_RECOMPUTE, 0);
    cr_expect_eq(as_plan_enter(plan, 1), ACTSWAP_TRIAL);
    cr_expect_eq(as_plan_enter(plan, 2), ACTSWAP_OFFLOAD);
    as_plan_exit(plan);
    as_plan_exit(plan);
}

Test(plan, a_block_with_a_fault_is_left_alone_for_good)
{
    make(AS_POLICY_RECOMPUTE, 0);
    cr_expect_not(tell(1, 1U << ACTSWAP_FAULT_VALUES), "it was never proven");
    cr_expect_eq(enter(1), ACTSWAP_KEEP);
    prove(1);
    cr_expect_eq(enter(1), ACTSWAP_KEEP);
}

Test(plan, the_cause_is_named_and_not_what_follows_from_it)
{
    struct as_trial entry;

    make(AS_POLICY_RECOMPUTE, 0);
    tell(1, 1U << ACTSWAP_FAULT_VALUES | 1U << ACTSWAP_FAULT_INPUT);
    cr_assert(as_plan_read(plan, 0, &entry));
    cr_expect_eq(entry.fault, ACTSWAP_FAULT_INPUT);
    for (int fault = 0; fault < ACTSWAP_FAULTS; fault++)
        cr_expect_str_neq(actswap_fault_text((enum actswap_fault)fault), "not known");
}

Test(plan, a_block_that_saves_no_more_than_it_takes_is_kept)
{
    const struct actswap_trial trial = {
        .size = sizeof(trial), .saved_bytes = 8, .boundary_bytes = 8, .values = 1};
    struct as_trial entry;

    make(AS_POLICY_RECOMPUTE, 0);
    as_plan_tried(plan, 1, &trial, &entry);
    cr_expect_eq(entry.standing, AS_STANDING_USELESS);
    cr_expect_eq(enter(1), ACTSWAP_KEEP);
}

Test(plan, each_proven_block_is_tried_again_in_turn)
{
    enum { BLOCKS = 5 };
    unsigned trials[BLOCKS + 1] = {0};
    struct as_plan_totals totals;

    make(AS_POLICY_RECOMPUTE, 0);
    for (uint64_t step = 0; step < 1 + (uint64_t)BLOCKS * AS_TRIALS_EVERY; step++) {
        unsigned now = 0;
        as_plan_mark(plan, ACTSWAP_FORWARD);
        for (uint64_t i = 1; i <= BLOCKS; i++)
            if (enter(i) == ACTSWAP_TRIAL) {
                now++;
                trials[i]++;
                prove(i);
            }
        cr_expect_eq(now, step == 0 ? BLOCKS : step % AS_TRIALS_EVERY == 0,
                     "one at a time, step %u", (unsigned)step);
        end_step();
    }
    for (int i = 1; i <= BLOCKS; i++)
        cr_expect_eq(trials[i], 2, "block %d", i);
    as_plan_totals(plan, &totals);
    cr_expect_eq(totals.round, (uint64_t)BLOCKS * AS_TRIALS_EVERY);
}

Test(plan, blocks_that_no_longer_run_do_not_keep_others_from_their_trials)
{
    make(AS_POLICY_RECOMPUTE, 0);
    for (uint64_t gone = 100; gone < 120; gone++) {
        enter(gone);
        prove(gone);
    }
    end_step();
    unsigned trials = 0;
    for (int step = 1; step <= 2 * AS_TRIALS_EVERY; step++) {
        as_plan_mark(plan, ACTSWAP_FORWARD);
        if (enter(1) == ACTSWAP_TRIAL) {
            trials++;
            prove(1);
        }
        end_step();
    }
    cr_expect_eq(trials, 3, "the first, and each AS_TRIALS_EVERY steps");
}

Test(plan, a_proven_block_that_misbehaves_is_told_with_both_steps)
{
    struct as_trial entry;

    make(AS_POLICY_RECOMPUTE, 0);
    prove(1);
    for (int step = 0; step < 50; step++)
        end_step();
    cr_expect(tell(1, 1U << ACTSWAP_FAULT_VALUES));
    cr_assert(as_plan_read(plan, 0, &entry));
    cr_expect_eq(entry.last_step, 0);
    cr_expect_eq(entry.broken_step, 50);
    cr_expect_eq(enter(1), ACTSWAP_KEEP);
    cr_expect_not(tell(1, 1U << ACTSWAP_FAULT_VALUES), "once is enough");
}

Test(plan, another_block_of_the_same_number_is_tried_for_itself)
{
    make(AS_POLICY_RECOMPUTE, 0);
    prove(1);
    tell(2, 1U << ACTSWAP_FAULT_STATE);
    cr_expect_eq(enter(1), ACTSWAP_RECOMPUTE);
    cr_expect_eq(enter(2), ACTSWAP_KEEP);
    as_plan_renewed(plan, 1);
    as_plan_renewed(plan, 2);
    as_plan_renewed(plan, 3);
    cr_expect_eq(enter(1), ACTSWAP_TRIAL);
    cr_expect_eq(enter(2), ACTSWAP_TRIAL);
}

Test(plan, more_blocks_than_there_is_room_for_are_kept)
{
    make(AS_POLICY_RECOMPUTE, 0);
    for (uint64_t i = 1; i <= AS_TRIALS; i++)
        cr_assert_eq(enter(i), ACTSWAP_TRIAL);
    cr_expect_eq(enter(AS_TRIALS + 1), ACTSWAP_KEEP);
    cr_expect_eq(enter(AS_TRIALS), ACTSWAP_TRIAL);
}

// --- Segments

// Which blocks of the second forward begin a segment: "1..1" for two of three and one.
static void expect_segments(const char *expected)
{
    const size_t count = strlen(expected);
    char found[80] = "";

    for (uint64_t i = 1; i <= count; i++)
        prove(i);
    for (int forward = 0; forward < 2; forward++) {
        as_plan_mark(plan, ACTSWAP_FORWARD);
        for (uint64_t i = 1; i <= count; i++)
            found[i - 1] = enter(i) == ACTSWAP_RECOMPUTE_ON ? '.' : '1';
        end_step();
    }
    cr_expect_str_eq(found, expected);
}

Test(plan, blocks_are_run_again_together_as_the_settings_say)
{
    make(AS_POLICY_RECOMPUTE, 0);
    expect_segments("1111111");
    make(AS_POLICY_RECOMPUTE, 0);
    settings.recompute_every = 3;
    expect_segments("1..1..1");
    make(AS_POLICY_RECOMPUTE, 0);
    settings.recompute_segments = 2;
    expect_segments("1...1..");
    make(AS_POLICY_RECOMPUTE, 0);
    settings.recompute_sqrt = true;
    expect_segments("1...1...1...1...");
    make(AS_POLICY_RECOMPUTE, 0);
    settings.recompute_sqrt = true;
    expect_segments("1..1..1");
}

// Each block saves 9 bytes and takes 1.
static void expect_advice(const char *expected)
{
    char text[256] = "";

    for (uint64_t i = 1; i <= 36; i++)
        prove(i);
    as_plan_mark(plan, ACTSWAP_FORWARD);
    for (uint64_t i = 1; i <= 36; i++)
        enter(i);
    end_step();
    as_plan_mark(plan, ACTSWAP_FORWARD);
    cr_expect_eq(as_segments_advise(plan, &settings, text, sizeof(text)), *expected != 0);
    cr_expect_str_eq(text, expected);
}

Test(plan, segments_that_take_more_than_shorter_ones_are_told)
{
    make(AS_POLICY_RECOMPUTE, 0);
    expect_advice("");
    make(AS_POLICY_RECOMPUTE, 0);
    settings.recompute_every = 2; // 18 and 18: as much as 4 would take
    expect_advice("");
    make(AS_POLICY_RECOMPUTE, 0);
    settings.recompute_sqrt = true;
    expect_advice("6 blocks together save 54 B while they are run again, beside 6 B of "
                  "inputs: every=2 would take 18 B beside 18 B");
    make(AS_POLICY_RECOMPUTE, 0);
    settings.recompute_every = 2;
    settings.recompute_boundary = true;
    expect_advice("2 blocks together save 18 B while they are run again, beside 0 B of "
                  "inputs: every=1 would take 9 B beside 0 B");
}

Test(plan, blocks_whose_names_do_not_match_are_kept)
{
    make(AS_POLICY_RECOMPUTE, 0);
    strcpy(settings.recompute_blocks, "decoder.*"); // NOLINT: it fits
    as_place_name(701, "encoder.0");
    as_place_name(702, "decoder.0");
    cr_expect_eq(enter(701), ACTSWAP_KEEP);
    cr_expect_eq(enter(702), ACTSWAP_TRIAL);
}
