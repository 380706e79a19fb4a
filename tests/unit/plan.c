// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <criterion/criterion.h>

#include "core/settings.h"

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

static enum actswap_verdict block(void)
{
    const enum actswap_verdict verdict = as_plan_enter(plan);

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
    cr_expect_eq(as_plan_enter(plan), ACTSWAP_RECOMPUTE);
    cr_expect_eq(as_plan_enter(plan), ACTSWAP_KEEP);
    as_plan_exit(plan);
    as_plan_exit(plan);

    make(AS_POLICY_OFFLOAD, 0);
    cr_expect_eq(as_plan_enter(plan), ACTSWAP_OFFLOAD);
    cr_expect_eq(as_plan_enter(plan), ACTSWAP_OFFLOAD);
    as_plan_exit(plan);
    as_plan_exit(plan);
}

Test(plan, nesting_deeper_than_the_table_comes_back_in_order)
{
    make(AS_POLICY_OFFLOAD, 0);
    for (int i = 0; i < 100; i++)
        as_plan_enter(plan);
    for (int i = 0; i < 100; i++)
        as_plan_exit(plan);
    as_plan_exit(plan); // one too many is forgiven
    cr_expect_eq(block(), ACTSWAP_OFFLOAD);
}
