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

static void spread(struct as_spread *spread, uint32_t block)
{
    if (block == spread->block)
        return;
    const unsigned words = as_place_shared(block, spread->block);
    spread->several = true;
    if (words < spread->words)
        spread->words = words;
}

void as_tally_count(struct as_tally *tally, const struct as_node *node,
                    uint64_t peak_generation)
{
    if (node->category != ACTSWAP_ACTIVATION)
        return;
    count(&tally->blocks[node->block], node, peak_generation);
    if (!node->stack)
        return;
    if (tally->stacks[node->stack].peak_generation != peak_generation)
        tally->spreads[node->stack] =
            (struct as_spread){node->block, AS_PLACE_WORDS, false};
    count(&tally->stacks[node->stack], node, peak_generation);
    spread(&tally->spreads[node->stack], node->block);
}

static void add(struct as_count *count, const struct as_count *other)
{
    count->bytes += other->bytes;
    count->count += other->count;
}

void as_tally_add(struct as_tally *tally, const struct as_tally *other)
{
    for (uint32_t i = 0; i < AS_PLACES; i++) {
        const struct as_spread *spreads = &other->spreads[i];

        if (!tally->stacks[i].count) {
            tally->spreads[i] = *spreads;
        } else if (other->stacks[i].count) {
            spread(&tally->spreads[i], spreads->block);
            tally->spreads[i].several |= spreads->several;
            if (spreads->words < tally->spreads[i].words)
                tally->spreads[i].words = spreads->words;
        }
        add(&tally->blocks[i], &other->blocks[i]);
        add(&tally->stacks[i], &other->stacks[i]);
        for (unsigned n = 0; n < AS_GAPS; n++)
            tally->waits[i][n] += other->waits[i][n];
    }
    for (unsigned n = 0; n < AS_GAPS; n++) {
        tally->gaps[n].bytes += other->gaps[n].bytes;
        tally->gaps[n].count += other->gaps[n].count;
    }
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
