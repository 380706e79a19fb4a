// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_LEDGER_H
#define AS_TRACK_LEDGER_H

// The live device allocations of the framework's allocator, and what they add up to.
//
// A block is known by (device, address, generation): addresses come back, generations do
// not. The ledger is told of allocations and frees as they happen (under the framework's
// lock of that device's allocator), so no function here calls out, waits for anything but
// the ledger's own lock of that device, or fails the caller.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <actswap/actswap.h>

enum { AS_LEDGER_DEVICES = 64 }; // events of others are left out

enum as_phase {
    AS_PHASE_OTHER,
    AS_PHASE_FORWARD,
    AS_PHASE_BACKWARD,
    AS_PHASE_OPTIMIZER,
    AS_PHASE_RECOMPUTE, // a forward inside of a backward
    AS_PHASES,
};

// As the report has it: what is recomputed belongs to its backward.
const char *as_phase_name(enum as_phase phase);

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

// All that is alive on a device is freed at once.
void as_ledger_empty(struct as_ledger *ledger, int device);

// Forgets every block and figure: another source of events takes over.
void as_ledger_clear(struct as_ledger *ledger);

struct as_block {
    const void *address;
    size_t bytes;
    int device;
    uint64_t generation; // of its device: grows by one with each allocation
    enum actswap_category category;
    void *stream; // that it was allocated on
};

// The live block that holds `address`, which may point inside. Device -1 looks on every
// device. False: none.
bool as_ledger_find(struct as_ledger *ledger, int device, const void *address,
                    struct as_block *block);

// The generation that the next allocation on `device` will get: what is smaller there is
// older than now. 0 for a device that there is not.
uint64_t as_ledger_now(const struct as_ledger *ledger, int device);

// Streams of `device` that something was allocated on since `generation`: they had work.
// Writes at most `count` of them and returns how many there are. Of more than 32 streams
// those used last are remembered.
size_t as_ledger_streams(struct as_ledger *ledger, int device, uint64_t generation,
                         void *streams[], size_t count);

// 0 or -ENOENT. Device -1 as above. A block that was alive at the peak, or at samples of
// the timeline, changes its category there as well. An activation or input is told by its
// use, so that it never replaces another name that was given.
int as_ledger_tag(struct as_ledger *ledger, int device, const void *address,
                  enum actswap_category category);

// The same for a block that has no name at all.
int as_ledger_suggest(struct as_ledger *ledger, int device, const void *address,
                      enum actswap_category category);

// It is saved for backward by this stack (of place.h, or 0): as as_ledger_tag, and how long
// it waits is counted from now.
void as_ledger_save(struct as_ledger *ledger, int device, const void *address,
                    enum actswap_category category, uint32_t stack);

// It is used by a backward, which is then at work on the block that made it.
void as_ledger_use(struct as_ledger *ledger, int device, const void *address);

// The same for bytes that were elsewhere meanwhile.
void as_ledger_waited(struct as_ledger *ledger, int device, uint32_t stack,
                      uint64_t bytes, uint64_t gap_ns);

// A tensor of the script holds the block: no library made it for itself. as_ledger_looked
// says that all that are alive now were looked at.
int as_ledger_held(struct as_ledger *ledger, int device, const void *address);
void as_ledger_looked(struct as_ledger *ledger);

// What the running phase made is temporary until somebody says otherwise: when the program
// may end here.
void as_ledger_presume(struct as_ledger *ledger);

// Names by lifetime what is alive and has no name when a phase ends: what outlives the
// forward that made it is an activation, the backward a gradient, the update optimizer
// state; what a script made between them and holds is input. If no tensor of the script
// holds it, it is a library's own workspace. What is freed in the phase that made it is
// temporary: that needs no call. Such names are inferred and give way to any other.
void as_ledger_settle(struct as_ledger *ledger, enum actswap_moment moment);

