// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_COURSE_H
#define AS_PAGER_COURSE_H

// How the memory of one device went over a step, and what may stay on it in the next.
//
// A step's points are those where a saved tensor leaves the device, or would if it did not
// stay, and where it is needed. Between two of them only the highest level counts: what the
// program itself takes on the way. From this the next step's stays are chosen so that the
// budget is kept between any two points: those saved last first, since they are away the
// shortest, and what is needed before it could leave. What comes in the same order with the
// same sizes is taken for the same; from the first tensor that is another one nothing
// stays, as in the first step.
//
// Thread-safety: none; the pager's lock.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct as_course;

// `level_bytes`: what is alive before the first forward. NULL: out of memory.
struct as_course *as_course_create(uint64_t level_bytes);
void as_course_destroy(struct as_course *course);

// Stands for a page in its own step; 0 for none.
struct as_course_ticket {
    uint64_t step;
    size_t number;
};

// A page of `bytes` is made. *stays: the plan leaves it on the device. False: from this
// one on the step is another one than the plan is for.
bool as_course_add(struct as_course *course, size_t bytes,
                   struct as_course_ticket *ticket, bool *stays);

// The page did not stay after all.
void as_course_moved(struct as_course *course, const struct as_course_ticket *ticket);

// It leaves, or would; it is needed, or over. `peak_bytes`: the highest level since the last
// point. Of several the first leaving and the last coming count.
void as_course_leave(struct as_course *course, const struct as_course_ticket *ticket,
                     uint64_t peak_bytes);
void as_course_come(struct as_course *course, const struct as_course_ticket *ticket,
                    uint64_t peak_bytes);

// The step is over: plans the next one, which begins at `level_bytes`. Returns the most that
// stayed where the budget was exceeded.
uint64_t as_course_end(struct as_course *course, uint64_t peak_bytes,
                       uint64_t level_bytes, uint64_t budget_bytes);

#endif
