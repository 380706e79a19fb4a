// SPDX-License-Identifier: Apache-2.0
//
// Who holds the activations of the peak: blocks of the model and lines of the script, and
// how long what they save waits for its use.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/gpu.h"
#include "report/json.h"
#include "report/memory.h"
#include "report/report.h"
#include "track/ledger.h"
#include "track/place.h"
#include "track/site.h"
#include "track/tally.h"

enum { SITES_MOST = 200, MODULES_MOST = 1000, STACKS_MOST = 256 << 10 }; // bytes of text

// The places with the most bytes, the first ones first.
struct ranking {
    uint32_t places[MODULES_MOST];
    uint32_t count;
};

static void rank(struct ranking *ranking, const struct as_count counts[], uint32_t most)
{
    ranking->count = 0;
    for (uint32_t place = 0; place < AS_PLACES; place++) {
        if (!counts[place].bytes)
            continue;
        uint32_t at = ranking->count;

        while (at > 0 && counts[ranking->places[at - 1]].bytes < counts[place].bytes)
            at--;
        if (at == most)
            continue;
        if (ranking->count < most)
            ranking->count++;
        memmove(ranking->places + at + 1, ranking->places + at,
                (ranking->count - at - 1) * sizeof(*ranking->places));
        ranking->places[at] = place;
    }
}

static void write_stack(struct as_json *json, const char *frames)
{
    char text[512];

    as_json_open(json, NULL, '[');
    while (frames && *frames) {
        const size_t length = strcspn(frames, "\n");
        const size_t taken = length < sizeof(text) ? length : sizeof(text) - 1;

        memcpy(text, frames, taken);
        text[taken] = '\0';
        as_json_text(json, NULL, text);
        frames += length + (frames[length] == '\n');
    }
    as_json_close(json, ']');
}

static void write_wait(struct as_json *json, const struct as_tally *tally, uint32_t stack)
{
    if (!as_tally_wait_ns(tally, stack, 100)) {
        as_json_text(json, "idle_ns", NULL);
        return;
    }
    as_json_open(json, "idle_ns", '{');
    as_json_number(json, "p10", as_tally_wait_ns(tally, stack, 10));
    as_json_number(json, "p50", as_tally_wait_ns(tally, stack, 50));
    as_json_number(json, "p90", as_tally_wait_ns(tally, stack, 90));
    as_json_close(json, '}');
}

// A report is small, also where frames have long names.
static void limit_text(struct ranking *ranking)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < ranking->count; i++) {
        const char *frames = as_site_text(ranking->places[i]);

        bytes += frames ? strlen(frames) : 0;
        if (bytes > STACKS_MOST)
            ranking->count = i;
    }
}

static const char *module_name(uint32_t place, char *name, size_t name_bytes)
{
    as_place_text(place, name, name_bytes);
    return *name ? name : "(outside)";
}

static void write_module_of(struct as_json *json, const struct as_spread *spread)
{
    char name[AS_PLACE_TEXT];

    if (!spread->several) {
        as_json_text(json, "module", module_name(spread->block, name, sizeof(name)));
        return;
    }
    as_place_kind_text(spread->block, spread->words, name, sizeof(name));
    as_json_text(json, "module", *name ? name : NULL);
}

static void write_sites(struct as_json *json, const struct as_tally *tally)
{
    struct ranking ranking;

    rank(&ranking, tally->stacks, SITES_MOST);
    limit_text(&ranking);
    as_json_open(json, "stacks", '[');
    for (uint32_t i = 0; i < ranking.count; i++)
        write_stack(json, as_site_text(ranking.places[i]));
    as_json_close(json, ']');
    as_json_open(json, "sites", '[');
    for (uint32_t i = 0; i < ranking.count; i++) {
        const struct as_count *count = &tally->stacks[ranking.places[i]];

        as_json_open(json, NULL, '{');
        as_json_number(json, "stack", i);
        as_json_text(json, "category", actswap_category_name(ACTSWAP_ACTIVATION));
        write_module_of(json, &tally->spreads[ranking.places[i]]);
        as_json_number(json, "peak_bytes", count->bytes);
        as_json_number(json, "count", count->count);
        write_wait(json, tally, ranking.places[i]);
        as_json_close(json, '}');
    }
    as_json_close(json, ']');
}

