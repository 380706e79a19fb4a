// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_LEDGER_H
#define AS_TRACK_LEDGER_H

// The live device allocations of the framework's allocator, and what they add up to.
//
// A block is known by (address, generation): addresses come back, generations do not.
// The ledger is told of allocations and frees as they happen (under the framework's
// allocator lock), so no function here calls out, waits for anything but the ledger's
// own lock, or fails the caller.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <actswap/actswap.h>

struct as_ledger;

struct as_ledger *as_ledger_create(void);
void as_ledger_destroy(struct as_ledger *ledger);

// `reserved_bytes` is the allocator's total on that device after the event, `stream` the
// one that the memory belongs to: the allocator hands it out again to that one only.
void as_ledger_add(struct as_ledger *ledger, int device, const void *address,
                   size_t bytes, size_t reserved_bytes, void *stream);
void as_ledger_remove(struct as_ledger *ledger, int device, const void *address,
                      size_t bytes, size_t reserved_bytes);

struct as_block {
    const void *address;
    size_t bytes;
    int device;
    uint64_t generation; // of the whole ledger: grows by one with each allocation
    enum actswap_category category;
    void *stream; // that it was allocated on
};

// The live block that holds `address`, which may point inside. False: none.
bool as_ledger_find(struct as_ledger *ledger, int device, const void *address,
                    struct as_block *block);

// The generation that the next allocation will get: what is smaller is older than now.
uint64_t as_ledger_now(const struct as_ledger *ledger);

// Streams of `device` that something was allocated on since `generation`: they had work.
// Writes at most `count` of them and returns how many there are.
size_t as_ledger_streams(struct as_ledger *ledger, int device, uint64_t generation,
                         void *streams[], size_t count);

// 0 or -ENOENT.
int as_ledger_tag(struct as_ledger *ledger, int device, const void *address,
                  enum actswap_category category);

// Says that the block is about to be let go by us: its free event, if it comes, counts
// as released. -ENOENT when it is gone already or its generation differs.
int as_ledger_expect_free(struct as_ledger *ledger, int device, const void *address,
                          uint64_t generation);

struct as_ledger_totals {
    uint64_t live_bytes, peak_bytes;
    uint64_t reserved_bytes, peak_reserved_bytes;
    uint64_t step_peak_bytes, step_peak_reserved_bytes;
    uint64_t released_bytes;
    uint64_t allocations, frees;
    uint64_t live_by_category[ACTSWAP_CATEGORIES];
    uint64_t peak_by_category[ACTSWAP_CATEGORIES]; // at the moment of peak_bytes
};

// Of one device; device -1: the sum, peaks being sums of each device's own.
void as_ledger_totals(struct as_ledger *ledger, int device,
                      struct as_ledger_totals *totals);

// Starts a new step: step peaks begin at what is live now.
void as_ledger_step(struct as_ledger *ledger);

#endif
