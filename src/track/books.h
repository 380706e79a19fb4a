// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_BOOKS_H
#define AS_TRACK_BOOKS_H

// The inside of the ledger, shared by ledger.c (events), category.c (names) and holes.c.
//
// Thread-safety: each device's books have a lock of their own, as each device's allocator
// has; who needs several takes one after the other.

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "track/index.h"
#include "track/ledger.h"
#include "track/tally.h"
#include "track/timeline.h"

enum { AS_LEDGER_STREAMS = 32 };

struct as_used_stream {
    void *stream;
    uint64_t generation; // of the last allocation on it
};

// What was alive at one moment.
struct as_moment {
    uint64_t generation; // of the next block then, 0: not taken
    struct as_share shares[ACTSWAP_CATEGORIES];
};

struct as_books {
    _Alignas(64) pthread_mutex_t lock; // no line of the cache shared with another device
    struct as_index index;
    _Atomic uint64_t next_generation; // written under the lock, read without
    uint64_t step_generation; // of the next block when the step began
    uint64_t looked_generation; // of the next block at as_ledger_looked()
    uint64_t unnamed_bytes[AS_PHASES]; // alive without a name, by the phase of birth
    uint32_t stream_count;
    struct as_used_stream streams[AS_LEDGER_STREAMS]; // the one used last comes first
    uint64_t peak_ns;
    uint64_t swing_bytes[AS_SWINGS]; // highest live_bytes since as_ledger_swing()
    struct as_ledger_totals totals; // but for the categories
    struct as_share live[ACTSWAP_CATEGORIES];
    struct as_moment peak, before, after; // and when the peak's step began and ended
    struct as_moment start; // of this step
    uint32_t peak_block; // that was running at the peak
    bool exceeded; // the budget, first as in `excess`
    struct as_excess excess;
    struct as_tally *tally; // as the timeline
    struct as_timeline *timeline; // NULL until the first block, or no memory
};

struct as_ledger {
    _Atomic uint64_t budget_bytes; // 0: none
    _Atomic uint64_t step;
    _Atomic int phase; // enum as_phase
    struct as_books devices[AS_LEDGER_DEVICES];
};

// The live block that holds `address`, with the lock of its books held, which *books and
// `device` become; or NULL, and no lock is held. Device -1 looks on every device.
struct as_node *as_books_hold(struct as_ledger *ledger, int *device, const void *address,
                              struct as_books **books);

// Names a block from now on and where it was alive: at the peak and in the timeline.
void as_books_rename(struct as_books *books, struct as_node *node,
                     enum actswap_category category, bool inferred);

// The block is about to be freed in `phase`: the last chance for a name.
void as_books_end(struct as_books *books, struct as_node *node, enum as_phase phase);

// What was alive at the peak is counted when it goes.
void as_books_tally(struct as_books *books, const struct as_node *node);

#endif
