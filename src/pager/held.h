// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_HELD_H
#define AS_PAGER_HELD_H

// Which pages somebody else still held when the last step's backward began, or gave other
// memory: copying them was in vain, and so it will be. Pages are told apart by their number in the order of
// saving, their size and where they were saved; one that is another's in one of these has
// been held by nobody.
//
// Thread-safety: none; the pager's lock.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct as_held_page {
    size_t bytes;
    uint32_t place;
    bool held;
};

struct as_held_step {
    struct as_held_page *pages; // by number
    size_t count, room;
};

struct as_held {
    struct as_held_step last, coming;
};

// Zero bytes know of nothing.
void as_held_finish(struct as_held *held);

// A page is made. True if it was held in the last step.
bool as_held_add(struct as_held *held, uint32_t number, size_t bytes, uint32_t place);

// Copying a page of this step was in vain.
void as_held_found(struct as_held *held, uint32_t number);

// The step is over.
void as_held_end_step(struct as_held *held);

#endif
