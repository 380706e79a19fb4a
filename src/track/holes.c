// SPDX-License-Identifier: Apache-2.0
//
// What is alive now, and what lies between.
#include <string.h>

#include "track/books.h"

void as_ledger_shares(struct as_ledger *ledger, struct as_share shares[])
{
    memset(shares, 0, ACTSWAP_CATEGORIES * sizeof(*shares));
    pthread_mutex_lock(&ledger->lock);
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        for (int n = 0; n < ACTSWAP_CATEGORIES; n++) {
            const struct as_share *share = &ledger->devices[i].live[n];

            shares[n].bytes += share->bytes;
            shares[n].inferred_bytes += share->inferred_bytes;
            shares[n].count += share->count;
        }
    }
    pthread_mutex_unlock(&ledger->lock);
}

enum as_phase as_ledger_phase(struct as_ledger *ledger)
{
    pthread_mutex_lock(&ledger->lock);
    const enum as_phase phase = ledger->phase;
    pthread_mutex_unlock(&ledger->lock);
    return phase;
}

static void add_hole(struct as_holes *holes, uintptr_t from, uintptr_t to)
{
    const uint64_t bytes = to > from ? to - from : 0;

    holes->bytes += bytes;
    if (bytes > holes->largest_bytes)
        holes->largest_bytes = bytes;
}

// Adds the holes of one segment; returns the bytes that its blocks cover.
static uint64_t look_into(struct as_ledger *ledger, int device,
                          const struct as_node *segment, struct as_holes *holes)
{
    const uint32_t root = ledger->devices[device].root;
    const uintptr_t end = segment->address + segment->bytes;
    uintptr_t at = segment->address;
    uint64_t covered = 0;
    const struct as_node *block;

    while ((block = as_tree_next(&ledger->tree, root, at)) && block->address < end) {
        add_hole(holes, at, block->address);
        covered += block->bytes;
        at = block->address + block->bytes;
    }
    if (covered) // a segment without any block may be somebody else's
        add_hole(holes, at, end);
    return covered;
}

// The segments' lock comes first.
bool as_ledger_holes(struct as_ledger *ledger, struct as_ledger *segments, int device,
                     struct as_holes *holes)
{
    uint64_t covered = 0;

    *holes = (struct as_holes){0};
    if (device < 0 || device >= AS_LEDGER_DEVICES || ledger == segments)
        return false;
    pthread_mutex_lock(&segments->lock);
    pthread_mutex_lock(&ledger->lock);
    for (uint32_t i = 1; i < segments->tree.count; i++) {
        const struct as_node *segment = &segments->tree.nodes[i];

        if (segment->bytes && segment->device == device)
            covered += look_into(ledger, device, segment, holes);
    }
    const bool all = covered == ledger->devices[device].totals.live_bytes;
    pthread_mutex_unlock(&ledger->lock);
    pthread_mutex_unlock(&segments->lock);
    return all;
}
