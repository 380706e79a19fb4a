// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/code.h"

#include <criterion/criterion.h>

// What torch.cuda.get_arch_list() says of the CUDA 13.2 wheel of PyTorch 2.15.
static const char wheel[] = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120";

Test(code, is_the_nearest_below_within_the_same_major_number)
{
    static const struct {
        const char *list;
        int major, minor, binary, intermediate;
    } cases[] = {
        {wheel, 7, 5, 75, 75},
        {wheel, 8, 0, 80, 80},
        {wheel, 8, 6, 86, 86},
        {wheel, 8, 9, 86, 86},
        {wheel, 9, 0, 90, 90},
        {wheel, 10, 3, 100, 100},
        {wheel, 12, 1, 120, 120},
        {wheel, 7, 0, 0, 0},
        {wheel, 11, 0, 0, 0},
        {"sm_50 compute_80", 9, 0, 90, 80},
        {"sm_90 compute_80", 9, 0, 90, 90},
        {"compute_90", 8, 9, 0, 0},
        {"sm_90a sm_100f", 9, 0, 90, 90},
        {"sm_90a sm_100f", 10, 3, 100, 100},
        {"sm_100a", 10, 3, 0, 0},
        {"sm_80;compute_80,nonsense", 12, 0, 120, 80},
        {"", 8, 9, 89, 89},
        {NULL, 8, 9, 89, 89},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sim_code code;
        const bool found =
            sim_code_choose(cases[i].list, cases[i].major, cases[i].minor, &code);

        cr_expect_eq(found, cases[i].binary > 0, "case %zu", i);
        if (!found)
            continue;
        cr_expect_eq(code.binary, cases[i].binary, "case %zu: %d", i, code.binary);
        cr_expect_eq(code.intermediate, cases[i].intermediate, "case %zu", i);
    }
}
