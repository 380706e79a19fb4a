// SPDX-License-Identifier: Apache-2.0
#include "cli/report/chart.h"

#include "cli/field.h"
#include "cli/report/axis.h"
#include "cli/report/category.h"
#include "cli/report/html.h"
#include "cli/report/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 440, CURVE_WIDTH = 160, CURVE_HEIGHT = 28, STEP_LABELS = 14 };
enum { NAME_LETTER = 7, NAME_HEIGHT = 16, STEP_FIRST_WIDTH = 48, STEP_WIDTH = 24 };

static const struct as_frame wide = {
    .width = 960,
    .height = 340,
    .left = 72,
    .right = 948,
    .top = 44,
    .bottom = 304,
};

static const char wide_label[] = "memory over time, stacked by category";

// --- Memory over time

struct areas {
    const struct as_timeline *timeline;
    struct as_frame frame;
    size_t rows[COLUMNS];
    size_t count;
};

static uint64_t below(const struct as_timeline *timeline, size_t series, size_t row)
{
    uint64_t sum = 0;
    for (size_t n = 0; n < series; n++)
        sum += timeline->series[n].bytes[row];
    return sum;
}

static double x_of(const struct areas *areas, size_t row)
{
    return as_frame_x(&areas->frame, (double)areas->timeline->t_ns[row]);
}

static void draw_area(const struct areas *areas, FILE *out, size_t series)
{
    const struct as_timeline *const timeline = areas->timeline;
    as_html(out, "<path class=\"area c-%s\" data-series=\"%zu\" d=\"",
            as_category_known(timeline->series[series].category), series);
    for (size_t n = 0; n < areas->count; n++) {
        const size_t row = areas->rows[n];
        const double top = (double)below(timeline, series + 1, row);
        as_html(out, "%s%.1f %.1f", n ? "L" : "M", x_of(areas, row),
                as_frame_y(&areas->frame, top));
    }
    for (size_t n = areas->count; n-- > 0;) {
        const size_t row = areas->rows[n];
        const double bottom = (double)below(timeline, series, row);
        as_html(out, "L%.1f %.1f", x_of(areas, row), as_frame_y(&areas->frame, bottom));
    }
    as_html(out, "Z\"/>\n");
}

// Whether the name of an area fits into it here over its whole width, so that it covers
// no other. Returns the height that is free for it, in whose middle *y lies; 0: no.
static double room_for_name(const struct areas *areas, size_t series, size_t n, double *y)
{
    const struct as_timeline *const timeline = areas->timeline;
    const double half =
        NAME_LETTER * (double)strlen(timeline->series[series].category) / 2 + 4;
    const double x = x_of(areas, areas->rows[n]);
    double low = areas->frame.bottom, high = areas->frame.top;
    if (x - half < areas->frame.left || x + half > areas->frame.right)
        return 0;
    for (size_t k = 0; k < areas->count; k++) {
        const size_t row = areas->rows[k];
        if (fabs(x_of(areas, row) - x) > half)
            continue;
        low = fmin(low, as_frame_y(&areas->frame, (double)below(timeline, series, row)));
        high = fmax(high,
                    as_frame_y(&areas->frame, (double)below(timeline, series + 1, row)));
    }
    *y = (low + high) / 2 + 4;
    return low - high < NAME_HEIGHT ? 0 : low - high;
}

// The name inside of its area, where there is most room for it.
static void draw_name(const struct areas *areas, FILE *out, size_t series)
{
    double best = 0, best_x = 0, best_y = 0;
    for (size_t n = 0; n < areas->count; n++) {
        double y = 0;
        const double room = room_for_name(areas, series, n, &y);
        if (room > best) {
            best = room;
            best_x = x_of(areas, areas->rows[n]);
            best_y = y;
        }
    }
    if (best > 0)
        as_html(out,
                "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"middle\">%s</text>\n",
                best_x, best_y, areas->timeline->series[series].category);
}

// Where a step or a phase changes; false at the end.
static bool next_change(const struct as_timeline *timeline, bool phases, size_t *row)
{
    const size_t from = *row;
    for (size_t n = from + 1; n < timeline->rows; n++) {
        const bool changes =
            phases ? strcmp(timeline->phases[n], timeline->phases[from]) != 0
                   : timeline->step[n] != timeline->step[from];
        if (changes) {
            *row = n;
            return true;
        }
    }
    return false;
}

