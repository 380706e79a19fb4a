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

// For an allocator that keeps nothing back: what it has taken is what is alive.
#define AS_LEDGER_ALL_LIVE SIZE_MAX

// `reserved_bytes` is the allocator's total on that device after the event, `stream` the
// one that the memory belongs to: the allocator hands it out again to that one only.
//
// A second allocation at a live address means that the free was missed: it is made up
// for. A free of an unknown address changes nothing but `reserved_bytes`, and false is
// returned. Device -1 looks on every device. A `generation` other than 0 must be the
// block's: the address may have been handed out again meanwhile.
void as_ledger_add(struct as_ledger *ledger, int device, const void *address,
                   size_t bytes, size_t reserved_bytes, void *stream);
bool as_ledger_remove(struct as_ledger *ledger, int device, const void *address,
                      uint64_t generation, size_t reserved_bytes);

// Forgets every block and figure: another source of events takes over.
void as_ledger_clear(struct as_ledger *ledger);

struct as_block {
    const void *address;
    size_t bytes;
    int device;
    uint64_t generation; // of the whole ledger: grows by one with each allocation
    enum actswap_category category;
    void *stream; // that it was allocated on
};

// The live block that holds `address`, which may point inside. Device -1 looks on every
// device. False: none.
bool as_ledger_find(struct as_ledger *ledger, int device, const void *address,
                    struct as_block *block);

// The generation that the next allocation will get: what is smaller is older than now.
uint64_t as_ledger_now(const struct as_ledger *ledger);

// Streams of `device` that something was allocated on since `generation`: they had work.
// Writes at most `count` of them and returns how many there are. Of more than 32 streams
// those used last are remembered.
size_t as_ledger_streams(struct as_ledger *ledger, int device, uint64_t generation,
                         void *streams[], size_t count);

// 0 or -ENOENT. Device -1 as above. A block that was alive at the peak changes its
// category there as well.
// An activation is told by its use, so that it never replaces another name.
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
    uint64_t allocations, frees, untracked; // untracked: no host memory to note them
    uint64_t peak_step;
    int peak_phase; // enum as_phase
    uint64_t live_by_category[ACTSWAP_CATEGORIES];
    uint64_t peak_by_category[ACTSWAP_CATEGORIES]; // at the moment of peak_bytes
};

// Of one device; device -1: the sum, peaks being sums of each device's own.
void as_ledger_totals(struct as_ledger *ledger, int device,
                      struct as_ledger_totals *totals);

// Starts a new step: step peaks begin at what is live now.
void as_ledger_step(struct as_ledger *ledger);

enum as_phase {
    AS_PHASE_OTHER,
    AS_PHASE_FORWARD,
    AS_PHASE_BACKWARD,
    AS_PHASE_OPTIMIZER,
    AS_PHASES,
};

const char *as_phase_name(enum as_phase phase);

// Where the run is from now on: what a new peak is labelled with.
void as_ledger_place(struct as_ledger *ledger, uint64_t step, enum as_phase phase);

#endif
