// SPDX-License-Identifier: Apache-2.0
#include "report/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <actswap/actswap.h>

#include "core/clock.h"
#include "core/text.h"
#include "report/json.h"
#include "report/report.h"
#include "track/ledger.h"
#include "track/place.h"
#include "track/timeline.h"

// Time since the run began.
static uint64_t since_start(uint64_t ns)
{
    const uint64_t start_ns = as_clock_started_ns();

    return ns > start_ns ? ns - start_ns : 0;
}

// --- The peak

static const char *source_name(const struct as_facts *facts, int category,
                               const struct as_share *share)
{
    if (facts->source == AS_SOURCE_NONE || category == ACTSWAP_UNKNOWN)
        return "none";
    return share->inferred_bytes ? "inferred" : "adapter";
}

static void write_shares(struct as_json *json, const struct as_facts *facts,
                         const struct as_share shares[])
{
    for (int i = 0; i < ACTSWAP_CATEGORIES; i++) {
        const struct as_share *share = &shares[i];

        if (!share->bytes)
            continue;
        as_json_open(json, NULL, '{');
        as_json_text(json, "category", actswap_category_name((enum actswap_category)i));
        as_json_number(json, "bytes", share->bytes);
        as_json_number(json, "count", share->count);
        as_json_number(json, "inferred_bytes", share->inferred_bytes);
        as_json_text(json, "source", source_name(facts, i, share));
        as_json_close(json, '}');
    }
}