static size_t count_changes(const struct as_timeline *timeline, bool phases)
{
    size_t count = 0;
    for (size_t row = 0; next_change(timeline, phases, &row);)
        count++;
    return count;
}

static void draw_steps(const struct areas *areas, FILE *out)
{
    const struct as_timeline *const timeline = areas->timeline;
    if (!timeline->step)
        return;
    const size_t changes = count_changes(timeline, false);
    const size_t each = changes / STEP_LABELS + 1;
    size_t seen = 0, row = 0;
    double room = 0; // where the last name ends
    as_html(out, "<g class=\"steps\">");
    do {
        const double x = x_of(areas, row);
        if (seen++ % each != 0 || x > areas->frame.right - 10)
            continue;
        as_html(out, "<path class=\"step\" d=\"M%.1f %.1fV%.1f\"/>", x,
                areas->frame.top - 10, areas->frame.bottom);
        if (x < room)
            continue;
        room = x + (seen == 1 ? STEP_FIRST_WIDTH : STEP_WIDTH);
        as_html(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\">%s%" PRIu64 "</text>",
                x + 3, areas->frame.top - 20, seen == 1 ? "step " : "",
                timeline->step[row] + 1);
    } while (next_change(timeline, false, &row));
    as_html(out, "</g>\n");
}

static void draw_phases(const struct areas *areas, FILE *out)
{
    const struct as_timeline *const timeline = areas->timeline;
    if (!timeline->phases || count_changes(timeline, true) > COLUMNS)
        return;
    as_html(out, "<g class=\"phases\">");
    size_t row = 0, begin = 0;
    bool more = true;
    while (more) {
        more = next_change(timeline, true, &row);
        const double left = x_of(areas, begin);
        const double right = more ? x_of(areas, row) : areas->frame.right;
        const char *const phase = timeline->phases[begin];
        if (strcmp(phase, "other") != 0 && right - left > 0.2)
            as_html(out,
                    "<rect class=\"phase p-%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                    "height=\"6\"><title>%s</title></rect>",
                    phase, left, areas->frame.top - 11, right - left, phase);
        begin = row;
    }
    as_html(out, "</g>\n");
}

static void draw_line(const struct as_frame *frame, FILE *out, const char *what,
                      uint64_t bytes)
{
    as_words amount;
    if (bytes == AS_NOT_KNOWN || (double)bytes > frame->most)
        return;
    const double y = as_frame_y(frame, (double)bytes);
    as_html(out, "<path class=\"limit\" d=\"M%.1f %.1fH%.1f\"/>", frame->left, y,
            frame->right);
    as_html(out, "<text class=\"limit\" x=\"%.1f\" y=\"%.1f\">%s %s</text>\n",
            frame->left + 6, y - 4, what, as_words_bytes(bytes, amount));
}

static void draw_peak(const struct areas *areas, FILE *out, const char *where)
{
    const size_t row = as_timeline_peak(areas->timeline);
    const uint64_t bytes = areas->timeline->total[row];
    const double x = x_of(areas, row), y = as_frame_y(&areas->frame, (double)bytes);
    const bool right = x > (areas->frame.left + areas->frame.right) / 2;
    as_words amount;
    as_html(out, "<g class=\"peak\"><circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", x, y);
    as_html(
        out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">peak %s%s%s</text></g>\n",
        right ? x - 9 : x + 9, y - 6, right ? "end" : "start",
        as_words_bytes(bytes, amount), where && *where ? ", " : "", where ? where : "");
}

static double most_of(uint64_t peak, const struct as_chart_lines *lines)
{
    double most = (double)peak * 1.15;
    const uint64_t limits[] = {lines->device_bytes, lines->budget_bytes};
    for (size_t n = 0; n < 2; n++) {
        if (limits[n] != AS_NOT_KNOWN && (double)limits[n] <= 2 * (double)peak &&
            (double)limits[n] * 1.08 > most)
            most = (double)limits[n] * 1.08;
    }
    return most;
}

