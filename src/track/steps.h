// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_STEPS_H
#define AS_TRACK_STEPS_H

// What each step did. The first AS_STEPS_FIRST steps are kept, and the last
// AS_STEPS_LAST: memory is the same for any length of run.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <actswap/actswap.h>

enum { AS_STEPS_FIRST = 500, AS_STEPS_LAST = 500, AS_ROOTS = 16, AS_ROOT_BYTES = 16 };

// The bits of a loss; bytes 0: asked for, but not read.
struct as_root {
    uint8_t bits[AS_ROOT_BYTES];
    uint8_t bytes;
};

struct as_step {
    uint64_t peak_bytes, peak_reserved_bytes;
    uint64_t after_forward_bytes;
    uint64_t out_bytes, in_bytes, released_bytes;
    uint64_t end_ns; // as_clock_ns()
    uint64_t device_ns; // the same on a simulated device's clock; 0: a real one
    uint64_t time_ns; // since the step before ended, of the first: since the start
    uint64_t end_by_category[ACTSWAP_CATEGORIES]; // what was alive then
    uint64_t gradient_digest;
    bool has_digest;
    unsigned root_count; // may exceed AS_ROOTS: those beyond have no bits here
    struct as_root roots[AS_ROOTS];
};

struct as_steps;

struct as_steps *as_steps_create(void);
void as_steps_destroy(struct as_steps *steps);

// The number of steps that are over, which is the number of the current one.
uint64_t as_steps_count(struct as_steps *steps);

// Ends the current step with these figures, but time_ns, which follows from device_ns if
// there is one, else from end_ns; its roots stay.
void as_steps_end(struct as_steps *steps, const struct as_step *figures);

// Announces a root of the current step. Returns its place and the step's number, or
// -ENOSPC when the step has too many.
int as_steps_expect_root(struct as_steps *steps, uint64_t *step);

// Fills in what was announced, also after the step's end. Late news of a step that is
// no longer kept are dropped.
void as_steps_root(struct as_steps *steps, uint64_t step, int place, const void *bits,
                   size_t bytes);

// A copy of step `number`, or false when it is not kept.
bool as_steps_read(struct as_steps *steps, uint64_t number, struct as_step *step);

// The median of the time of those kept, of many steps without the first, which makes
// itself at home; 0: there was none.
uint64_t as_steps_median_ns(struct as_steps *steps);

#endif
