// SPDX-License-Identifier: Apache-2.0
#include "track/timeline.h"

#include <stdbool.h>
#include <stddef.h>

enum { FIRST_WIDTH_NS = 1000000 };

void as_timeline_start(struct as_timeline *timeline, uint64_t now_ns)
{
    timeline->start_ns = now_ns;
    timeline->width_ns = FIRST_WIDTH_NS;
    timeline->count = 0;
}

static void merge_pairs(struct as_timeline *timeline)
{
    struct as_sample *samples = timeline->samples;
    const uint32_t half = (timeline->count + 1) / 2;

    for (uint32_t i = 0; i < half; i++) {
        const struct as_sample *first = &samples[(size_t)2 * i];
        const bool alone = 2 * i + 1 == timeline->count;

        samples[i] =
            alone || first[0].total_bytes >= first[1].total_bytes ? first[0] : first[1];
    }
    timeline->count = half;
    timeline->width_ns *= 2;
}

void as_timeline_reach(struct as_timeline *timeline, const struct as_sample *level)
{
    uint64_t bucket = (level->t_ns - timeline->start_ns) / timeline->width_ns;

    while (bucket >= AS_TIMELINE_BUCKETS) {
        merge_pairs(timeline);
        bucket = (level->t_ns - timeline->start_ns) / timeline->width_ns;
    }
    while (timeline->count <= bucket) {
        struct as_sample *sample = &timeline->samples[timeline->count];

        *sample = *level;
        sample->t_ns = timeline->start_ns + timeline->count * timeline->width_ns;
        timeline->count++;
    }
}

void as_timeline_note(struct as_timeline *timeline, const struct as_sample *level)
{
    timeline->samples[timeline->count - 1] = *level;
}

void as_timeline_rename(struct as_timeline *timeline, uint64_t generation, uint64_t bytes,
                        enum actswap_category from, enum actswap_category to)
{
    for (uint32_t i = timeline->count; i-- > 0;) {
        struct as_sample *sample = &timeline->samples[i];

        if (sample->generation <= generation)
            break;
        sample->bytes[from] -= bytes;
        sample->bytes[to] += bytes;
    }
}
