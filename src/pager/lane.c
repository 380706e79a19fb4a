// SPDX-License-Identifier: Apache-2.0
#include "pager/lane.h"

#include <stdlib.h>

#include "cuda/runtime.h"

struct as_lane *as_lane_create(int device)
{
    struct as_lane *lane = calloc(1, sizeof(*lane));
    if (!lane)
        return NULL;
    pthread_mutex_init(&lane->lock, NULL);
    lane->device = device;
    if (as_cuda_stream_create(&lane->out))
        goto fail;
    if (as_cuda_stream_create(&lane->in))
        goto fail;
    return lane;
fail:
    as_lane_destroy(lane);
    return NULL;
}

static void finish_stream(void *stream)
{
    if (!stream)
        return;
    as_cuda_stream_synchronize(stream);
    as_cuda_stream_destroy(stream);
}

void as_lane_destroy(struct as_lane *lane)
{
    if (!lane)
        return;
    finish_stream(lane->out);
    finish_stream(lane->in);
    for (size_t i = 0; i < lane->count; i++)
        as_cuda_event_destroy(lane->events[i]);
    free(lane->events);
    pthread_mutex_destroy(&lane->lock);
    free(lane);
}

int as_lane_take(struct as_lane *lane, void **event)
{
    *event = NULL;
    pthread_mutex_lock(&lane->lock);
    if (lane->count)
        *event = lane->events[--lane->count];
    pthread_mutex_unlock(&lane->lock);
    return *event ? 0 : as_cuda_event_create(event);
}

static int push(struct as_lane *lane, void *event)
{
    if (lane->count == lane->room) {
        size_t room = lane->room ? 2 * lane->room : 64;
        void **grown = realloc(lane->events, room * sizeof(*grown));
        if (!grown)
            return -1;
        lane->events = grown;
        lane->room = room;
    }
    lane->events[lane->count++] = event;
    return 0;
}

void as_lane_give(struct as_lane *lane, void *event)
{
    if (!event)
        return;
    pthread_mutex_lock(&lane->lock);
    int err = push(lane, event);
    pthread_mutex_unlock(&lane->lock);
    if (err)
        as_cuda_event_destroy(event);
}
