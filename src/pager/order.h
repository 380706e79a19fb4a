// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_ORDER_H
#define AS_PAGER_ORDER_H

// In which order a step needed its pages, for the next step to know beforehand. Pages are
// told apart by their number in the order of saving.
//
// Thread-safety: none; the pager's lock.

#include <stddef.h>
#include <stdint.h>

struct actswap_page;

struct as_order {
    uint32_t *ranks; // of the last step, by number; 0: it was not needed
    uint32_t *coming; // of this one
    size_t rank_count, coming_room;
    uint32_t *sequence; // numbers of the last step, by rank
    size_t sequence_count;
    struct actswap_page **pages; // of this step, by number; NULL: it is over
    size_t page_room;
    uint32_t saved, needed; // in this step
};

// Zero bytes are an order of nothing.
void as_order_finish(struct as_order *order);

// A page is made. Returns its number.
uint32_t as_order_add(struct as_order *order, struct actswap_page *page);

// A page of this step is over.
void as_order_over(struct as_order *order, uint32_t number);

// A page of this step is needed for the first time. Returns how many were so far, with it;
// 0: it is not counted.
uint32_t as_order_need(struct as_order *order, uint32_t number);

// The page of this step that was needed as number `rank` (from 1) in the last one, or that
// has this number. NULL: there is none, or it is over.
struct actswap_page *as_order_page(const struct as_order *order, uint64_t rank);
struct actswap_page *as_order_saved(const struct as_order *order, uint32_t number);

// When it was needed in the last step, compared with others. What was not known then comes
// behind, and there in the reverse of saving.
uint64_t as_order_rank(const struct as_order *order, uint32_t number);

// The step is over.
void as_order_step(struct as_order *order);

#endif
