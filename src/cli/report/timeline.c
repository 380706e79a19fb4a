// SPDX-License-Identifier: Apache-2.0
#include "cli/report/timeline.h"

#include "cli/field.h"
#include "cli/report/category.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A start that is longer than this part of the run is left out, but for so many rows.
enum { START_SHARE = 10, ROWS_BEFORE = 3 };

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

static const char **read_phases(json_t *list, size_t rows)
{
    if (json_array_size(list) != rows)
        return NULL;
    const char **const phases = calloc(rows, sizeof(*phases));
    for (size_t n = 0; phases && n < rows; n++) {
        const char *const phase = as_field_text(json_array_get(list, n), "");
        phases[n] = phase ? phase : "other";
    }
    return phases;
}

static void cut_front(struct as_timeline *timeline, size_t rows)
{
    uint64_t *const columns[] = {timeline->t_ns, timeline->total, timeline->height,
                                 timeline->step};
    timeline->left_out_ns = timeline->t_ns[rows] - timeline->t_ns[0];
    timeline->rows -= rows;
    for (size_t n = 0; n < sizeof(columns) / sizeof(columns[0]); n++) {
        if (columns[n])
            memmove(columns[n], columns[n] + rows, timeline->rows * sizeof(uint64_t));
    }
    for (size_t n = 0; n < timeline->series_count; n++)
        memmove(timeline->series[n].bytes, timeline->series[n].bytes + rows,
                timeline->rows * sizeof(uint64_t));
    memmove(timeline->phases, timeline->phases + rows,
            timeline->rows * sizeof(*timeline->phases));
}

// Imports and data take longer than a few steps, and would fill the picture.
static void leave_out_start(struct as_timeline *timeline)
{
    size_t first = 0;
    while (timeline->phases && first < timeline->rows &&
           strcmp(timeline->phases[first], "forward") != 0)
        first++;
    const size_t from = first > ROWS_BEFORE ? first - ROWS_BEFORE : 0;
    if (first >= timeline->rows || !timeline->phases || !from ||
        as_timeline_peak(timeline) < from)
        return;
    const uint64_t span = timeline->t_ns[timeline->rows - 1] - timeline->t_ns[0];
    if ((timeline->t_ns[from] - timeline->t_ns[0]) > span / START_SHARE)
        cut_front(timeline, from);
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
    timeline->phases = read_phases(as_field(report, "timeline.phase"), rows);
    if (!timeline->t_ns || !timeline->total || !timeline->height) {
        as_timeline_finish(timeline);
        return -ENOENT;
    }
    timeline->step = read_column(as_field(report, "timeline.step"), rows);
    read_series(timeline, as_field(report, "timeline.series"));
    if (!timeline->series_count) {
        as_timeline_finish(timeline);
        return -ENOENT;
    }
    add_up(timeline);
    leave_out_start(timeline);
    return 0;
}

void as_timeline_finish(struct as_timeline *timeline)
{
    for (size_t n = 0; n < timeline->series_count; n++)
        free(timeline->series[n].bytes);
    free(timeline->t_ns);
    free(timeline->total);
    free(timeline->height);
    free(timeline->phases);
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
