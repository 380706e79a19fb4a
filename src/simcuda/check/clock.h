// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CHECK_CLOCK_H
#define AS_SIMCUDA_CHECK_CLOCK_H

// What happens before what, as vector clocks.
//
// An entry of the queue is a point on a lane, with an epoch that grows along it; each
// comes after all earlier ones of its lane. A clock says, for each lane, up to which epoch
// all is in the past. A thread of the program has a lane of its own.
//
// There are as many lanes as entries were ever unordered at once, roughly one a stream: an
// entry takes over any lane whose last entry it comes after.
//
// Thread-safety: none; the queue's lock covers it. Out of memory ends the process.

#include <stdbool.h>
#include <stdint.h>

enum { SIM_LANE_NONE };

struct sim_clock {
    unsigned count; // of lanes; of those behind, nothing is in the past
    uint64_t *epochs;
};

void sim_clock_join(struct sim_clock *clock, const struct sim_clock *more);
void sim_clock_meet(struct sim_clock *clock, const struct sim_clock *other); // in both
bool sim_clock_has(const struct sim_clock *clock, unsigned lane, uint64_t epoch);
void sim_clock_finish(struct sim_clock *clock);

// An entry's place in the order: itself is in its past, too.
struct sim_stamp {
    unsigned lane;
    uint64_t epoch; // 0: not placed yet
    struct sim_clock past;
};

struct sim_stamp *sim_stamp_create(void);
void sim_stamp_destroy(struct sim_stamp *stamp); // NULL is fine

// Places it behind its past; `lane` is where it goes if that can be. What is joined to its
// past later, before others come after it, counts, too.
void sim_stamp_place(struct sim_stamp *stamp, unsigned lane);

// --- A thread's lane

// One that nobody has, or whose last owner's end is in the clock.
unsigned sim_lane_open(const struct sim_clock *past);
void sim_lane_close(unsigned lane);
// The owner is at that epoch, which its clock has from then on.
void sim_lane_reach(struct sim_clock *clock, unsigned lane, uint64_t epoch);

#endif
