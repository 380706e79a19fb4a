// SPDX-License-Identifier: Apache-2.0
#include "pager/streams.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "cuda/runtime.h"
#include "pager/lane.h"

struct known {
    void *stream;
    int device;
    bool made, named;
    uint64_t last; // naming
    uint64_t born; // when so many had ended: another may get the handle of one
};

// What a stream left behind. An event that has passed is kept for the next one.
struct ended {
    void *event;
    int device;
    bool passed;
};

struct as_streams {
    pthread_mutex_t lock;
    pthread_cond_t quiet; // no visit is under way
    unsigned visits;
    struct known *known;
    size_t count, room;
    struct ended *ended;
    size_t ended_count, ended_room;
    uint64_t clock, ends;
    bool lost; // one could not be written down
};

struct as_streams *as_streams_create(void)
{
    struct as_streams *streams = calloc(1, sizeof(*streams));
    if (!streams)
        return NULL;
    pthread_mutex_init(&streams->lock, NULL);
    pthread_cond_init(&streams->quiet, NULL);
    return streams;
}

void as_streams_destroy(struct as_streams *streams)
{
    if (!streams)
        return;
    for (size_t i = 0; i < streams->ended_count; i++)
        as_cuda_event_destroy(streams->ended[i].event);
    free(streams->ended);
    free(streams->known);
    pthread_cond_destroy(&streams->quiet);
    pthread_mutex_destroy(&streams->lock);
    free(streams);
}

// --- Streams

static struct known *find(struct as_streams *streams, int device, const void *stream)
{
    for (size_t i = 0; i < streams->count; i++)
        if (streams->known[i].stream == stream &&
            (device < 0 || streams->known[i].device == device))
            return &streams->known[i];
    return NULL;
}

static void *grow(void *array, size_t count, size_t *room, size_t entry_bytes)
{
    if (array && count < *room)
        return array;
    size_t more = *room ? 2 * *room : 8;
    void *grown = realloc(array, more * entry_bytes);
    if (grown)
        *room = more;
    return grown;
}

// There are few streams, and mostly one.
static struct known *entry(struct as_streams *streams, int device, void *stream)
{
    struct known *known = find(streams, device, stream);
    if (known)
        return known;
    known = grow(streams->known, streams->count, &streams->room, sizeof(*known));
    if (!known) {
        streams->lost = true;
        return NULL;
    }
    streams->known = known;
    known += streams->count++;
    *known = (struct known){.stream = stream, .device = device, .born = streams->ends};
    return known;
}

void as_streams_made(struct as_streams *streams, int device, void *stream)
{
    pthread_mutex_lock(&streams->lock);
    struct known *known = entry(streams, device, stream);
    if (known)
        known->made = true;
    pthread_mutex_unlock(&streams->lock);
}

bool as_streams_knows(struct as_streams *streams, int device, const void *stream)
{
    pthread_mutex_lock(&streams->lock);
    const struct known *known = find(streams, device, stream);
    bool made = known && known->made;
    pthread_mutex_unlock(&streams->lock);
    return made;
}

uint64_t as_streams_ends(struct as_streams *streams)
{
    pthread_mutex_lock(&streams->lock);
    const uint64_t ends = streams->ends;
    pthread_mutex_unlock(&streams->lock);
    return ends;
}

bool as_streams_lives(struct as_streams *streams, int device, const void *stream,
                      uint64_t ends)
{
    pthread_mutex_lock(&streams->lock);
    const struct known *known = find(streams, device, stream);
    const bool lives = known && known->born <= ends;
    pthread_mutex_unlock(&streams->lock);
    return lives;
}

uint64_t as_streams_now(struct as_streams *streams)
{
    pthread_mutex_lock(&streams->lock);
    uint64_t now = streams->clock;
    pthread_mutex_unlock(&streams->lock);
    return now;
}

int as_streams_see(struct as_streams *streams, int device, void *stream)
{
    pthread_mutex_lock(&streams->lock);
    struct known *known = entry(streams, device, stream);
    if (known) {
        known->named = true;
        known->last = streams->clock++;
    }
    pthread_mutex_unlock(&streams->lock);
    return known ? 0 : -ENOMEM;
}

static bool named_since(const struct known *known, int device, uint64_t since)
{
    return known->device == device && known->named && known->last >= since;
}

size_t as_streams_since(struct as_streams *streams, int device, uint64_t since,
                        void *found[], size_t count)
{
    size_t have = 0;
    pthread_mutex_lock(&streams->lock);
    for (size_t i = 0; i < streams->count; i++) {
        if (!named_since(&streams->known[i], device, since))
            continue;
        if (have < count)
            found[have] = streams->known[i].stream;
        have++;
    }
    bool lost = streams->lost;
    pthread_mutex_unlock(&streams->lock);
    return lost ? SIZE_MAX : have;
}

// --- Ends

