// SPDX-License-Identifier: Apache-2.0
#include "pager/slab.h"

#include <errno.h>

#include <criterion/criterion.h>

#include "core/settings.h"
#include "fake_cuda.h"

static struct as_settings settings;
static struct as_slab *slab;

static void start(void)
{
    settings.host_memory_bytes = 1 << 20;
    slab = as_slab_create(&settings);
}

static struct as_buffer take(size_t bytes)
{
    struct as_buffer buffer;
    cr_assert_eq(as_slab_take(slab, bytes, &buffer), 0);
    return buffer;
}

static uint64_t held(void)
{
    struct as_slab_totals totals;
    as_slab_totals(slab, &totals);
    return totals.bytes;
}

TestSuite(slab, .init = start);

Test(slab, sizes_are_exact)
{
    take(1025);
    take((1 << 16) + 1);

    cr_expect_eq(held(), 1025 + (1 << 16) + 1);
}

Test(slab, the_best_fit_is_reused)
{
    struct as_buffer small = take(1000), middle = take(1100), large = take(9000);
    as_slab_give(slab, &large);
    as_slab_give(slab, &small);
    as_slab_give(slab, &middle);

    cr_expect_eq(take(1000).host, small.host);
    cr_expect_eq(take(1000).host, middle.host);
    cr_expect_eq(fake_calls("as_cuda_host_alloc"), 3);
    take(1000); // the large one would be a waste
    cr_expect_eq(fake_calls("as_cuda_host_alloc"), 4);
}

// Of a run whose sizes hang on its data.
Test(slab, sizes_that_change_from_step_to_step_pin_little_more_than_they_take)
{
    enum { TAKES = 16, STEPS = 500, MOST = 1 << 16 };
    uint64_t random = 1, most = 0;
    settings.host_memory_bytes = 1 << 30;
    for (int step = 0; step < STEPS; step++) {
        struct as_buffer taken[TAKES];
        uint64_t bytes = 0;
        for (int i = 0; i < TAKES; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            taken[i] = take(1 + (random >> 33) % MOST);
            bytes += taken[i].bytes;
        }
        most = bytes > most ? bytes : most;
        for (int i = 0; i < TAKES; i++)
            as_slab_give(slab, &taken[i]);
        as_slab_step(slab);
    }
    cr_expect_leq(held(), 5 * most / 2);
}

Test(slab, at_the_cap_anything_that_fits_will_do)
{
    struct as_buffer large = take((1 << 20) - 100);
    as_slab_give(slab, &large);

    cr_expect_eq(take(200).host, large.host);
    struct as_buffer none;
    cr_expect_eq(as_slab_take(slab, 200, &none), -ENOMEM);
}

static uint64_t cap_with(struct as_settings with)
{
    struct as_slab_totals totals;
    struct as_buffer buffer;
    settings = with;
    slab = as_slab_create(&settings);
    as_slab_take(slab, 1, &buffer);
    as_slab_totals(slab, &totals);
    return totals.cap_bytes;
}

// What available memory is, the tests of host.c say.
Test(slab, this_machine_is_no_limit_where_nothing_is_touched)
{
    const struct as_settings half = {.host_memory_percent = 50};
    const struct as_settings huge = {.host_memory_bytes = UINT64_C(1) << 50};

    cr_expect_lt(cap_with((struct as_settings){0}), UINT64_MAX);
    cr_expect_lt(cap_with(huge), UINT64_C(1) << 50);
    fake_skips_bytes(true);
    cr_expect_eq(cap_with((struct as_settings){0}), UINT64_MAX);
    cr_expect_eq(cap_with(huge), UINT64_C(1) << 50, "as it was asked for");
    cr_expect_lt(cap_with(half), UINT64_MAX, "half of this machine, as asked for");
}

