// SPDX-License-Identifier: Apache-2.0
//
// What is alive now, and what lies between.
#include <string.h>

#include "track/books.h"

void as_ledger_shares(struct as_ledger *ledger, struct as_share shares[])
{
    memset(shares, 0, ACTSWAP_CATEGORIES * sizeof(*shares));
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        struct as_books *books = &ledger->devices[i];

        pthread_mutex_lock(&books->lock);
        for (int n = 0; n < ACTSWAP_CATEGORIES; n++) {
            shares[n].bytes += books->live[n].bytes;
            shares[n].inferred_bytes += books->live[n].inferred_bytes;
            shares[n].count += books->live[n].count;
        }
        pthread_mutex_unlock(&books->lock);
    }
}

static void add_hole(struct as_holes *holes, uintptr_t from, uintptr_t to)
{
    const uint64_t bytes = to > from ? to - from : 0;

    holes->bytes += bytes;
    if (bytes > holes->largest_bytes)
        holes->largest_bytes = bytes;
}

// Adds the holes of one segment; returns the bytes that its blocks cover.
static uint64_t look_into(const struct as_index *blocks, const struct as_node *segment,
                          struct as_holes *holes)
{
    const uintptr_t end = segment->address + segment->bytes;
    struct as_cursor cursor = as_index_seek(blocks, segment->address);
    uintptr_t at = segment->address;
    uint64_t covered = 0;
    const struct as_node *block;

    while ((block = as_index_next(blocks, &cursor)) && block->address < end) {
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

    struct as_books *outer = &segments->devices[device];
    struct as_books *inner = &ledger->devices[device];
    struct as_cursor cursor = {0};
    const struct as_node *segment;
    pthread_mutex_lock(&outer->lock);
    pthread_mutex_lock(&inner->lock);
    while ((segment = as_index_next(&outer->index, &cursor)))
        covered += look_into(&inner->index, segment, holes);
    const bool all = covered == inner->totals.live_bytes;
    pthread_mutex_unlock(&inner->lock);
    pthread_mutex_unlock(&outer->lock);
    return all;
}
