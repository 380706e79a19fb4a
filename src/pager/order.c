// SPDX-License-Identifier: Apache-2.0
#include "pager/order.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 1 << 20 }; // of a step without end no more are remembered

void as_order_finish(struct as_order *order)
{
    free(order->ranks);
    free(order->coming);
    free(order->sequence);
    free(order->pages);
    *order = (struct as_order){0};
}

#define SLOT sizeof(struct actswap_page *)

static void remember(struct as_order *order, uint32_t number, struct actswap_page *page)
{
    if (number >= order->page_room) {
        size_t room = order->page_room ? order->page_room : 256;
        while (room <= number)
            room *= 2;
        struct actswap_page **grown = realloc(order->pages, room * SLOT);
        if (!grown)
            return;
        memset(grown + order->page_room, 0, (room - order->page_room) * SLOT);
        order->pages = grown;
        order->page_room = room;
    }
    order->pages[number] = page;
}

uint32_t as_order_add(struct as_order *order, struct actswap_page *page)
{
    if (order->saved == NUMBERS_MAX)
        return NUMBERS_MAX;
    remember(order, order->saved, page);
    return order->saved++;
}

void as_order_over(struct as_order *order, uint32_t number)
{
    if (number < order->page_room)
        order->pages[number] = NULL;
}

struct actswap_page *as_order_saved(const struct as_order *order, uint32_t number)
{
    return number < order->saved && number < order->page_room ? order->pages[number]
                                                              : NULL;
}

struct actswap_page *as_order_page(const struct as_order *order, uint64_t rank)
{
    return rank && rank <= order->sequence_count
               ? as_order_saved(order, order->sequence[rank - 1])
               : NULL;
}

static int make_room(struct as_order *order)
{
    if (order->coming_room >= order->saved)
        return 0;
    size_t room = order->coming_room ? order->coming_room : 256;
    while (room < order->saved)
        room *= 2;
    uint32_t *grown = realloc(order->coming, room * sizeof(*grown));
    if (!grown)
        return -1;
    memset(grown + order->coming_room, 0, (room - order->coming_room) * sizeof(*grown));
    order->coming = grown;
    order->coming_room = room;
    return 0;
}

uint32_t as_order_need(struct as_order *order, uint32_t number)
{
    if (number >= order->saved || make_room(order) || order->coming[number])
        return 0;
    return order->coming[number] = ++order->needed;
}

uint64_t as_order_rank(const struct as_order *order, uint32_t number)
{
    const uint32_t rank = number < order->rank_count ? order->ranks[number] : 0;
    return rank ? rank : UINT64_MAX - number;
}

static void write_sequence(struct as_order *order)
{
    free(order->sequence);
    order->sequence = calloc(order->needed ? order->needed : 1, sizeof(uint32_t));
    order->sequence_count = order->sequence ? order->needed : 0;
    for (uint32_t i = 0; i < order->rank_count && order->sequence; i++)
        if (order->ranks[i])
            order->sequence[order->ranks[i] - 1] = i;
}

void as_order_step(struct as_order *order)
{
    free(order->ranks);
    order->ranks = order->coming;
    order->rank_count =
        order->coming_room < order->saved ? order->coming_room : order->saved;
    order->coming = NULL;
    order->coming_room = 0;
    write_sequence(order);
    if (order->pages)
        memset(order->pages, 0, order->page_room * sizeof(struct actswap_page *));
    order->saved = order->needed = 0;
}
