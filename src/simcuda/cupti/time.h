// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CUPTI_TIME_H
#define AS_SIMCUDA_CUPTI_TIME_H

// The times in records. They are the virtual clock's nanoseconds, unless whoever traces
// has a clock of its own (cuptiActivityRegisterTimestampCallback). Then host calls have
// that clock's time, and the device's work is laid on it: never before the call that
// submitted it, in its order, and as long as on the virtual clock. So that it is over when
// a call that waited for it returns, such a call returns no sooner than a card's would.
//
// Thread-safety: every function may be called from any thread.

#include <cupti.h>
#include <stdbool.h>
#include <stdint.h>

void sim_time_use(CUpti_TimestampCallbackFunc clock); // NULL: the virtual one
bool sim_time_is_real(void);

// A call begins: what it submits comes after this.
void sim_time_enter(void);

// The host's time now, and the device's time, both not yet that of records.
uint64_t sim_time_host(void);
uint64_t sim_time_device(uint64_t virtual_ns);

// Returns once the host may have the time that the virtual clock says it has. `waited`: it
// had to wait for the device.
void sim_time_hold(bool waited);

// How the above become times of records, as known now.
struct sim_scale {
    uint64_t from_ns, to;
    double rate;
};

struct sim_scale sim_time_scale(void);
uint64_t sim_time_scaled(const struct sim_scale *scale, uint64_t ns);

#endif