// Says that the block is about to be let go by us: its free event, if it comes, counts
// as released. -ENOENT when it is gone already or its generation differs.
int as_ledger_expect_free(struct as_ledger *ledger, int device, const void *address,
                          uint64_t generation);

// Bytes alive without a name that were made in this phase.
uint64_t as_ledger_unnamed(struct as_ledger *ledger, enum as_phase phase);

struct as_ledger_totals {
    uint64_t live_bytes, peak_bytes;
    uint64_t reserved_bytes, peak_reserved_bytes;
    uint64_t step_peak_bytes, step_peak_reserved_bytes;
    uint64_t released_bytes;
    uint64_t reserved_at_peak_bytes; // when peak_bytes was reached
    uint64_t allocations, frees, untracked; // untracked: no host memory to note them
    uint64_t peak_step;
    int peak_phase, step_peak_phase; // enum as_phase
    uint64_t live_by_category[ACTSWAP_CATEGORIES];
    uint64_t peak_by_category[ACTSWAP_CATEGORIES]; // at the moment of peak_bytes
};

// Of one device; device -1: the sum, peaks being sums of each device's own.
void as_ledger_totals(struct as_ledger *ledger, int device,
                      struct as_ledger_totals *totals);

// What one category holds. `inferred_bytes` of it got their name by lifetime.
struct as_share {
    uint64_t bytes, inferred_bytes, count;
};

// The highest moment. Of several devices each one's own, summed; `device` and `t_ns` are
// of the highest.
struct as_peak {
    int device; // -1: nothing was ever allocated
    uint64_t t_ns; // as_clock_ns()
    uint32_t block; // of place.h, that was running
    struct as_share before[ACTSWAP_CATEGORIES]; // when its step began
    struct as_share at[ACTSWAP_CATEGORIES];
    struct as_share after[ACTSWAP_CATEGORIES]; // when its step ended, or now
};

void as_ledger_peak(struct as_ledger *ledger, struct as_peak *peak);

// What a device is to hold at most, 0: no matter. The first moment at which one held more is
// kept; of a budget that is set when the peak is over already, that of the peak.
struct as_excess {
    uint64_t step;
    enum as_phase phase;
    uint32_t block; // of place.h
};

void as_ledger_budget(struct as_ledger *ledger, uint64_t bytes);

uint64_t as_ledger_budget_bytes(const struct as_ledger *ledger);

// The highest level of a device since the last call for the same use, and the level now,
// which the next call's begins at.
enum as_swing_use { AS_SWING_COURSE, AS_SWING_AHEAD, AS_SWINGS };

struct as_swing {
    uint64_t peak_bytes, live_bytes;
};

struct as_swing as_ledger_swing(struct as_ledger *ledger, int device,
                                enum as_swing_use use);

// False: it never did.
bool as_ledger_excess(struct as_ledger *ledger, int device, struct as_excess *excess);

// The sum of all devices' tallies, each complete for its own peak. False: there is none.
struct as_tally;
bool as_ledger_tally(struct as_ledger *ledger, struct as_tally *tally);

// A copy of one device's timeline; its count is 0 when there is none.
struct as_timeline;
void as_ledger_timeline(struct as_ledger *ledger, int device,
                        struct as_timeline *timeline);

// What is alive now.
void as_ledger_shares(struct as_ledger *ledger, struct as_share shares[]);

// What lies between blocks: of the memory that `segments` got from the driver, all that no
// block of `ledger` covers, and the largest piece. False: blocks lie outside of any
// segment, so that this cannot be told.
struct as_holes {
    uint64_t bytes, largest_bytes;
};

bool as_ledger_holes(struct as_ledger *ledger, struct as_ledger *segments, int device,
                     struct as_holes *holes);

// Starts a new step: step peaks begin at what is live now.
void as_ledger_step(struct as_ledger *ledger);

enum as_phase as_ledger_phase(const struct as_ledger *ledger);

// Where the run is from now on: what a new peak is labelled with.
void as_ledger_place(struct as_ledger *ledger, uint64_t step, enum as_phase phase);

#endif