// Rows that are no tensors.
static void write_outside(struct as_json *json, const struct as_facts *facts,
                          const struct as_ledger_totals *totals)
{
    const uint64_t reserved = totals->reserved_at_peak_bytes;
    const struct {
        const char *category;
        uint64_t bytes;
        const char *source;
    } rows[] = {
        {"cached", reserved > totals->peak_bytes ? reserved - totals->peak_bytes : 0,
         "allocator"},
        {"context", facts->outside.context_bytes, "inferred"},
        {"comm", facts->outside.comm_bytes, "driver"},
        {"other", facts->outside.other_bytes, "driver"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (!rows[i].bytes)
            continue;
        as_json_open(json, NULL, '{');
        as_json_text(json, "category", rows[i].category);
        as_json_number(json, "bytes", rows[i].bytes);
        as_json_text(json, "source", rows[i].source);
        as_json_close(json, '}');
    }
}

static uint64_t total_of(const struct as_share shares[])
{
    uint64_t bytes = 0;

    for (int i = 0; i < ACTSWAP_CATEGORIES; i++)
        bytes += shares[i].bytes;
    return bytes;
}

static uint64_t static_of(const struct as_share shares[])
{
    return shares[ACTSWAP_PARAMETER].bytes + shares[ACTSWAP_GRADIENT].bytes +
           shares[ACTSWAP_OPTIMIZER_STATE].bytes;
}

void as_report_advice(const struct as_peak *peak, char *text, size_t text_bytes)
{
    const uint64_t total = total_of(peak->at), fixed = static_of(peak->at);
    const uint64_t activation = peak->at[ACTSWAP_ACTIVATION].bytes;
    char without[AS_TEXT_AMOUNT], ratio[96] = "";

    *text = '\0';
    if (!total)
        return;
    const unsigned percent = (unsigned)(100 * (double)activation / (double)total + 0.5);
    if (fixed)
        snprintf(ratio, sizeof(ratio),
                 ", %.2g times parameters, gradients and optimizer state",
                 (double)activation / (double)fixed);
    as_text_amount(total - activation, without);
    if (percent < 15)
        snprintf(
            text, text_bytes,
            "activations are %u %% of the peak%s: checkpointing or offload would not "
            "help much, without any of them it would be %s",
            percent, ratio, without);
    else
        snprintf(text, text_bytes,
                 "activations are %u %% of the peak%s: checkpointing or offload %s, "
                 "without any of them it would be %s",
                 percent, ratio, percent < 40 ? "may help" : "is worth it", without);
}

static void write_moment(struct as_json *json, const char *key,
                         const struct as_facts *facts, const struct as_share shares[])
{
    as_json_open(json, key, '{');
    as_json_number(json, "bytes", total_of(shares));
    as_json_open(json, "by_category", '[');
    write_shares(json, facts, shares);
    as_json_close(json, ']');
    as_json_close(json, '}');
}

void as_report_peak(struct as_json *json, const struct as_facts *facts)
{
    static const char *const sources[] = {
        [AS_SOURCE_NONE] = "none",
        [AS_SOURCE_ALLOCATOR] = "allocator",
        [AS_SOURCE_DRIVER] = "driver",
    };
    struct as_ledger_totals totals, segments;
    struct as_peak peak;
    char block[AS_PLACE_TEXT];

    as_ledger_totals(facts->ledger, -1, &totals);
    as_ledger_totals(facts->segments, -1, &segments);
    as_ledger_peak(facts->ledger, &peak);
    as_place_text(peak.block, block, sizeof(block));
    as_json_open(json, "peak", '{');
    as_json_text(json, "source", sources[facts->source]);
    as_json_number(json, "bytes", totals.peak_bytes);
    as_json_number(json, "reserved_bytes", totals.peak_reserved_bytes);
    as_json_number(json, "driver_bytes", segments.peak_bytes);
    as_json_number(json, "step", totals.peak_step);
    as_json_text(json, "phase", as_phase_name((enum as_phase)totals.peak_phase));
    as_json_text(json, "block", *block ? block : NULL);
    as_json_number(json, "t_ns", since_start(peak.t_ns));
    write_moment(json, "before", facts, peak.before);
    as_json_open(json, "by_category", '[');
    write_shares(json, facts, peak.at);
    write_outside(json, facts, &totals);
    as_json_close(json, ']');
    write_moment(json, "after", facts, peak.after);
    as_json_number(json, "static_bytes", static_of(peak.at));
    as_json_close(json, '}');
}

void as_report_taken(struct as_json *json, const struct as_facts *facts)
{
    as_json_open(json, "taken", '[');
    for (int i = 0; i < ACTSWAP_MEMORIES; i++) {
        const bool device = i == ACTSWAP_MEMORY_DEVICE;
        struct as_ledger_totals totals;

        as_ledger_totals(device ? facts->segments : facts->others, device ? -1 : i,
                         &totals);
        if (!totals.allocations)
            continue;
        as_json_open(json, NULL, '{');
        as_json_text(json, "kind", actswap_memory_name((enum actswap_memory)i));
        as_json_number(json, "bytes", totals.live_bytes);
        as_json_number(json, "peak_bytes", totals.peak_bytes);
        as_json_number(json, "count", totals.allocations);
        as_json_close(json, '}');
    }
    as_json_close(json, ']');
}

void as_report_advices(struct as_json *json, const struct as_facts *facts)
{
    struct as_peak peak;
    char advice[256];

    as_ledger_peak(facts->ledger, &peak);
    as_report_advice(&peak, advice, sizeof(advice));
    as_json_open(json, "advice", '[');
    if (*advice)
        as_json_text(json, NULL, advice);
    as_json_close(json, ']');
}

// --- The timeline

typedef uint64_t figure_fn(const struct as_sample *sample);

static uint64_t t_of(const struct as_sample *sample)
{
    return since_start(sample->t_ns);
}

static uint64_t step_of(const struct as_sample *sample)
{
    return sample->step;
}

static uint64_t all_of(const struct as_sample *sample)
{
    return sample->total_bytes;
}

static uint64_t reserved_of(const struct as_sample *sample)
{
    return sample->reserved_bytes;
}

static uint64_t cached_of(const struct as_sample *sample)
{
    return sample->reserved_bytes > sample->total_bytes
               ? sample->reserved_bytes - sample->total_bytes
               : 0;
}

static void write_column(struct as_json *json, const char *key,
                         const struct as_timeline *timeline, figure_fn *figure)
{
    as_json_open(json, key, '[');
    for (uint32_t i = 0; i < timeline->count; i++)
        as_json_number(json, NULL, figure(&timeline->samples[i]));
    as_json_close(json, ']');
}

static void write_series(struct as_json *json, const struct as_timeline *timeline,
                         int category)
{
    uint64_t any = 0;

    for (uint32_t i = 0; i < timeline->count; i++)
        any |= timeline->samples[i].bytes[category];
    if (!any)
        return;
    as_json_open(json, actswap_category_name((enum actswap_category)category), '[');
    for (uint32_t i = 0; i < timeline->count; i++)
        as_json_number(json, NULL, timeline->samples[i].bytes[category]);
    as_json_close(json, ']');
}

static void write_timeline(struct as_json *json, const struct as_timeline *timeline,
                           int device)
{
    const bool any = timeline->count;

    as_json_open(json, "timeline", '{');
    as_json_number(json, "device", device < 0 ? 0 : (uint64_t)device);
    as_json_number(json, "bucket_ns", any ? timeline->width_ns : 0);
    as_json_number(json, "start_ns", any ? since_start(timeline->start_ns) : 0);
    write_column(json, "t_ns", timeline, t_of);
    write_column(json, "step", timeline, step_of);
    as_json_open(json, "phase", '[');
    for (uint32_t i = 0; i < timeline->count; i++)
        as_json_text(json, NULL,
                     as_phase_name((enum as_phase)timeline->samples[i].phase));
    as_json_close(json, ']');
    as_json_open(json, "series", '{');
    for (int i = 0; i < ACTSWAP_CATEGORIES; i++)
        write_series(json, timeline, i);
    write_column(json, "cached", timeline, cached_of);
    as_json_close(json, '}');
    write_column(json, "total_bytes", timeline, all_of);
    write_column(json, "reserved_bytes", timeline, reserved_of);
    as_json_text(json, "rule", "max");
    as_json_close(json, '}');
}

void as_report_timeline(struct as_json *json, const struct as_facts *facts)
{
    struct as_peak peak;
    struct as_timeline *timeline = malloc(sizeof(*timeline));
    if (!timeline)
        return;

    as_ledger_peak(facts->ledger, &peak);
    as_ledger_timeline(facts->ledger, peak.device, timeline);
    write_timeline(json, timeline, peak.device);
    free(timeline);
}
