// SPDX-License-Identifier: Apache-2.0
#include "simcuda/check/clock.h"

#include <stdlib.h>
#include <string.h>

#include "simcuda/simcuda.h"

static struct sim_clock host;
static struct sim_clock lanes; // the last epoch of each

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

void sim_clock_join(struct sim_clock *clock, const struct sim_clock *more)
{
    grow(clock, more->count);
    for (unsigned i = 0; i < more->count; i++)
        if (more->epochs[i] > clock->epochs[i])
            clock->epochs[i] = more->epochs[i];
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

static bool follows(const struct sim_stamp *stamp, unsigned lane)
{
    return lane != SIM_LANE_HOST && lane < lanes.count &&
           sim_clock_has(&stamp->past, lane, lanes.epochs[lane]);
}

void sim_stamp_place(struct sim_stamp *stamp, unsigned lane)
{
    sim_clock_join(&stamp->past, &host);
    if (!follows(stamp, lane))
        for (lane = SIM_LANE_HOST + 1; lane < lanes.count && !follows(stamp, lane);)
            lane++;
    grow(&lanes, lane + 1);
    grow(&stamp->past, lane + 1);
    stamp->lane = lane;
    stamp->epoch = stamp->past.epochs[lane] = ++lanes.epochs[lane];
}

const struct sim_clock *sim_clock_host(void)
{
    return &host;
}

void sim_clock_tell_host(const struct sim_clock *clock)
{
    sim_clock_join(&host, clock);
}

uint64_t sim_clock_host_epoch(void)
{
    return host.count ? host.epochs[SIM_LANE_HOST] : 0;
}

uint64_t sim_clock_tick_host(void)
{
    grow(&host, SIM_LANE_HOST + 1);
    return ++host.epochs[SIM_LANE_HOST];
}
