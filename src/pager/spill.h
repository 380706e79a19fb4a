// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_SPILL_H
#define AS_PAGER_SPILL_H

// Pinned memory that is full goes on to the disk.
//
// What was saved first is needed last, so its bytes are written first, and once they are,
// its buffer is another page's. From the first time that pinned memory was full some pages
// are written ahead, so that a save finds a buffer without waiting; when it does not, it
// waits for the disk, as a tensor that stays may end the run. In a backward what is on the
// disk alone is read ahead into buffers as they come free, in the order in which the last
// step needed it (order.h); in the first step, what was saved last. A page that has both
// copies is not written again.
//
// Thread-safety: every function may be called from any thread; the lock is not held but
// where that is said.

#include <stdbool.h>
#include <stddef.h>

struct actswap_page;
struct as_buffer;
struct as_pager;

// A buffer of at least `bytes` whose page is on the disk. -ENOMEM: there is none to be had.
int as_spill_take(struct as_pager *pager, size_t bytes, struct as_buffer *buffer);

// Brings the bytes of a page that this thread brings in back into a buffer. `loose`: it is
// pageable memory, the caller's to free, as there was no buffer. -ENOMEM or -EIO.
int as_spill_fetch(struct as_pager *pager, struct actswap_page *page, void **loose);

// Begins to read what is needed next, as far as there is room.
void as_spill_ahead(struct as_pager *pager);

// The page is over and in no list: gives back its place on the disk, and its buffer to the
// slab or to whoever still works on it. `buffer`: the page's, host NULL: none. The lock is
// held. True: the slab has a buffer more.
bool as_spill_forget(struct as_pager *pager, struct actswap_page *page,
                     struct as_buffer *buffer);

#endif
