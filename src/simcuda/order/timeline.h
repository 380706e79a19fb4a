// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_ORDER_TIMELINE_H
#define AS_SIMCUDA_ORDER_TIMELINE_H

// The virtual clock: when each entry of the queue begins and ends, and what time the host
// has.
//
// An entry begins when all that it comes after has ended, but not before the host has
// submitted it, nor while the copy engine that it needs is taken: a device has one for
// each direction, which makes one copy at a time, in the first gap that the copy fits in.
// Kernels of different streams do not slow each other. All of this is known when the
// entry is submitted, so the time neither depends on when its work runs nor on the real
// clock. The host's time advances by what its calls take and by what it waits for, and by
// nothing else: not by the program's own work, nor by queries. Devices and host count
// from the same moment.
//
// Thread-safety: none; with the queue's lock held.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What of the device is busy meanwhile.
enum sim_engine {
    SIM_NOTHING,
    SIM_KERNELS,
    SIM_COPY_IN,
    SIM_COPY_OUT,
    SIM_COPY_PEER, // out of the device `peer`, in to the entry's
    SIM_ENGINES = SIM_COPY_PEER,
};

// What host calls take (runtime/cost.c has the sources).
enum {
    SIM_HOST_EVENT_NS = 1600,
    SIM_HOST_LAUNCH_NS = 2500,
};

struct sim_cost {
    uint64_t ns; // 0: nothing but its place in the order
    enum sim_engine engine;
    int peer;
    bool unknown; // the work takes longer than `ns`, nobody knows how much
    uint64_t host_ns; // of the call, before the work may begin
    uint64_t host_beside_ns; // of the call, while the work may run
};

// When an entry runs.
struct sim_when {
    uint64_t ready_ns; // the end of the last of those before it
    uint64_t start_ns, end_ns;
    uint64_t worked_ns; // the end of its stream's last kernel, up to it
    enum sim_engine behind; // whose work ends at ready_ns; SIM_NOTHING: the host's
};

// `when` comes after `before`, which has its place.
void sim_timeline_after(struct sim_when *when, const struct sim_when *before,
                        bool same_stream);

// Gives it its place: final.
void sim_timeline_place(struct sim_when *when, const struct sim_cost *cost, int device);

// The host's time.
void sim_timeline_spend(uint64_t ns);
void sim_timeline_reach(uint64_t ns); // it has waited until then

#endif
