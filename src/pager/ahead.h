// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_AHEAD_H
#define AS_PAGER_AHEAD_H

// How far ahead of a backward the pages of one device are brought in.
//
// What comes when it is needed cannot come while the work before it runs: its memory is that
// work's. So it is fetched some needs earlier, in the order of the last step, as many bytes
// at a time as the largest block let go at once. Whether there is room is told by the last
// step: how high the level rose from each need to the next, without what was there ahead. The
// first step is not known, and nothing is fetched ahead in it.
//
// Thread-safety: none; the pager's lock.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct as_swing;

struct as_ahead_level {
    uint64_t at_bytes, top_bytes; // at a need, and until the next one
};

struct as_ahead {
    struct as_ahead_level *last, *coming; // by need, of the last step and of this one
    size_t last_count, last_room, count, room;
    uint64_t last_top_bytes, top_bytes; // of all
    uint64_t bytes; // here, and not needed yet
    uint64_t block_bytes, other_bytes; // the most let go at once
    uint64_t window_bytes; // of the last step; 0: nothing comes ahead
    bool level; // most of the last step was as high as it got
    bool refused; // there was no memory for more, in this step
};

// Zero bytes are one that knows nothing.
void as_ahead_finish(struct as_ahead *ahead);

// So much was let go at once, at the exit of a block or elsewhere.
void as_ahead_left(struct as_ahead *ahead, uint64_t bytes, bool block);

// The next page in order is needed. `early_bytes`: it was here ahead, and no longer is;
// `coming_bytes`: it comes now.
void as_ahead_need(struct as_ahead *ahead, const struct as_swing *swing,
                   uint64_t early_bytes, uint64_t coming_bytes);

// How high the level is above that of the need number `from` (from 1) until the one after
// number `at`, by the last step; false: not known.
bool as_ahead_rise(const struct as_ahead *ahead, size_t from, size_t at, int64_t *bytes);

// The step is over.
void as_ahead_step(struct as_ahead *ahead, const struct as_swing *swing);

#endif
