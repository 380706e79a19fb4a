// SPDX-License-Identifier: Apache-2.0
#include "pager/held.h"

#include <stdlib.h>

enum { PAGES_MAX = 1 << 20 }; // of a step without end no more are remembered

void as_held_finish(struct as_held *held)
{
    free(held->last.pages);
    free(held->coming.pages);
    *held = (struct as_held){0};
}

static bool make_room(struct as_held_step *step, uint32_t number)
{
    if (number < step->room)
        return true;
    if (number >= PAGES_MAX)
        return false;
    size_t room = step->room ? step->room : 256;
    while (room <= number)
        room *= 2;
    struct as_held_page *grown = realloc(step->pages, room * sizeof(*grown));
    if (!grown)
        return false;
    step->pages = grown;
    step->room = room;
    return true;
}

bool as_held_add(struct as_held *held, uint32_t number, size_t bytes, uint32_t place)
{
    struct as_held_step *coming = &held->coming;
    if (number != coming->count || !make_room(coming, number))
        return false;
    coming->pages[coming->count++] = (struct as_held_page){bytes, place, false};
    const struct as_held_page *before =
        number < held->last.count ? &held->last.pages[number] : NULL;
    return before && before->held && before->bytes == bytes && before->place == place;
}

void as_held_found(struct as_held *held, uint32_t number)
{
    if (number < held->coming.count)
        held->coming.pages[number].held = true;
}

void as_held_end_step(struct as_held *held)
{
    const struct as_held_step over = held->coming;
    held->coming = held->last;
    held->coming.count = 0;
    held->last = over;
}
