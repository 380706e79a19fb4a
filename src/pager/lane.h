// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_LANE_H
#define AS_PAGER_LANE_H

// The two copy lanes of one device, one non-blocking stream a direction, and the events
// of that device: an event must be recorded on the device that it was made on.
//
// Thread-safety: every function may be called from any thread. The calls on streams and
// events want the lane's device to be current (as_device_enter).

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "cuda/thread.h"

struct as_lane {
    pthread_mutex_t lock;
    int device;
    void *out, *in; // cudaStream_t
    void **events; // that are free
    size_t count, room;
};

// The device must be current. NULL: the runtime refused, or out of memory.
struct as_lane *as_lane_create(int device);

// Waits for both directions first. Events that are not given back by then are lost.
void as_lane_destroy(struct as_lane *lane);

// An event for the caller alone. A cudaError_t.
int as_lane_take(struct as_lane *lane, void **event);

// NULL is accepted. An event may be given while a stream still waits for it.
void as_lane_give(struct as_lane *lane, void *event);

#endif
