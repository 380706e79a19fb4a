// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_TIMELINE_H
#define AS_CLI_REPORT_TIMELINE_H

// Memory over time as a report has it: columns of one length, one for each category.

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { AS_TIMELINE_SERIES = 16 };

struct as_timeline {
    size_t rows;
    uint64_t *t_ns; // growing
    uint64_t *total; // of tensors, whose peak is the run's; of all if there are none
    uint64_t *height; // of all series
    uint64_t *step; // NULL: not known
    const char **phases; // NULL: not known; each borrowed from the report
    uint64_t left_out_ns; // before the first forward, where that was long
    size_t series_count;
    struct {
        const char *category; // borrowed from the report
        uint64_t *bytes;
    } series[AS_TIMELINE_SERIES]; // from the bottom of the picture to its top
};

// 0, or -ENOENT: the report has none, or its columns do not fit together. The report must
// outlive it.
int as_timeline_read(struct as_timeline *timeline, json_t *report);

void as_timeline_finish(struct as_timeline *timeline);

// The row at which the total is highest.
size_t as_timeline_peak(const struct as_timeline *timeline);

// Cuts `count` values into at most `most` stretches and keeps the highest of each, so that
// the peak stays. Returns how many.
size_t as_timeline_reduce(const uint64_t *values, size_t count, uint64_t *kept,
                          size_t most);

// The same, but names the rows that are kept.
size_t as_timeline_pick(const struct as_timeline *timeline, size_t *rows, size_t most);

#endif
