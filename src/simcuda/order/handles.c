// SPDX-License-Identifier: Apache-2.0
#include "simcuda/order/handles.h"

#include <stdbool.h>
#include <stdlib.h>

enum { USES_SHIFT = 32, INDEX_SHIFT = 4, USES_MASK = 0x7fff };

static bool grow(struct sim_handles *handles)
{
    const uint32_t capacity = handles->capacity ? handles->capacity * 2 : 64;
    struct sim_slot *slots = realloc(handles->slots, capacity * sizeof(*slots));

    if (!slots)
        return false;
    handles->slots = slots;
    handles->capacity = capacity;
    return true;
}

static struct sim_slot *slot_of(const struct sim_handles *handles, const void *handle)
{
    const uintptr_t value = (uintptr_t)handle;
    const uint32_t index = (uint32_t)value >> INDEX_SHIFT;

    if (!index || index > handles->count ||
        (value & ((1u << INDEX_SHIFT) - 1)) != handles->tag)
        return NULL;

    struct sim_slot *slot = &handles->slots[index - 1];

    return slot->object && value >> USES_SHIFT == slot->uses ? slot : NULL;
}

void *sim_handles_add(struct sim_handles *handles, void *object)
{
    uint32_t index;

    if (handles->first_free) {
        index = handles->first_free - 1;
        handles->first_free = handles->slots[index].next_free;
    } else {
        if (handles->count == handles->capacity && !grow(handles))
            return NULL;
        index = handles->count++;
        handles->slots[index] = (struct sim_slot){.object = NULL};
    }
    handles->slots[index].object = object;

    const uintptr_t value = (uintptr_t)handles->slots[index].uses << USES_SHIFT |
                            (uintptr_t)(index + 1) << INDEX_SHIFT | handles->tag;

    return (void *)value; // NOLINT(performance-no-int-to-ptr)
}

void *sim_handles_find(const struct sim_handles *handles, const void *handle)
{
    const struct sim_slot *slot = slot_of(handles, handle);

    return slot ? slot->object : NULL;
}

void sim_handles_remove(struct sim_handles *handles, const void *handle)
{
    struct sim_slot *slot = slot_of(handles, handle);

    if (!slot)
        return;
    slot->object = NULL;
    slot->uses = (slot->uses + 1) & USES_MASK;
    slot->next_free = handles->first_free;
    handles->first_free = (uint32_t)(slot - handles->slots) + 1;
}
