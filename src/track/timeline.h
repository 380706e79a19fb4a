// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_TIMELINE_H
#define AS_TRACK_TIMELINE_H

// Memory over time in at most AS_TIMELINE_BUCKETS samples, however long the run.
//
// A bucket keeps the one sample of its time whose total was highest, so that the true
// peak of each is there. When all are full, pairs are merged and buckets become twice as
// wide.
//
// Thread-safety: none; the ledger's locks.

#include <stdbool.h>
#include <stdint.h>

#include <actswap/actswap.h>

enum { AS_TIMELINE_BUCKETS = 2000 };

struct as_sample {
    uint64_t t_ns; // as_clock_ns()
    uint64_t generation; // of the next block: older ones that live on were there
    uint64_t total_bytes, reserved_bytes;
    uint32_t step;
    uint8_t phase; // enum as_phase
    uint64_t bytes[ACTSWAP_CATEGORIES];
};

struct as_timeline {
    uint64_t start_ns, width_ns;
    uint32_t count;
    struct as_sample samples[AS_TIMELINE_BUCKETS];
};

void as_timeline_start(struct as_timeline *timeline, uint64_t now_ns);

// When the last bucket ends: from then on as_timeline_reach has something to do.
static inline uint64_t as_timeline_end(const struct as_timeline *timeline)
{
    return timeline->start_ns + timeline->count * timeline->width_ns;
}

// Is this more than what the last bucket has?
static inline bool as_timeline_lacks(const struct as_timeline *timeline, uint64_t bytes)
{
    return timeline->count && bytes > timeline->samples[timeline->count - 1].total_bytes;
}

// Something is about to change: buckets that began since the last call get `level`, which
// was true until now.
void as_timeline_reach(struct as_timeline *timeline, const struct as_sample *level);

// It has changed to `level`, and the last bucket lacks that.
void as_timeline_note(struct as_timeline *timeline, const struct as_sample *level);

// A block that is still alive and was `from` turns out to be `to`.
void as_timeline_rename(struct as_timeline *timeline, uint64_t generation, uint64_t bytes,
                        enum actswap_category from, enum actswap_category to);

#endif
