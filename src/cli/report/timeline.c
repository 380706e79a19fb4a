// SPDX-License-Identifier: Apache-2.0
#include "cli/report/timeline.h"

#include "cli/field.h"
#include "cli/report/category.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t *read_column(json_t *list, size_t rows)
{
    if (json_array_size(list) != rows)
        return NULL;
    uint64_t *const column = calloc(rows, sizeof(*column));
    for (size_t n = 0; column && n < rows; n++) {
        const uint64_t value = as_field_number(json_array_get(list, n), "");
        column[n] = value == AS_NOT_KNOWN ? 0 : value;
    }
    return column;
}

// Keeps the order of the categories' table, whatever the order of the file.
static void insert(struct as_timeline *timeline, const char *category, uint64_t *bytes)
{
    size_t place = timeline->series_count++;
    for (; place > 0 && as_category_order(timeline->series[place - 1].category) >
                            as_category_order(category);
         place--)
        timeline->series[place] = timeline->series[place - 1];
    timeline->series[place].category = category;
    timeline->series[place].bytes = bytes;
}

static void read_series(struct as_timeline *timeline, json_t *series)
{
    const char *category;
    json_t *list;
    json_object_foreach(series, category, list)
    {
        uint64_t *const bytes = timeline->series_count < AS_TIMELINE_SERIES
                                    ? read_column(list, timeline->rows)
                                    : NULL;
        uint64_t highest = 0;
        for (size_t n = 0; bytes && n < timeline->rows; n++)
            highest = bytes[n] > highest ? bytes[n] : highest;
        if (highest)
            insert(timeline, category, bytes);
        else
            free(bytes);
    }
}

static void add_up(struct as_timeline *timeline)
{
    bool tensors = false;
    for (size_t n = 0; n < timeline->series_count; n++)
        tensors = tensors || as_category_is_tensors(timeline->series[n].category);
    for (size_t n = 0; n < timeline->series_count; n++) {
        const bool counts =
            !tensors || as_category_is_tensors(timeline->series[n].category);
        for (size_t row = 0; row < timeline->rows; row++) {
            timeline->height[row] += timeline->series[n].bytes[row];
            timeline->total[row] += counts ? timeline->series[n].bytes[row] : 0;
        }
    }
}

// What the allocator keeps back is the rest of what it reserved.
static void add_cached(struct as_timeline *timeline, json_t *reserved)
{
    uint64_t *const cached = timeline->series_count < AS_TIMELINE_SERIES
                                 ? read_column(reserved, timeline->rows)
                                 : NULL;
    for (size_t row = 0; cached && row < timeline->rows; row++)
        cached[row] -=
            timeline->total[row] < cached[row] ? timeline->total[row] : cached[row];
    if (!cached)
        return;
    insert(timeline, "cached", cached);
    for (size_t row = 0; row < timeline->rows; row++)
        timeline->height[row] += cached[row];
}

// The step of each row, from when the steps ended. Of a long run some are not listed.
static uint64_t *find_steps(const struct as_timeline *timeline, json_t *report)
{
    json_t *const ends = as_field(report, "steps.end_ns");
    const uint64_t omitted = as_field_number(report, "steps.omitted_count");
    const uint64_t from = as_field_number(report, "steps.omitted_from");
    uint64_t *const steps =
        json_array_size(ends) ? calloc(timeline->rows, sizeof(*steps)) : NULL;
    size_t step = 0;
    for (size_t row = 0; steps && row < timeline->rows; row++) {
        while (step < json_array_size(ends) &&
               as_field_number(json_array_get(ends, step), "") < timeline->t_ns[row])
            step++;
        steps[row] = step;
        if (omitted != AS_NOT_KNOWN && from != AS_NOT_KNOWN && step >= from)
            steps[row] += omitted;
    }
    return steps;
}

int as_timeline_read(struct as_timeline *timeline, json_t *report)
{
    json_t *const times = as_field(report, "timeline.t_ns");
    const size_t rows = json_array_size(times);
    *timeline = (struct as_timeline){.rows = rows};
    if (!rows)
        return -ENOENT;
    timeline->t_ns = read_column(times, rows);
    timeline->total = calloc(rows, sizeof(*timeline->total));
    timeline->height = calloc(rows, sizeof(*timeline->height));
    json_t *const phases = as_field(report, "timeline.phase");
    timeline->phases = json_array_size(phases) == rows ? phases : NULL;
    if (!timeline->t_ns || !timeline->total || !timeline->height) {
        as_timeline_finish(timeline);
        return -ENOENT;
    }
    timeline->step = find_steps(timeline, report);
    read_series(timeline, as_field(report, "timeline.series"));
    if (!timeline->series_count) {
        as_timeline_finish(timeline);
        return -ENOENT;
    }
    add_up(timeline);
    add_cached(timeline, as_field(report, "timeline.reserved_bytes"));
    return 0;
}

void as_timeline_finish(struct as_timeline *timeline)
{
    for (size_t n = 0; n < timeline->series_count; n++)
        free(timeline->series[n].bytes);
    free(timeline->t_ns);
    free(timeline->total);
    free(timeline->height);
    free(timeline->step);
    *timeline = (struct as_timeline){0};
}

static size_t highest(const uint64_t *values, size_t begin, size_t end)
{
    size_t at = begin;
    for (size_t n = begin; n < end; n++)
        at = values[n] > values[at] ? n : at;
    return at;
}

size_t as_timeline_peak(const struct as_timeline *timeline)
{
    return highest(timeline->total, 0, timeline->rows);
}

static size_t cut(const uint64_t *values, size_t count, size_t *rows, size_t most)
{
    const size_t kept = count < most ? count : most;
    for (size_t n = 0; n < kept; n++)
        rows[n] = highest(values, n * count / kept, (n + 1) * count / kept);
    return kept;
}

size_t as_timeline_reduce(const uint64_t *values, size_t count, uint64_t *kept,
                          size_t most)
{
    size_t *const rows = calloc(most, sizeof(*rows));
    const size_t found = rows ? cut(values, count, rows, most) : 0;
    for (size_t n = 0; n < found; n++)
        kept[n] = values[rows[n]];
    free(rows);
    return found;
}

size_t as_timeline_pick(const struct as_timeline *timeline, size_t *rows, size_t most)
{
    return cut(timeline->total, timeline->rows, rows, most);
}
