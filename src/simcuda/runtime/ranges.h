// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_RANGES_H
#define AS_SIMCUDA_RUNTIME_RANGES_H

// Address ranges, used and free, in address order: the books of a device's memory and
// the table of pinned host memory. A treap, each node knowing the largest free range
// below it, so that first fit, the neighbours for coalescing and "which range holds this
// address" each take logarithmic time.
//
// Thread-safety: none; the owner of the books locks.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_range {
    uintptr_t start;
    size_t bytes; // of the range
    size_t asked_bytes; // what the caller wanted of it
    unsigned kind; // the owner's own
    bool ending; // the owner's own
    // Below: the tree's.
    bool used;
    uint32_t priority;
    size_t largest_free;
    struct sim_range *left, *right;
};

struct sim_ranges {
    struct sim_range *root;
    uint32_t seed;
    size_t used_bytes;
};

// Makes [start, start + bytes) free. false: no memory.
bool sim_ranges_add_free(struct sim_ranges *ranges, uintptr_t start, size_t bytes);

// The lowest free range that holds `bytes`, cut to it, now used; NULL: none, or no
// memory.
struct sim_range *sim_ranges_take(struct sim_ranges *ranges, size_t bytes);

// Makes a used range free and joins it with free neighbours.
void sim_ranges_give(struct sim_ranges *ranges, struct sim_range *range);

// Enters a used range that was not taken from free ones. NULL: overlaps, or no memory.
struct sim_range *sim_ranges_insert(struct sim_ranges *ranges, uintptr_t start,
                                    size_t bytes);

// Takes out a range entered by sim_ranges_insert.
void sim_ranges_remove(struct sim_ranges *ranges, struct sim_range *range);

// The used range that holds the address, or NULL. Valid until it is given back.
struct sim_range *sim_ranges_find(const struct sim_ranges *ranges, uintptr_t address);

// The first range, used or free, that ends behind the address, or NULL.
struct sim_range *sim_ranges_from(const struct sim_ranges *ranges, uintptr_t address);

#endif
