// SPDX-License-Identifier: Apache-2.0
#include "core/gpu.h"

#include <criterion/criterion.h>
#include <string.h>

Test(gpu, every_card_of_the_list_is_there)
{
    static const char *const names[] = {
        "t4",        "v100-16gb", "v100-32gb",  "a10g",  "l4",
        "l40s",      "rtx3090",   "rtx4090",    "a6000", "a100-40gb",
        "a100-80gb", "h100-80gb", "h200",       "b200",  "gh200",
        "rtx3060",   "rtx4080",   "rtx5090",    "a5000", "rtx4070ti-super",
        "a40",       "h100-pcie", "rtx6000ada",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        cr_expect(as_gpu_find(names[i], NULL), "%s", names[i]);
}

Test(gpu, rows_are_ordered_by_memory)
{
    for (const struct as_gpu *gpu = as_gpu_table; gpu[0].name && gpu[1].name; gpu++)
        cr_expect_lt(gpu[0].total_bytes, gpu[1].total_bytes, "%s", gpu[0].name);
}

Test(gpu, case_does_not_matter)
{
    const struct as_gpu *gpu = as_gpu_find("H100-80GB", NULL);

    cr_assert(gpu);
    cr_expect_str_eq(gpu->name, "h100-80gb");
    cr_expect_eq(gpu->total_bytes, 85028896768u);
}

Test(gpu, an_unknown_name_gets_the_nearest)
{
    const char *nearest = NULL;

    cr_expect_null(as_gpu_find("a100-80g", &nearest));
    cr_assert(nearest);
    cr_expect_str_eq(nearest, "a100-80gb");
    static const char *const meant[][2] = {
        {"a100", "a100-40gb"}, {"4090", "rtx4090"},     {"l40s-48gb", "l40s"},
        {"h100", "h100-pcie"}, {"gh200-96gb", "gh200"}, {"L4_24GB", "l4"},
    };
    for (size_t i = 0; i < sizeof(meant) / sizeof(meant[0]); i++) {
        cr_expect_null(as_gpu_find(meant[i][0], &nearest));
        cr_expect_str_eq(nearest, meant[i][1]);
    }
    cr_expect_null(as_gpu_find("voodoo2-extreme", &nearest));
    cr_expect_null(nearest);
}

// Bandwidth is two transfers a clock over the bus; a row whose three figures do not
// agree was read from two cards.
Test(gpu, bandwidth_follows_from_clock_and_bus)
{
    for (const struct as_gpu *gpu = as_gpu_table; gpu->name; gpu++) {
        const double derived =
            2e6 * (double)gpu->memory_clock_mhz * (double)gpu->memory_bus_bits / 8;

        cr_expect_float_eq(derived / (double)gpu->bandwidth_bytes_per_s, 1, 0.01, "%s",
                           gpu->name);
    }
}

// Peaks without tensor cores: SMs x lanes x 2 x clock, 64 lanes on 7.x and 8.0 and 128
// after. The sheets of some cards are for a lower clock than the card reaches.
Test(gpu, single_precision_follows_from_clock_and_cores)
{
    for (const struct as_gpu *gpu = as_gpu_table; gpu->name; gpu++) {
        const int lanes = gpu->major * 10 + gpu->minor <= 80 ? 64 : 128;
        const double derived = 2e6 * lanes * gpu->multiprocessors * gpu->clock_mhz;
        const double ratio = (double)gpu->fp32_flops / derived;

        cr_expect(ratio > 0.88 && ratio < 1.01, "%s: %f", gpu->name, ratio);
    }
}

Test(gpu, every_row_is_filled_in)
{
    for (const struct as_gpu *gpu = as_gpu_table; gpu->name; gpu++) {
        cr_expect(gpu->label && gpu->product, "%s", gpu->name);
        cr_expect(gpu->l2_bytes && gpu->half_flops, "%s", gpu->name);
        cr_expect(gpu->h2d_bytes_per_s && gpu->d2h_bytes_per_s, "%s", gpu->name);
        cr_expect(gpu->context_bytes && gpu->context_bytes < gpu->total_bytes, "%s",
                  gpu->name);
        cr_expect_eq(gpu->tf32_flops != 0, gpu->major >= 8, "%s", gpu->name);
    }
}
