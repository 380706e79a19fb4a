// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_KEEP_H
#define AS_PAGER_KEEP_H

// Which pages stay on the device because the budget has room for them.
//
// Without a budget none does, nor in the first step: nothing is known of it yet. Then the
// last step's course (course.h) says which. They have no copy until a step turns out to be
// another one than the last, or goes over the budget: then all of them are copied and let
// go.
//
// Thread-safety: every function may be called from any thread. The lock is held where that
// is said.

#include <stdbool.h>
#include <stddef.h>

struct actswap_page;
struct as_pager;

// A page is made that takes `bytes` of the allocator. True: it stays, without a copy. False:
// it is to be copied out; those that stayed so far may have been let go.
bool as_keep_ask(struct as_pager *pager, struct actswap_page *page, size_t bytes);

// It was let go.
void as_keep_left(struct as_pager *pager, struct actswap_page *page);

// It would be let go now if it did not stay. False: it does not.
bool as_keep_stays(struct as_pager *pager, struct actswap_page *page);

// It is needed, and about to be brought in if it is not there.
void as_keep_needed(struct as_pager *pager, struct actswap_page *page);

// It is over, needed or not. The lock is held.
void as_keep_over(struct as_pager *pager, struct actswap_page *page);

// If the budget was exceeded, nothing stays any more in this step.
void as_keep_check(struct as_pager *pager);

// A forward begins; the lock is held.
void as_keep_begin(struct as_pager *pager);

// A step is over: plans the next one.
void as_keep_end_step(struct as_pager *pager);

#endif
