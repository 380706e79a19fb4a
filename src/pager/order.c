// SPDX-License-Identifier: Apache-2.0
#include "pager/order.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 1 << 20 }; // of a step without end no more are remembered

void as_order_finish(struct as_order *order)
{
    free(order->ranks);
    free(order->coming);
    *order = (struct as_order){0};
}

uint32_t as_order_add(struct as_order *order)
{
    return order->saved < NUMBERS_MAX ? order->saved++ : NUMBERS_MAX;
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

void as_order_need(struct as_order *order, uint32_t number)
{
    if (number < order->saved && !make_room(order) && !order->coming[number])
        order->coming[number] = ++order->needed;
}

uint64_t as_order_rank(const struct as_order *order, uint32_t number)
{
    const uint32_t rank = number < order->rank_count ? order->ranks[number] : 0;
    return rank ? rank : UINT64_MAX - number;
}

void as_order_step(struct as_order *order)
{
    free(order->ranks);
    order->ranks = order->coming;
    order->rank_count =
        order->coming_room < order->saved ? order->coming_room : order->saved;
    order->coming = NULL;
    order->coming_room = 0;
    order->saved = order->needed = 0;
}
