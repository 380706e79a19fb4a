// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CHECK_SHADOW_H
#define AS_SIMCUDA_CHECK_SHADOW_H

// Who last wrote each byte, and who has read it since.
//
// Bytes that were always treated alike share a cell. A cell forgets what the program knows
// to be done, as nothing can race with that any more; one that remembers nothing is
// dropped from time to time, so that memory stays bounded by what is in flight. Accesses
// that touch only some of their bytes (comb.h) may share a cell and not meet; of many in
// one cell the next is taken to touch all of it.
//
// Threads of the program are not compared with each other.
//
// Thread-safety: none; the queue's lock covers it. Out of memory ends the process.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simcuda/check/clock.h"
#include "simcuda/check/comb.h"

// One access, as far as it is remembered.
struct sim_note {
    unsigned lane : 30;
    unsigned host : 1; // by the program itself
    unsigned write : 1;
    unsigned site; // whose it was (report.h)
    uint64_t epoch;
    size_t bytes; // all of the access
    const struct sim_comb *comb; // which of them; NULL: all
    uintptr_t start; // of a comb, otherwise 0
};

// What may be read there.
enum sim_content {
    SIM_CONTENT_ANY, // something was written, or nothing is known
    SIM_CONTENT_FRESH, // allocated, and nobody has written yet
    SIM_CONTENT_FREED,
};

enum sim_clash {
    SIM_CLASH_WRITE, // with an earlier write
    SIM_CLASH_READ, // a write with an earlier read
    SIM_CLASH_FRESH, // a read of what nobody has written
    SIM_CLASH_FREED, // a use of what was freed
    SIM_CLASHES,
};

struct sim_found {
    enum sim_clash clash;
    bool has_before;
    struct sim_note before; // with which; FREED: the last write
    uintptr_t address;
    bool reused; // the memory was freed and given out again between the two
    bool told; // it is over, and a thread of the program knows that
    bool again; // not the first of its kind that the access finds
};

struct sim_look {
    struct sim_note note;
    const struct sim_clock *past; // of the access
    bool write;
    bool contents; // what may be read there matters
    // Of an access that is seen when it is made, not when it is submitted: whether what
    // is remembered comes after it. NULL: nothing does.
    bool (*is_later)(void *arg, const struct sim_note *note);
    // Called for each clash, but not twice in a row for the same kind and site.
    void (*found)(void *arg, const struct sim_found *found);
    void *arg;
};

// Compares the access with what is remembered, then remembers it.
void sim_shadow_access(uintptr_t start, size_t bytes, const struct sim_look *look);

// The bytes belong to somebody else from now on, or to nobody; what was done to them stays
// remembered.
void sim_shadow_allocate(uintptr_t start, size_t bytes);
void sim_shadow_free(uintptr_t start, size_t bytes);

// Nothing is remembered of the bytes.
void sim_shadow_forget(uintptr_t start, size_t bytes);

// Drops cells that remember nothing, which happens by itself from time to time.
void sim_shadow_sweep(void);

// How many cells there are.
size_t sim_shadow_count(void);

#endif
