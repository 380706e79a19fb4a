// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_ORDER_HANDLES_H
#define AS_SIMCUDA_ORDER_HANDLES_H

// Handles of streams and events: a slot and how often it was used before, so that a
// handle that was destroyed never names a younger object. Even, above the special
// streams' values, and below 2^47 because frameworks keep them in pointers' spare bits.
//
// Thread-safety: none; the queue's lock covers them.

#include <stddef.h>
#include <stdint.h>

struct sim_handles {
    struct sim_slot {
        void *object; // NULL: free
        uint16_t uses;
        uint32_t next_free;
    } * slots;
    uint32_t count, capacity;
    uint32_t first_free; // index + 1, 0: none
    uintptr_t tag; // 0 or 8: tells one table's handles from another's
};

// NULL: no memory.
void *sim_handles_add(struct sim_handles *handles, void *object);

// The object, or NULL.
void *sim_handles_find(const struct sim_handles *handles, const void *handle);

void sim_handles_remove(struct sim_handles *handles, const void *handle);

#endif
