// SPDX-License-Identifier: Apache-2.0
#include "simcuda/check/comb.h"

#include <stdlib.h>
#include <string.h>

#define uthash_fatal(message) sim_fail(message)
#include <uthash.h>

struct sim_comb {
    struct sim_rows rows[SIM_ROWS];
    UT_hash_handle hh;
};

static struct sim_comb *combs;

const struct sim_comb *sim_comb_intern(const struct sim_rows rows[SIM_ROWS])
{
    struct sim_comb *comb;

    if (!rows[0].step)
        return NULL;
    HASH_FIND(hh, combs, rows, sizeof(comb->rows), comb);
    if (comb)
        return comb;
    comb = calloc(1, sizeof(*comb));
    if (!comb)
        sim_fail("no memory for the checker's access patterns");
    memcpy(comb->rows, rows, sizeof(comb->rows));
    HASH_ADD(hh, combs, rows, sizeof(comb->rows), comb);
    return comb;
}

static size_t common_divisor(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

bool sim_comb_touches(const struct sim_comb *comb, uintptr_t start, uintptr_t from,
                      uintptr_t to)
{
    for (int i = 0; comb && i < SIM_ROWS && comb->rows[i].step; i++) {
        const size_t step = comb->rows[i].step, within = (from - start) % step;

        if (within >= comb->rows[i].run && step - within >= to - from)
            return false;
    }
    return true;
}

// On a circle as long as what divides both steps each is one arc.
static bool rows_meet(const struct sim_rows *a, uintptr_t a_start,
                      const struct sim_rows *b, uintptr_t b_start)
{
    const size_t round = common_divisor(a->step, b->step);
    const size_t ahead = (b_start % round + round - a_start % round) % round;

    return ahead < a->run || (round - ahead) % round < b->run;
}

bool sim_combs_meet(const struct sim_comb *a, uintptr_t a_start, const struct sim_comb *b,
                    uintptr_t b_start)
{
    for (int i = 0; a && i < SIM_ROWS && a->rows[i].step; i++)
        for (int j = 0; b && j < SIM_ROWS && b->rows[j].step; j++)
            if (!rows_meet(&a->rows[i], a_start, &b->rows[j], b_start))
                return false;
    return true;
}

bool sim_comb_covers(const struct sim_comb *comb, uintptr_t start,
                     const struct sim_comb *other, uintptr_t other_start)
{
    if (!comb)
        return true;
    if (comb != other)
        return false;
    for (int i = 0; i < SIM_ROWS && comb->rows[i].step; i++)
        if (start % comb->rows[i].step != other_start % comb->rows[i].step)
            return false;
    return true;
}
