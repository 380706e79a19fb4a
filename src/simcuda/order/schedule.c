// SPDX-License-Identifier: Apache-2.0
#include "simcuda/order/schedule.h"

#include "simcuda/runtime/device.h"

// How likely nothing runs, or a wanted entry, in the unit of the paces.
enum { STOP = 8 };

static struct sim_entry *open;
static uint64_t drawn;

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

unsigned sim_schedule_choose(unsigned count)
{
    return (unsigned)(mix(mix(sim_seed()) + ++drawn) >> 32) % count;
}

static unsigned pace(const struct sim_entry *entry)
{
    static const unsigned paces[] = {0, 1, 4, 16, 64};
    const uint64_t own = mix(sim_seed() ^ 0x70616365);
    const uint64_t phase = entry->number >> own % 14;
    const uint64_t draw = mix(mix(own ^ entry->lane) + phase);

    return paces[draw % (sizeof(paces) / sizeof(*paces))];
}

void sim_schedule_open(struct sim_entry *entry)
{
    entry->open = true;
    entry->open_before = NULL;
    entry->open_after = open;
    if (open)
        open->open_before = entry;
    open = entry;
}

void sim_schedule_close(struct sim_entry *entry)
{
    if (!entry->open)
        return;
    entry->open = false;
    if (entry->open_before)
        entry->open_before->open_after = entry->open_after;
    else
        open = entry->open_after;
    if (entry->open_after)
        entry->open_after->open_before = entry->open_before;
}

struct sim_entry *sim_schedule_pick(unsigned ready)
{
    unsigned all = ready ? STOP * ready : STOP;

    for (const struct sim_entry *at = open; at; at = at->open_after)
        all += pace(at);

    unsigned left = sim_schedule_choose(all);

    for (struct sim_entry *at = open; at; at = at->open_after) {
        if (left < pace(at))
            return at;
        left -= pace(at);
    }
    return NULL;
}
