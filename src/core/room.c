// SPDX-License-Identifier: Apache-2.0
#include "core/room.h"

#include <time.h>

enum { PAUSE_NS = 100000, PAUSES = 5000 };

static uint64_t whole(uint64_t bytes)
{
    return bytes > UINT64_MAX - AS_ROOM_PAGE
               ? bytes
               : (bytes + AS_ROOM_PAGE - 1) / AS_ROOM_PAGE * AS_ROOM_PAGE;
}

static bool exceeds(uint64_t limit_bytes, uint64_t used_bytes, uint64_t more_bytes)
{
    return used_bytes > limit_bytes || more_bytes > limit_bytes - used_bytes;
}

// One request, while it is not decided.
struct request {
    struct as_room *room;
    uint64_t limit_bytes, bytes, claim_bytes;
    uint64_t used_bytes, settled; // when it was last tried
    int pauses;
};

// Until a claim is over, or enough of them were withdrawn. False: it took too long.
static bool wait_for_others(struct request *request)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const struct as_room *room = request->room;

    for (; request->pauses < PAUSES; request->pauses++) {
        const uint64_t all_bytes =
            atomic_load(&room->claimed_bytes) + request->claim_bytes;

        if (atomic_load(&room->settled) != request->settled ||
            !exceeds(request->limit_bytes, request->used_bytes, all_bytes))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static enum as_room_answer alone(const struct request *request)
{
    const uint64_t limit_bytes = request->limit_bytes, used_bytes = request->used_bytes;
    const uint64_t least_bytes = request->bytes / AS_ROOM_PAGE * AS_ROOM_PAGE;

    if (!exceeds(limit_bytes, used_bytes, request->claim_bytes))
        return AS_ROOM_FITS;
    return least_bytes == request->bytes || exceeds(limit_bytes, used_bytes, least_bytes)
               ? AS_ROOM_FULL
               : AS_ROOM_UNSURE;
}

// True if others' claims alone are in the way: they may be in use by now, and then count
// twice. Nothing is claimed then.
static bool is_crowded(struct request *request, const struct as_room_meter *meter,
                       enum as_room_answer *answer)
{
    struct as_room *room = request->room;

    request->settled = atomic_load(&room->settled);
    const uint64_t others_bytes =
        atomic_fetch_add(&room->claimed_bytes, request->claim_bytes);
    const bool known = meter->used(meter->context, &request->used_bytes);
    *answer = known ? alone(request) : AS_ROOM_UNKNOWN;
    const bool crowded = *answer == AS_ROOM_FITS && others_bytes &&
                         exceeds(request->limit_bytes, request->used_bytes,
                                 request->claim_bytes + others_bytes);

    if (crowded || *answer == AS_ROOM_FULL || *answer == AS_ROOM_UNKNOWN)
        atomic_fetch_sub(&room->claimed_bytes, request->claim_bytes);
    return crowded;
}

enum as_room_answer as_room_claim(struct as_room *room, uint64_t limit_bytes,
                                  uint64_t bytes, const struct as_room_meter *meter)
{
    struct request request = {.room = room,
                              .limit_bytes = limit_bytes,
                              .bytes = bytes,
                              .claim_bytes = whole(bytes)};
    enum as_room_answer answer;

    while (is_crowded(&request, meter, &answer)) {
        if (!wait_for_others(&request))
            return AS_ROOM_FULL;
    }
    return answer;
}

void as_room_settle(struct as_room *room, uint64_t bytes)
{
    atomic_fetch_sub(&room->claimed_bytes, whole(bytes));
    atomic_fetch_add(&room->settled, 1);
}