void as_chart_timeline(FILE *out, const struct as_timeline *timeline,
                       const struct as_chart_lines *lines)
{
    struct areas *const areas = calloc(1, sizeof(*areas));
    if (!areas)
        return;
    areas->timeline = timeline;
    areas->frame = wide;
    areas->frame.begin = (double)timeline->t_ns[0];
    areas->frame.end = (double)timeline->t_ns[timeline->rows - 1];
    uint64_t highest = 0;
    for (size_t n = 0; n < timeline->rows; n++)
        highest = timeline->height[n] > highest ? timeline->height[n] : highest;
    areas->frame.most = most_of(highest, lines);
    areas->count = as_timeline_pick(timeline, areas->rows, COLUMNS);

    as_frame_open(&areas->frame, out, wide_label);
    as_frame_bytes(&areas->frame, out);
    as_html(out, "<g class=\"areas\" data-most=\"%.0f\">\n", areas->frame.most);
    for (size_t n = 0; n < timeline->series_count; n++)
        draw_area(areas, out, n);
    as_html(out, "</g>\n");
    draw_phases(areas, out);
    draw_steps(areas, out);
    as_frame_times(&areas->frame, out);
    draw_line(&areas->frame, out, "the card has", lines->device_bytes);
    draw_line(&areas->frame, out, "budget", lines->budget_bytes);
    as_html(out, "<g class=\"names\">");
    for (size_t n = 0; n < timeline->series_count; n++)
        draw_name(areas, out, n);
    as_html(out, "</g>");
    draw_peak(areas, out, lines->peak);
    as_html(out, "</svg>\n");
    free(areas);
}

static json_t *column(const uint64_t *values, size_t count)
{
    json_t *const list = json_array();
    for (size_t n = 0; values && n < count; n++)
        (void)json_array_append_new(list, json_integer((json_int_t)values[n]));
    return list;
}

void as_chart_timeline_data(FILE *out, const struct as_timeline *timeline)
{
    json_t *const series = json_array();
    for (size_t n = 0; n < timeline->series_count; n++)
        (void)json_array_append_new(
            series, json_pack("{s:s, s:o}", "name", timeline->series[n].category, "bytes",
                              column(timeline->series[n].bytes, timeline->rows)));
    json_t *const phases = timeline->phases ? json_array() : NULL;
    for (size_t n = 0; phases && n < timeline->rows; n++)
        (void)json_array_append_new(phases, json_string(timeline->phases[n]));
    json_t *const data =
        json_pack("{s:o, s:o, s:o, s:o, s:o?, s:[f,f,f,f]}", "t",
                  column(timeline->t_ns, timeline->rows), "total",
                  column(timeline->total, timeline->rows), "series", series, "step",
                  column(timeline->step, timeline->rows), "phase", phases, "frame",
                  wide.left, wide.right, wide.top, wide.bottom);
    as_html(out, "<script type=\"application/json\" class=\"timeline-data\">");
    if (data)
        as_html_json(out, data);
    as_html(out, "</script>\n");
    json_decref(data);
}

// --- Steps

static uint64_t at(json_t *list, size_t n)
{
    const uint64_t value = as_field_number(json_array_get(list, n), "");
    return value == AS_NOT_KNOWN ? 0 : value;
}

static void draw_bars(const struct as_frame *frame, FILE *out, json_t *list,
                      const char *style)
{
    const size_t count = json_array_size(list);
    const size_t shown = count < COLUMNS / 2 ? count : COLUMNS / 2;
    const double room = (frame->right - frame->left) / (double)(shown ? shown : 1);
    const double width = room > 40 ? 30 : room * 0.75;
    for (size_t n = 0; n < shown; n++) {
        uint64_t highest = 0;
        for (size_t k = n * count / shown; k < (n + 1) * count / shown; k++)
            highest = at(list, k) > highest ? at(list, k) : highest;
        const double y = as_frame_y(frame, (double)highest);
        as_html(out,
                "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\"/>",
                style, frame->left + ((double)n + 0.5) * room - width / 2, y, width,
                frame->bottom - y);
        if (shown <= STEP_LABELS || n % (shown / STEP_LABELS + 1) == 0)
            as_html(out,
                    "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                    "text-anchor=\"middle\">%zu</text>",
                    frame->left + ((double)n + 0.5) * room, frame->bottom + 19,
                    n * count / shown + 1);
    }
    as_html(out, "\n");
}

