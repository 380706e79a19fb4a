// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_TALLY_H
#define AS_TRACK_TALLY_H

// The activations of the peak, by block and by stack, and how long saved bytes wait.
//
// A peak is not copied: it comes with every allocation of a first step. Instead a block
// of memory that was alive then (born before it, as its generation tells) is counted when
// it is freed, or when somebody asks. A count bears the generation of its peak: of an
// older peak it is worth nothing, as what was freed between the two was not in the new one.
//
// Thread-safety: none; the ledger's locks.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <actswap/actswap.h>

#include "track/index.h"
#include "track/place.h"

enum { AS_GAPS = 32 }; // bucket n: from 2^n us to 2^(n+1) us, the first from 0

struct as_count {
    uint64_t peak_generation;
    uint64_t bytes;
    uint64_t count;
};

// Where the activations that a stack saved were made.
struct as_spread {
    uint32_t block; // one of the blocks
    uint32_t words; // that others' names share with its: see as_place_shared()
    bool several; // there are others
};

struct as_gap {
    uint64_t bytes, count;
};

struct as_tally {
    struct as_count blocks[AS_PLACES];
    struct as_count stacks[AS_PLACES];
    struct as_spread spreads[AS_PLACES]; // of stacks that have a count
    struct as_gap gaps[AS_GAPS];
    uint32_t waits[AS_PLACES][AS_GAPS]; // uses by stack, in the same buckets
};

// The block is freed, or still alive; it was alive at the peak.
void as_tally_count(struct as_tally *tally, const struct as_node *node,
                    uint64_t peak_generation);

// Takes what a tally of other memory says in. Of both, counts of older peaks are gone.
void as_tally_add(struct as_tally *tally, const struct as_tally *other);

// Saved bytes were used `gap_ns` later.
void as_tally_gap(struct as_tally *tally, uint32_t stack, uint64_t bytes,
                  uint64_t gap_ns);

// The time that `percent` of the stack's uses waited at most; 0: none was used.
uint64_t as_tally_wait_ns(const struct as_tally *tally, uint32_t stack, unsigned percent);

// Where bucket `n` begins.
uint64_t as_tally_edge_ns(unsigned n);

#endif
