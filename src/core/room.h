// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CORE_ROOM_H
#define AS_CORE_ROOM_H

// What is left of a limit that several threads take from at once.
//
// How much is taken only somebody else knows, who may be asked at any time and learns of
// what was taken when the taking is over. So a taker claims first, takes, and settles its
// claim; who asks in between counts the claims of all. No lock is held meanwhile: a
// thread waits for others' takings only where their outcome decides about its own, and
// for a second at most.
//
// What is taken comes in whole pages. A request that is no whole number of them may find
// its place in one that is taken already, which shows only afterwards.
//
// Thread-safety: every function may be called from any thread.

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { AS_ROOM_PAGE = 2 << 20 };

struct as_room {
    _Atomic uint64_t claimed_bytes;
    _Atomic uint64_t settled; // claims so far that are over
};

enum as_room_answer {
    AS_ROOM_UNKNOWN, // nothing was claimed: how much is taken cannot be said
    AS_ROOM_FITS, // take, then settle
    AS_ROOM_UNSURE, // take, see whether the limit is kept, and settle
    AS_ROOM_FULL, // nothing was claimed
};

// How much is taken now. False: cannot be said.
typedef bool as_room_used_fn(void *context, uint64_t *used_bytes);

struct as_room_meter {
    as_room_used_fn *used;
    void *context;
};

enum as_room_answer as_room_claim(struct as_room *room, uint64_t limit_bytes,
                                  uint64_t bytes, const struct as_room_meter *meter);

// `bytes` as they were claimed.
void as_room_settle(struct as_room *room, uint64_t bytes);

#endif
