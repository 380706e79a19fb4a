// SPDX-License-Identifier: Apache-2.0
#include "pager/streams.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct seen {
    void *stream;
    int device;
    uint64_t last;
};

struct as_streams {
    pthread_mutex_t lock;
    struct seen *seen;
    size_t count, room;
    uint64_t clock;
    bool lost; // one could not be written down
};

struct as_streams *as_streams_create(void)
{
    struct as_streams *streams = calloc(1, sizeof(*streams));
    if (streams)
        pthread_mutex_init(&streams->lock, NULL);
    return streams;
}

void as_streams_destroy(struct as_streams *streams)
{
    if (!streams)
        return;
    free(streams->seen);
    pthread_mutex_destroy(&streams->lock);
    free(streams);
}

uint64_t as_streams_now(struct as_streams *streams)
{
    pthread_mutex_lock(&streams->lock);
    uint64_t now = streams->clock;
    pthread_mutex_unlock(&streams->lock);
    return now;
}

// There are few streams, and mostly one.
static struct seen *entry(struct as_streams *streams, int device, void *stream)
{
    for (size_t i = 0; i < streams->count; i++)
        if (streams->seen[i].stream == stream && streams->seen[i].device == device)
            return &streams->seen[i];
    if (streams->count == streams->room) {
        size_t room = streams->room ? 2 * streams->room : 8;
        struct seen *grown = realloc(streams->seen, room * sizeof(*grown));
        if (!grown)
            return NULL;
        streams->seen = grown;
        streams->room = room;
    }
    struct seen *fresh = &streams->seen[streams->count++];
    *fresh = (struct seen){.stream = stream, .device = device};
    return fresh;
}

int as_streams_see(struct as_streams *streams, int device, void *stream)
{
    pthread_mutex_lock(&streams->lock);
    struct seen *seen = entry(streams, device, stream);
    if (seen)
        seen->last = streams->clock++;
    else
        streams->lost = true;
    pthread_mutex_unlock(&streams->lock);
    return seen ? 0 : -ENOMEM;
}

size_t as_streams_since(struct as_streams *streams, int device, uint64_t since,
                        void *found[], size_t count)
{
    size_t have = 0;
    pthread_mutex_lock(&streams->lock);
    for (size_t i = 0; i < streams->count; i++) {
        const struct seen *seen = &streams->seen[i];
        if (seen->device != device || seen->last < since)
            continue;
        if (have < count)
            found[have] = seen->stream;
        have++;
    }
    bool lost = streams->lost;
    pthread_mutex_unlock(&streams->lock);
    return lost ? SIZE_MAX : have;
}
