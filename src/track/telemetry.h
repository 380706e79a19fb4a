// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_TELEMETRY_H
#define AS_TRACK_TELEMETRY_H

// What the device itself says of its kernels and copies: how long they ran, and for which
// part of the model. The books of a process; who fills them in is hooks/cupti.
//
// Work is told by the number of the call that submitted it (a correlation), and whose it is
// by another record of that number, before or after it. So that the books stay small, only
// the last AS_TELEMETRY_CALLS numbers are waited for: what is not told by then is nobody's.
//
// Thread-safety: every function may be called from any thread, also from one that is
// inside of a hooked call: no lock is held there that is taken here.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "track/ledger.h"

enum { AS_TELEMETRY_CALLS = 1 << 16 };

enum as_telemetry_state {
    AS_TELEMETRY_NONE, // nobody asked for it, or not yet
    AS_TELEMETRY_ON,
    AS_TELEMETRY_MISSING, // it could not be had
    AS_TELEMETRY_CUT, // it ended before the run did
};

// Copies in one direction between device and host.
struct as_telemetry_way {
    uint64_t count, bytes, ns;
    uint64_t pinned_bytes, pinned_ns; // of them, at the link's own rate
};

struct as_telemetry {
    enum as_telemetry_state state;
    const char *reason; // of the last two states
    uint64_t kernels, kernels_ns;
    struct as_telemetry_way in, out;
    uint64_t nobodys_ns; // of kernels
    uint64_t dropped; // records
};

// The kernels of a part of the model (track/place.h), by phase.
struct as_telemetry_place {
    uint32_t place;
    uint64_t ns[AS_PHASES];
};

// `reason` lives as long as the process. The first one of a state stays.
void as_telemetry_set(enum as_telemetry_state state, const char *reason);

// Whose work a thread does now: a number that is not 0, to be handed to the device's
// recorder, which as_telemetry_call() gets back.
void as_telemetry_phase(enum as_phase phase); // of the process
uint64_t as_telemetry_id(void);

void as_telemetry_kernel(uint32_t number, uint64_t ns);
void as_telemetry_copy(bool in, bool pinned, uint64_t bytes, uint64_t ns);
void as_telemetry_call(uint32_t number, uint64_t id);
void as_telemetry_drop(uint64_t records);

void as_telemetry_read(struct as_telemetry *telemetry);

// The part number `index` (from 0), in order of places. False: there are no more.
bool as_telemetry_read_place(size_t index, struct as_telemetry_place *place);

#endif
