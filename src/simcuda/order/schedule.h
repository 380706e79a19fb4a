// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_ORDER_SCHEDULE_H
#define AS_SIMCUDA_ORDER_SCHEDULE_H

// What runs of its own accord, and when, under ACTSWAP_SIM_ORDER=seed:N.
//
// Each entry whose edges allow it to run is open until somebody wants it. At every call
// of the program some open entries run, none or all of them: each stream has a pace,
// from "only when wanted" to "at once", drawn from the seed anew every so many entries,
// how many being the seed's, too. So a stream may lag by one entry or by thousands, and
// each order that the edges allow is some seed's. The same seed and the same calls of one
// thread give the same order.
//
// Thread-safety: with the queue's lock held.

#include <stdbool.h>

#include "simcuda/order/entry.h"

void sim_schedule_open(struct sim_entry *entry);
void sim_schedule_close(struct sim_entry *entry);

// The open entry that runs now; NULL: none. `ready` wanted ones could run instead, which
// has a NULL mean that one of those does.
struct sim_entry *sim_schedule_pick(unsigned ready);

// One of `count`.
unsigned sim_schedule_choose(unsigned count);

#endif
