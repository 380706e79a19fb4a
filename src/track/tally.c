// SPDX-License-Identifier: Apache-2.0
#include "track/tally.h"

static void count(struct as_count *count, const struct as_node *node,
                  uint64_t peak_generation)
{
    if (count->peak_generation != peak_generation)
        *count = (struct as_count){.peak_generation = peak_generation};
    count->bytes += node->bytes;
    count->count++;
}

void as_tally_count(struct as_tally *tally, const struct as_node *node,
                    uint64_t peak_generation)
{
    if (node->category != ACTSWAP_ACTIVATION)
        return;
    count(&tally->blocks[node->block], node, peak_generation);
    if (node->stack)
        count(&tally->stacks[node->stack], node, peak_generation);
}

uint64_t as_tally_edge_ns(unsigned n)
{
    return n ? UINT64_C(1000) << n : 0;
}

static unsigned bucket_of(uint64_t gap_ns)
{
    unsigned n = 0;

    while (n + 1 < AS_GAPS && gap_ns >= as_tally_edge_ns(n + 1))
        n++;
    return n;
}

void as_tally_gap(struct as_tally *tally, uint32_t stack, uint64_t bytes, uint64_t gap_ns)
{
    const unsigned n = bucket_of(gap_ns);

    tally->gaps[n].bytes += bytes;
    tally->gaps[n].count++;
    tally->waits[stack][n]++;
}

uint64_t as_tally_wait_ns(const struct as_tally *tally, uint32_t stack, unsigned percent)
{
    const uint32_t *waits = tally->waits[stack];
    uint64_t all = 0, below = 0;

    for (unsigned n = 0; n < AS_GAPS; n++)
        all += waits[n];
    for (unsigned n = 0; n < AS_GAPS; n++) {
        if (waits[n] && (below + waits[n]) * 100 >= all * percent) {
            const uint64_t from = as_tally_edge_ns(n), to = as_tally_edge_ns(n + 1);
            const double part = ((double)all * percent / 100 - (double)below) / waits[n];

            return from + (uint64_t)((double)(to - from) * part);
        }
        below += waits[n];
    }
    return 0;
}
