// SPDX-License-Identifier: Apache-2.0
#ifndef AS_HOOKS_CUDA_CARD_H
#define AS_HOOKS_CUDA_CARD_H

// The room on a card that is to be smaller than it is (ACTSWAP_MEMORY), in front of the
// calls that take memory. What others took counts, as the card itself is asked.
//
// A call that finds no room goes to the real function all the same, with a size that no
// card has: so it is refused as a small card would refuse it, by the same error, in the
// order in which arguments are looked at, and the runtime remembers the error itself.
//
// Between as_hook_enter() and as_hook_leave(). Thread-safety: any thread.

#include <stdbool.h>
#include <stddef.h>

#include "core/room.h"

enum as_card_way {
    AS_CARD_RUNTIME, // on the runtime's current device
    AS_CARD_DRIVER, // on that of the current context
    AS_CARD_HANDLE, // on a device of choice
};

// {.bytes = N} claims nothing.
struct as_claim {
    size_t bytes; // to ask the real function for
    size_t claimed_bytes;
    int device;
    enum as_card_way way;
    enum as_room_answer answer;
    const void *before; // what the program's pointer was, with AS_ROOM_UNSURE
    const void *caller;
};

// `device` counts for AS_CARD_HANDLE alone, `address` is where the program wants its
// pointer. Without a limit, a pointer or bytes nothing is claimed and nobody asked.
struct as_claim as_card_claim(enum as_card_way way, int device, const void *address,
                              size_t bytes, const void *caller);

// The same for memory that comes in the stream's order, from a pool (NULL: that of the
// current device): what the pool has taken and not handed out is room as well, and as a full
// card does it waits for what is still to be freed on the stream.
struct as_claim as_card_claim_pool(enum as_card_way way, void *pool, void *stream,
                                   const void *address, size_t bytes, const void *caller);

// What is given may be more than was asked for.
void as_card_doubt(struct as_claim *claim, const void *address);

// After the real call, whatever it said. False: what it gave was more than the card has
// left; give it back, restore the pointer and ask for as_card_too_much() instead.
bool as_card_settle_claim(struct as_claim *claim, bool given);

static inline bool as_card_settle(struct as_claim *claim, bool given)
{
    return claim->answer == AS_ROOM_UNKNOWN || as_card_settle_claim(claim, given);
}

size_t as_card_too_much(void);

#endif
