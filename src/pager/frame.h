// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_FRAME_H
#define AS_PAGER_FRAME_H

// The blocks that a thread is in, innermost first, each with the pages saved in it.
//
// Thread-safety: a thread sees its own frames only; the lists in them belong to the
// pager's lock.

#include <stdbool.h>
#include <stdint.h>

#include <actswap/actswap.h>

#include "pager/page.h"
#include "track/ledger.h"

struct as_pager;

struct as_frame {
    struct as_frame *outer;
    const struct as_pager *pager;
    uint64_t block;
    enum actswap_verdict verdict;
    struct as_page_list pages;
    uint64_t
        generations[AS_LEDGER_DEVICES]; // of the ledger at the entry, if it is needed
};

// -ENOMEM: then the block's exit finds no frame, and its pages count as outside.
int as_frame_push(const struct as_pager *pager, uint64_t block,
                  enum actswap_verdict verdict);

// The innermost frame of this thread that belongs to the pager, or NULL.
struct as_frame *as_frame_innermost(const struct as_pager *pager);

// The outermost one.
struct as_frame *as_frame_outermost(const struct as_pager *pager);

// True if this thread is in that block.
bool as_frame_inside(const struct as_pager *pager, uint64_t block);

// Takes the innermost frame off, for the caller to empty and free(). NULL: none.
struct as_frame *as_frame_pop(const struct as_pager *pager);

#endif