static void write_module(struct as_json *json, uint32_t place,
                         const struct as_count *count)
{
    char name[AS_PLACE_TEXT];

    as_json_open(json, NULL, '{');
    as_json_text(json, "module", module_name(place, name, sizeof(name)));
    as_json_text(json, "category", actswap_category_name(ACTSWAP_ACTIVATION));
    as_json_number(json, "peak_bytes", count->bytes);
    as_json_number(json, "count", count->count);
    as_json_close(json, '}');
}

// Rows add up to the activations of the peak: what has no row of its own shares the last.
static void write_modules(struct as_json *json, const struct as_tally *tally)
{
    struct ranking ranking;
    struct as_count rest = {0};

    rank(&ranking, tally->blocks, MODULES_MOST);
    for (uint32_t place = 0; place < AS_PLACES; place++) {
        rest.bytes += tally->blocks[place].bytes;
        rest.count += tally->blocks[place].count;
    }
    as_json_open(json, "modules", '[');
    for (uint32_t i = 0; i < ranking.count; i++) {
        const struct as_count *count = &tally->blocks[ranking.places[i]];

        if (ranking.places[i] == AS_PLACE_FURTHER)
            continue;
        write_module(json, ranking.places[i], count);
        rest.bytes -= count->bytes;
        rest.count -= count->count;
    }
    if (rest.bytes)
        write_module(json, AS_PLACE_FURTHER, &rest);
    as_json_close(json, ']');
}

static const struct as_gpu *gpu_of(const struct as_facts *facts)
{
    const struct as_gpu *gpu = as_gpu_table;

    while (gpu->name && strcmp(gpu->product, facts->device) != 0)
        gpu++;
    return gpu->name ? gpu : NULL;
}

// How long a mean saved storage takes out and in again.
static void write_break_even(struct as_json *json, const struct as_facts *facts,
                             uint64_t bytes, uint64_t count)
{
    const struct as_gpu *gpu = gpu_of(facts);

    if (!gpu || !count || !gpu->d2h_bytes_per_s || !gpu->h2d_bytes_per_s) {
        as_json_text(json, "break_even_ns", NULL);
        return;
    }
    const double mean = (double)bytes / (double)count;
    as_json_number(json, "break_even_ns",
                   (uint64_t)(1e9 * mean / (double)gpu->d2h_bytes_per_s +
                              1e9 * mean / (double)gpu->h2d_bytes_per_s));
}

static void write_gaps(struct as_json *json, const struct as_facts *facts,
                       const struct as_tally *tally)
{
    uint64_t bytes = 0, count = 0;

    as_json_open(json, "idle_gap", '{');
    as_json_open(json, "edges_ns", '[');
    for (unsigned n = 0; n <= AS_GAPS; n++)
        as_json_number(json, NULL, as_tally_edge_ns(n));
    as_json_close(json, ']');
    as_json_open(json, "bytes", '[');
    for (unsigned n = 0; n < AS_GAPS; n++) {
        as_json_number(json, NULL, tally->gaps[n].bytes);
        bytes += tally->gaps[n].bytes;
    }
    as_json_close(json, ']');
    as_json_open(json, "count", '[');
    for (unsigned n = 0; n < AS_GAPS; n++) {
        as_json_number(json, NULL, tally->gaps[n].count);
        count += tally->gaps[n].count;
    }
    as_json_close(json, ']');
    write_break_even(json, facts, bytes, count);
    as_json_close(json, '}');
}

void as_report_places(struct as_json *json, const struct as_facts *facts)
{
    struct as_tally *tally = malloc(sizeof(*tally));

    if (tally && as_ledger_tally(facts->ledger, tally)) {
        write_sites(json, tally);
        write_modules(json, tally);
        write_gaps(json, facts, tally);
    }
    free(tally);
}
