// SPDX-License-Identifier: Apache-2.0
#include "simcuda/check/clock.h"

#include <stdlib.h>
#include <string.h>

#include "simcuda/simcuda.h"

// A lane is of entries, or of one thread after the other.
enum use { UNUSED, ENTRIES, THREAD, LEFT };

static struct sim_clock lanes; // the last epoch of each
static enum use *uses;
static unsigned use_count;

static void grow(struct sim_clock *clock, unsigned count)
{
    if (count <= clock->count)
        return;

    uint64_t *epochs = realloc(clock->epochs, count * sizeof(*epochs));

    if (!epochs)
        sim_fail("no memory for the checker's clocks");
    memset(epochs + clock->count, 0, (count - clock->count) * sizeof(*epochs));
    clock->epochs = epochs;
    clock->count = count;
}

static void grow_uses(void)
{
    if (lanes.count <= use_count)
        return;

    enum use *more = realloc(uses, lanes.count * sizeof(*more));

    if (!more)
        sim_fail("no memory for the checker's clocks");
    uses = more;
    while (use_count < lanes.count)
        uses[use_count++] = UNUSED;
}

void sim_clock_join(struct sim_clock *clock, const struct sim_clock *more)
{
    grow(clock, more->count);
    for (unsigned i = 0; i < more->count; i++)
        if (more->epochs[i] > clock->epochs[i])
            clock->epochs[i] = more->epochs[i];
}

void sim_clock_meet(struct sim_clock *clock, const struct sim_clock *other)
{
    for (unsigned i = 0; i < clock->count; i++)
        if (!sim_clock_has(other, i, clock->epochs[i]))
            clock->epochs[i] = i < other->count ? other->epochs[i] : 0;
}

bool sim_clock_has(const struct sim_clock *clock, unsigned lane, uint64_t epoch)
{
    return lane < clock->count && clock->epochs[lane] >= epoch;
}

void sim_clock_finish(struct sim_clock *clock)
{
    free(clock->epochs);
    *clock = (struct sim_clock){0};
}

struct sim_stamp *sim_stamp_create(void)
{
    struct sim_stamp *stamp = calloc(1, sizeof(*stamp));

    if (!stamp)
        sim_fail("no memory for the checker's clocks");
    return stamp;
}

void sim_stamp_destroy(struct sim_stamp *stamp)
{
    if (!stamp)
        return;
    sim_clock_finish(&stamp->past);
    free(stamp);
}

static bool follows(const struct sim_clock *past, unsigned lane)
{
    return sim_clock_has(past, lane, lanes.epochs[lane]);
}

// The lane, or any other that is free and whose end is in the past.
static unsigned find(const struct sim_clock *past, unsigned lane, enum use use)
{
    if (lane != SIM_LANE_NONE && lane < lanes.count && uses[lane] == use &&
        follows(past, lane))
        return lane;
    for (lane = SIM_LANE_NONE + 1; lane < lanes.count; lane++)
        if (uses[lane] == use && follows(past, lane))
            break;
    grow(&lanes, lane + 1);
    grow_uses();
    return lane;
}

void sim_stamp_place(struct sim_stamp *stamp, unsigned lane)
{
    lane = find(&stamp->past, lane, ENTRIES);
    uses[lane] = ENTRIES;
    grow(&stamp->past, lane + 1);
    stamp->lane = lane;
    stamp->epoch = stamp->past.epochs[lane] = ++lanes.epochs[lane];
}

unsigned sim_lane_open(const struct sim_clock *past)
{
    const unsigned lane = find(past, SIM_LANE_NONE, LEFT);

    uses[lane] = THREAD;
    return lane;
}

void sim_lane_close(unsigned lane)
{
    uses[lane] = LEFT;
}

void sim_lane_reach(struct sim_clock *clock, unsigned lane, uint64_t epoch)
{
    grow(clock, lane + 1);
    clock->epochs[lane] = lanes.epochs[lane] = epoch;
}