// An event for what the stream has in flight, on its device; NULL: nothing is.
static void *record_rest(void *stream, int device, void *event)
{
    struct as_before before;
    int err = as_device_enter(device, &before);
    bool idle = !err && (as_stream_captured(stream) || !as_cuda_stream_query(stream));
    if (!err && !idle && !event)
        err = as_cuda_event_create(&event);
    if (!err && !idle)
        err = as_cuda_event_record(event, stream);
    if (err)
        as_cuda_stream_synchronize(stream);
    as_device_leave(&before);
    if (!err && !idle)
        return event;
    if (event)
        as_cuda_event_destroy(event);
    return NULL;
}

// Takes an event that has passed, or NULL. The lock is held, and there is no visit.
static void *take_passed(struct as_streams *streams, int device)
{
    for (size_t i = 0; i < streams->ended_count; i++) {
        struct ended *ended = &streams->ended[i];
        if (!ended->passed || ended->device != device)
            continue;
        void *event = ended->event;
        *ended = streams->ended[--streams->ended_count];
        return event;
    }
    return NULL;
}

static void add_ended(struct as_streams *streams, int device, void *event)
{
    pthread_mutex_lock(&streams->lock);
    struct ended *ended =
        grow(streams->ended, streams->ended_count, &streams->ended_room, sizeof(*ended));
    if (ended) {
        streams->ended = ended;
        ended[streams->ended_count++] = (struct ended){.event = event, .device = device};
    } else {
        streams->lost = true;
    }
    pthread_mutex_unlock(&streams->lock);
}

// Nothing that a visitor holds changes between this and the unlocking.
static struct known *lock_and_find(struct as_streams *streams, const void *stream)
{
    pthread_mutex_lock(&streams->lock);
    while (streams->visits)
        pthread_cond_wait(&streams->quiet, &streams->lock);
    return stream ? find(streams, -1, stream) : NULL;
}

// The event is there before the stream goes: each visit finds one of them.
void as_streams_ending(struct as_streams *streams, void *stream)
{
    struct known *known = lock_and_find(streams, stream);
    bool found = known;
    int device = found ? known->device : 0;
    void *event = found ? take_passed(streams, device) : NULL;
    pthread_mutex_unlock(&streams->lock);
    if (!found)
        return;
    event = record_rest(stream, device, event);
    if (event)
        add_ended(streams, device, event);
    known = lock_and_find(streams, stream);
    assert(!streams->visits);
    streams->ends++;
    if (known)
        *known = streams->known[--streams->count];
    pthread_mutex_unlock(&streams->lock);
}

// --- Visits

static void begin_visit(struct as_streams *streams)
{
    pthread_mutex_lock(&streams->lock);
    streams->visits++;
    pthread_mutex_unlock(&streams->lock);
}

static void end_visit(struct as_streams *streams)
{
    pthread_mutex_lock(&streams->lock);
    if (--streams->visits == 0)
        pthread_cond_broadcast(&streams->quiet);
    pthread_mutex_unlock(&streams->lock);
}

// The next stream from *at on. Others may be added behind meanwhile.
static bool next_stream(struct as_streams *streams, int device, uint64_t since,
                        size_t *at, void **stream)
{
    bool found = false;
    pthread_mutex_lock(&streams->lock);
    while (!found && *at < streams->count) {
        const struct known *known = &streams->known[(*at)++];
        *stream = known->stream;
        found = known->stream && known->device == device &&
                (known->made || named_since(known, device, since));
    }
    pthread_mutex_unlock(&streams->lock);
    return found;
}

static int visit_streams(struct as_streams *streams, int device, uint64_t since,
                         const struct as_streams_visitor *visitor)
{
    void *stream;
    size_t at = 0;
    int err = visitor->stream(NULL, visitor->context);
    while (!err && next_stream(streams, device, since, &at, &stream))
        err = visitor->stream(stream, visitor->context);
    return err;
}

static bool next_event(struct as_streams *streams, int device, size_t *at, void **event)
{
    bool found = false;
    pthread_mutex_lock(&streams->lock);
    while (!found && *at < streams->ended_count) {
        const struct ended *ended = &streams->ended[(*at)++];
        *event = ended->event;
        found = ended->device == device && !ended->passed;
    }
    pthread_mutex_unlock(&streams->lock);
    return found;
}

static void note_passed(struct as_streams *streams, const void *event)
{
    pthread_mutex_lock(&streams->lock);
    for (size_t i = 0; i < streams->ended_count; i++)
        if (streams->ended[i].event == event)
            streams->ended[i].passed = true;
    pthread_mutex_unlock(&streams->lock);
}

static int visit_ended(struct as_streams *streams, int device,
                       const struct as_streams_visitor *visitor)
{
    void *event;
    size_t at = 0;
    int err = 0;
    while (!err && next_event(streams, device, &at, &event)) {
        if (as_cuda_event_query(event) == 0)
            note_passed(streams, event);
        else
            err = visitor->event(event, visitor->context);
    }
    return err;
}

int as_streams_visit(struct as_streams *streams, int device, uint64_t since,
                     const struct as_streams_visitor *visitor)
{
    begin_visit(streams);
    int err = visit_streams(streams, device, since, visitor);
    if (!err)
        err = visit_ended(streams, device, visitor);
    pthread_mutex_lock(&streams->lock);
    bool lost = streams->lost;
    pthread_mutex_unlock(&streams->lock);
    end_visit(streams);
    return lost ? -ENOMEM : err;
}
