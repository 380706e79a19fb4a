// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_CHART_H
#define AS_CLI_REPORT_CHART_H

// The page's pictures, as inline SVG: they need no script, and print.

#include "cli/report/timeline.h"

#include <stdio.h>

// What is drawn across a picture of memory.
struct as_chart_lines {
    uint64_t device_bytes, budget_bytes; // AS_NOT_KNOWN: no line
    const char *peak; // "step 7, backward"
};

// Stacked areas over time, the peak marked.
void as_chart_timeline(FILE *out, const struct as_timeline *timeline,
                       const struct as_chart_lines *lines);

// The numbers of the same picture, for the page's script.
void as_chart_timeline_data(FILE *out, const struct as_timeline *timeline);

// A bar a step: highest and after forward; a line for what was reserved.
void as_chart_steps(FILE *out, json_t *report);

// Bytes by how long they wait, a bar a bucket, with a line at the break-even.
void as_chart_idle(FILE *out, json_t *report);

// A curve without axes, as high as `top` at most.
void as_chart_curve(FILE *out, const uint64_t *values, size_t count, uint64_t top);

#endif