Test(slab, what_the_runtime_refuses_is_not_counted)
{
    struct as_buffer buffer;
    fake_fail("as_cuda_host_alloc", 1);

    cr_expect_eq(as_slab_take(slab, 4096, &buffer), -ENOMEM);
    cr_expect_eq(held(), 0);
}

Test(slab, a_buffer_keeps_the_event_of_its_last_copy)
{
    int event;
    struct as_buffer buffer = take(4096);
    buffer.event = &event;
    as_slab_give(slab, &buffer);

    cr_expect_eq(take(4096).event, &event);
}

Test(slab, many_buffers_come_and_go)
{
    enum { COUNT = 300 };
    struct as_buffer buffers[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        buffers[i] = take(100 + i % 7);
    for (size_t i = 0; i < COUNT; i++)
        as_slab_give(slab, &buffers[(i * 11) % COUNT]);
    uint64_t before = held();
    for (size_t i = 0; i < COUNT; i++)
        cr_expect_eq(take(100 + i % 7).bytes, 100 + i % 7);

    cr_expect_eq(held(), before);
}

static int spares(void)
{
    int count = 0;
    struct as_buffer buffer;
    while (as_slab_spare(slab, &buffer))
        count++;
    as_slab_step(slab);
    return count;
}

static bool is_refused(size_t bytes)
{
    struct as_buffer buffer;
    return as_slab_take(slab, bytes, &buffer) == -ENOMEM;
}

Test(slab, what_no_step_takes_any_more_is_spare_when_others_find_no_room)
{
    struct as_buffer old[2] = {take(1 << 18), take(1 << 18)}, used = take(1 << 19);
    as_slab_give(slab, &old[0]);
    as_slab_give(slab, &old[1]);
    as_slab_give(slab, &used);
    cr_expect_eq(spares(), 0);
    for (int step = 2; step <= AS_SLAB_IDLE_STEPS; step++) {
        used = take(1 << 19);
        cr_expect(is_refused((1 << 19) + 1));
        as_slab_give(slab, &used);
        cr_expect_eq(spares(), 0, "they may be for another kind of step");
    }

    used = take(1 << 19);
    cr_expect(is_refused((1 << 18) + 1));
    as_slab_give(slab, &used);
    cr_expect_eq(spares(), 2, "one is not enough");
    cr_expect_eq(held(), 1 << 19);
    take((1 << 18) + 1);
}

Test(slab, nothing_is_spare_without_need)
{
    struct as_buffer large = take(1 << 20);
    as_slab_give(slab, &large);
    for (int step = 1; step <= AS_SLAB_IDLE_STEPS; step++)
        cr_expect_eq(spares(), 0);

    cr_expect(is_refused((1 << 20) + 1));
    cr_expect_eq(spares(), 0, "that finds no room in any way");
    cr_expect_eq(held(), 1 << 20);
}

Test(slab, no_more_is_spare_than_was_asked_for)
{
    struct as_buffer old[2] = {take(1 << 18), take(1 << 18)};
    take((1 << 19) - 1000);
    as_slab_give(slab, &old[0]);
    as_slab_give(slab, &old[1]);
    for (int step = 1; step <= AS_SLAB_IDLE_STEPS; step++)
        cr_expect_eq(spares(), 0);

    cr_expect(is_refused((1 << 18) + 1000));
    cr_expect_eq(spares(), 1);
    take((1 << 18) + 1000);
}

Test(slab, kinds_of_steps_that_alternate_keep_their_buffers)
{
    enum { KINDS = AS_SLAB_IDLE_STEPS };
    static const size_t sizes[KINDS] = {1 << 16, 1 << 17, 1 << 18, 1 << 19};
    for (int step = 0; step < 5 * KINDS; step++) {
        struct as_buffer buffer = take(sizes[step % KINDS]);
        cr_expect(is_refused((1 << 20) - 1));
        as_slab_give(slab, &buffer);
        cr_expect_eq(spares(), 0);
    }
    cr_expect_eq(fake_calls("as_cuda_host_alloc"), KINDS);
}
