// SPDX-License-Identifier: Apache-2.0
#include "pager/ahead.h"

#include <stdlib.h>

#include "track/ledger.h"

enum { NEEDS_MAX = 1 << 20 }; // of a step without end no more are remembered

void as_ahead_finish(struct as_ahead *ahead)
{
    free(ahead->last);
    free(ahead->coming);
    *ahead = (struct as_ahead){0};
}

void as_ahead_left(struct as_ahead *ahead, uint64_t bytes, bool block)
{
    uint64_t *most = block ? &ahead->block_bytes : &ahead->other_bytes;
    *most = bytes > *most ? bytes : *most;
}

static uint64_t without(uint64_t bytes, uint64_t early_bytes)
{
    return bytes > early_bytes ? bytes - early_bytes : 0;
}

// Ends the stretch behind the last need.
static void note_top(struct as_ahead *ahead, const struct as_swing *swing)
{
    const uint64_t top = without(swing->peak_bytes, ahead->bytes);
    ahead->top_bytes = top > ahead->top_bytes ? top : ahead->top_bytes;
    if (ahead->count)
        ahead->coming[ahead->count - 1].top_bytes = top;
}

static bool make_room(struct as_ahead *ahead)
{
    if (ahead->count < ahead->room)
        return true;
    const size_t room = ahead->room ? 2 * ahead->room : 256;
    struct as_ahead_level *grown = realloc(ahead->coming, room * sizeof(*grown));
    if (!grown)
        return false;
    ahead->coming = grown;
    ahead->room = room;
    return true;
}

void as_ahead_need(struct as_ahead *ahead, const struct as_swing *swing,
                   uint64_t early_bytes, uint64_t coming_bytes)
{
    note_top(ahead, swing);
    ahead->bytes = without(ahead->bytes, early_bytes);
    if (ahead->count == NEEDS_MAX || !make_room(ahead))
        return;
    const uint64_t level = without(swing->live_bytes, ahead->bytes) + coming_bytes;
    ahead->coming[ahead->count++] = (struct as_ahead_level){level, level};
}

bool as_ahead_rise(const struct as_ahead *ahead, size_t from, size_t at, int64_t *bytes)
{
    if (!from || from > ahead->last_count || !at || at > ahead->last_count)
        return false;
    *bytes =
        (int64_t)ahead->last[at - 1].top_bytes - (int64_t)ahead->last[from - 1].at_bytes;
    return true;
}

// Where most of a step is as high as it gets, room for a block has to be added to it.
static bool is_level(const struct as_ahead *ahead)
{
    size_t high = 0;
    for (size_t i = 0; i < ahead->last_count; i++)
        high += ahead->last[i].top_bytes + ahead->window_bytes > ahead->last_top_bytes;
    return 2 * high > ahead->last_count;
}

void as_ahead_step(struct as_ahead *ahead, const struct as_swing *swing)
{
    note_top(ahead, swing);
    struct as_ahead_level *const spare = ahead->last;
    const size_t room = ahead->last_room;
    ahead->last = ahead->coming;
    ahead->last_count = ahead->count;
    ahead->last_room = ahead->room;
    ahead->coming = spare;
    ahead->room = room;
    ahead->count = 0;
    ahead->last_top_bytes = ahead->top_bytes;
    ahead->window_bytes = ahead->block_bytes ? ahead->block_bytes : ahead->other_bytes;
    ahead->top_bytes = ahead->block_bytes = ahead->other_bytes = 0;
    ahead->level = is_level(ahead);
    ahead->refused = false;
}
