// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/ranges.h"

#include <criterion/criterion.h>
#include <string.h>

enum { START = 4096, UNITS = 256 };

static struct sim_ranges fresh(void)
{
    struct sim_ranges ranges = {0};

    cr_assert(sim_ranges_add_free(&ranges, START, UNITS));
    return ranges;
}

Test(sim_ranges, the_lowest_that_fits_is_taken)
{
    struct sim_ranges ranges = fresh();
    struct sim_range *a = sim_ranges_take(&ranges, 10);
    struct sim_range *b = sim_ranges_take(&ranges, 20);
    struct sim_range *c = sim_ranges_take(&ranges, 30);

    cr_assert(a && b && c);
    cr_expect_eq(b->start, START + 10);
    sim_ranges_give(&ranges, b);
    cr_expect_eq(sim_ranges_take(&ranges, 21)->start, START + 60);
    cr_expect_eq(sim_ranges_take(&ranges, 5)->start, START + 10);
    cr_expect_eq(sim_ranges_take(&ranges, 15)->start, START + 15);
    cr_expect_eq(ranges.used_bytes, 10 + 30 + 21 + 5 + 15);
}

Test(sim_ranges, the_first_from_an_address_holds_it_or_follows)
{
    struct sim_ranges ranges = {0};

    cr_assert(sim_ranges_insert(&ranges, 100, 10));
    cr_assert(sim_ranges_insert(&ranges, 200, 10));
    cr_assert(sim_ranges_insert(&ranges, 300, 10));

    cr_expect_eq(sim_ranges_from(&ranges, 0)->start, 100);
    cr_expect_eq(sim_ranges_from(&ranges, 109)->start, 100);
    cr_expect_eq(sim_ranges_from(&ranges, 110)->start, 200);
    cr_expect_eq(sim_ranges_from(&ranges, 200)->start, 200);
    cr_expect_null(sim_ranges_from(&ranges, 310));
}

Test(sim_ranges, neighbours_are_joined_whatever_the_order)
{
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    for (size_t i = 0; i < 6; i++) {
        struct sim_ranges ranges = fresh();
        struct sim_range *parts[3];

        for (int j = 0; j < 3; j++)
            parts[j] = sim_ranges_take(&ranges, UNITS / 4);
        for (int j = 0; j < 3; j++)
            sim_ranges_give(&ranges, parts[orders[i][j]]);
        cr_expect_eq(ranges.used_bytes, 0);
        cr_expect(sim_ranges_take(&ranges, UNITS), "order %zu", i);
    }
}

Test(sim_ranges, an_address_is_found_in_its_range_only)
{
    struct sim_ranges ranges = fresh();
    struct sim_range *a = sim_ranges_take(&ranges, 10);
    struct sim_range *b = sim_ranges_take(&ranges, 10);

    cr_expect_eq(sim_ranges_find(&ranges, START), a);
    cr_expect_eq(sim_ranges_find(&ranges, START + 9), a);
    cr_expect_eq(sim_ranges_find(&ranges, START + 10), b);
    cr_expect_null(sim_ranges_find(&ranges, START + 20));
    cr_expect_null(sim_ranges_find(&ranges, START - 1));
    sim_ranges_give(&ranges, a);
    cr_expect_null(sim_ranges_find(&ranges, START));
}

Test(sim_ranges, overlapping_entries_are_refused)
{
    struct sim_ranges ranges = {0};
    struct sim_range *range = sim_ranges_insert(&ranges, 100, 10);

    cr_assert(range);
    cr_expect_null(sim_ranges_insert(&ranges, 95, 6));
    cr_expect_null(sim_ranges_insert(&ranges, 109, 1));
    cr_expect_null(sim_ranges_insert(&ranges, 90, 100));
    cr_expect_null(sim_ranges_insert(&ranges, 102, 2));
    cr_expect(sim_ranges_insert(&ranges, 90, 10));
    cr_expect(sim_ranges_insert(&ranges, 110, 1));
    sim_ranges_remove(&ranges, range);
    cr_expect_null(sim_ranges_find(&ranges, 105));
    cr_expect(sim_ranges_insert(&ranges, 100, 10));
}

// Against a map of units: first fit, and what is used.
Test(sim_ranges, agrees_with_a_map_of_units)
{
    struct sim_ranges ranges = fresh();
    struct sim_range *held[UNITS] = {0};
    char used[UNITS] = {0};
    unsigned seed = 1;

    for (int step = 0; step < 20000; step++) {
        seed = seed * 1103515245u + 12345u;
        const size_t bytes = 1 + (seed >> 16) % 24;
        const unsigned which = (seed >> 8) % UNITS;

        if (held[which]) {
            memset(used + (held[which]->start - START), 0, held[which]->bytes);
            sim_ranges_give(&ranges, held[which]);
            held[which] = NULL;
            continue;
        }

        size_t want = 0, run = 0;

        while (want < UNITS && run < bytes)
            run = used[want++] ? 0 : run + 1;
        held[which] = sim_ranges_take(&ranges, bytes);
        cr_assert_eq(held[which] != NULL, run == bytes, "step %d", step);
        if (!held[which])
            continue;
        cr_assert_eq(held[which]->start, START + want - bytes, "step %d", step);
        cr_assert_eq(held[which]->bytes, bytes);
        memset(used + want - bytes, 1, bytes);
        cr_assert_eq(sim_ranges_find(&ranges, START + want - 1), held[which]);
    }
}