void as_chart_steps(FILE *out, json_t *report)
{
    struct as_frame frame = wide;
    frame.height = 220;
    frame.top = 14;
    frame.bottom = 186;
    const uint64_t reserved = as_field_highest(report, "steps.peak_reserved_bytes");
    const uint64_t peak = as_field_highest(report, "steps.peak_bytes");
    frame.most =
        1.1 * (double)(reserved != AS_NOT_KNOWN && reserved > peak ? reserved : peak);
    as_frame_open(&frame, out, "highest memory of each step");
    as_frame_bytes(&frame, out);
    draw_bars(&frame, out, as_field(report, "steps.peak_reserved_bytes"), "bar reserved");
    draw_bars(&frame, out, as_field(report, "steps.peak_bytes"), "bar highest");
    draw_bars(&frame, out, as_field(report, "steps.after_forward_bytes"), "bar after");
    as_html(out, "</svg>\n");
}

// --- Idle gaps

static void draw_even(const struct as_frame *frame, FILE *out, json_t *edges,
                      uint64_t even)
{
    size_t n = 0;
    while (n < json_array_size(edges) && at(edges, n) < even)
        n++;
    as_words time;
    const double x = as_frame_x(frame, (double)n);
    as_html(out, "<path class=\"limit\" d=\"M%.1f %.1fV%.1f\"/>", x, frame->top,
            frame->bottom);
    as_html(out,
            "<text class=\"limit\" x=\"%.1f\" y=\"%.1f\">a round trip takes %s: "
            "what waits longer can be moved for nothing</text>\n",
            x + 5, frame->top + 10, as_words_time(even, time));
}

// The buckets with something in them; the rest is margin.
static void find_filled(json_t *bytes, size_t *begin, size_t *end)
{
    *begin = 0;
    *end = json_array_size(bytes);
    while (*begin < *end && !at(bytes, *begin))
        ++*begin;
    while (*end > *begin && !at(bytes, *end - 1))
        --*end;
}

void as_chart_idle(FILE *out, json_t *report)
{
    json_t *const edges = as_field(report, "idle_gap.edges_ns");
    json_t *const bytes = as_field(report, "idle_gap.bytes");
    const bool simulated = json_is_true(as_field(report, "device.simulated"));
    const uint64_t even = as_field_number(report, "idle_gap.break_even_ns");
    size_t begin, end;
    find_filled(bytes, &begin, &end);
    struct as_frame frame = wide;
    frame.height = 260;
    frame.top = 20;
    frame.bottom = 222;
    frame.begin = (double)begin;
    frame.end = (double)end;
    frame.most = 1.15 * (double)as_field_highest(report, "idle_gap.bytes");
    as_frame_open(&frame, out, "activation bytes by the time until their next use");
    as_frame_bytes(&frame, out);
    for (size_t n = begin; n < end; n++) {
        as_words time;
        const double left = as_frame_x(&frame, (double)n);
        const double right = as_frame_x(&frame, (double)n + 1);
        const double y = as_frame_y(&frame, (double)at(bytes, n));
        as_html(out,
                "<rect class=\"bar c-activation\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\"/>",
                left + 2, y, right - left - 4, frame.bottom - y);
        if ((n - begin) % ((end - begin) / 12 + 1) == 0)
            as_html(out,
                    "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                    "text-anchor=\"middle\">%s</text>",
                    left, frame.bottom + 19, as_words_time(at(edges, n), time));
    }
    if (even != AS_NOT_KNOWN && !simulated && even >= at(edges, begin))
        draw_even(&frame, out, edges, even);
    as_html(out, "</svg>\n");
}

// --- A curve in a table

void as_chart_curve(FILE *out, const uint64_t *values, size_t count, uint64_t top)
{
    const struct as_frame frame = {
        .right = CURVE_WIDTH,
        .bottom = CURVE_HEIGHT,
        .end = count > 1 ? (double)(count - 1) : 1,
        .most = (double)top,
    };
    if (!count)
        return;
    as_html(out,
            "<svg class=\"curve\" viewBox=\"0 0 %d %d\" aria-hidden=\"true\"><path "
            "d=\"M0 %d",
            CURVE_WIDTH, CURVE_HEIGHT, CURVE_HEIGHT);
    for (size_t n = 0; n < count; n++)
        as_html(out, "L%.1f %.1f", as_frame_x(&frame, (double)n),
                as_frame_y(&frame, (double)values[n]));
    if (count == 1)
        as_html(out, "H%d", CURVE_WIDTH);
    as_html(out, "V%dZ\"/></svg>", CURVE_HEIGHT);
}
