// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_BOOKS_H
#define AS_TRACK_BOOKS_H

// The inside of the ledger, shared by ledger.c (events) and category.c (names).
//
// Thread-safety: everything here is under the ledger's lock.

#include <pthread.h>
#include <stdlib.h>

#include "track/ledger.h"
#include "track/tally.h"
#include "track/timeline.h"
#include "track/tree.h"

enum { AS_LEDGER_DEVICES = 64, AS_LEDGER_STREAMS = 32 };

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
    uint32_t root;
    uint32_t stream_count;
    struct as_used_stream streams[AS_LEDGER_STREAMS]; // the one used last comes first
    uint64_t peak_ns;
    struct as_ledger_totals totals; // but for the categories
    struct as_share live[ACTSWAP_CATEGORIES];
    struct as_moment peak, before, after; // and when the peak's step began and ended
    struct as_moment start; // of this step
    uint32_t peak_block; // that was running at the peak
    struct as_tally *tally; // as the timeline
    struct as_timeline *timeline; // NULL until the first block, or no memory
};

struct as_ledger {
    pthread_mutex_t lock;
    struct as_tree tree;
    uint64_t next_generation; // written under the lock, read without
    uint64_t step_generation; // of the next block when the step began
    uint64_t looked_generation; // of the next block at as_ledger_looked()
    uint64_t step;
    enum as_phase phase;
    uint64_t unnamed_bytes[AS_PHASES]; // alive without a name, by the phase of birth
    struct as_books devices[AS_LEDGER_DEVICES];
};

// Names a block from now on and where it was alive: at the peak and in the timeline.
void as_books_rename(struct as_ledger *ledger, struct as_node *node,
                     enum actswap_category category, bool inferred);

// The block is about to be freed: the last chance for a name.
void as_books_end(struct as_ledger *ledger, struct as_node *node);

// What was alive at the peak is counted when it goes.
void as_books_tally(struct as_books *books, const struct as_node *node);

// The live block that holds `address`, or NULL; *device becomes its own if it is -1.
struct as_node *as_books_find(struct as_ledger *ledger, int *device, const void *address);

#endif
