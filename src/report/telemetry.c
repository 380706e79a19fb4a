// SPDX-License-Identifier: Apache-2.0
#include "report/telemetry.h"

#include <stdio.h>

#include "core/settings.h"
#include "core/text.h"
#include "report/report.h"
#include "track/ledger.h"
#include "track/place.h"
#include "track/telemetry.h"

static void write_way(struct as_json *json, const char *key,
                      const struct as_telemetry_way *way)
{
    as_json_open(json, key, '{');
    as_json_number(json, "count", way->count);
    as_json_number(json, "bytes", way->bytes);
    as_json_number(json, "ns", way->ns);
    as_json_number(json, "pinned_bytes", way->pinned_bytes);
    as_json_number(json, "pinned_ns", way->pinned_ns);
    as_json_close(json, '}');
}

static void write_places(struct as_json *json)
{
    static const char *const keys[AS_PHASES] = {
        [AS_PHASE_OTHER] = "other_ns",         [AS_PHASE_FORWARD] = "forward_ns",
        [AS_PHASE_BACKWARD] = "backward_ns",   [AS_PHASE_OPTIMIZER] = "optimizer_ns",
        [AS_PHASE_RECOMPUTE] = "recompute_ns",
    };
    struct as_telemetry_place place;
    char name[AS_PLACE_TEXT];

    as_json_open(json, "modules", '[');
    for (size_t i = 0; as_telemetry_read_place(i, &place); i++) {
        as_place_text(place.place, name, sizeof(name));
        as_json_open(json, NULL, '{');
        as_json_text(json, "name", place.place ? name : NULL);
        for (int phase = 0; phase < AS_PHASES; phase++)
            as_json_number(json, keys[phase], place.ns[phase]);
        as_json_close(json, '}');
    }
    as_json_close(json, ']');
}

void as_telemetry_write(struct as_json *json, const struct as_facts *facts)
{
    struct as_telemetry telemetry;

    if (!facts->settings->cupti)
        return;
    as_telemetry_read(&telemetry);
    as_json_open(json, "device_times", '{');
    as_json_bool(json, "measured",
                 telemetry.state == AS_TELEMETRY_ON ||
                     telemetry.state == AS_TELEMETRY_CUT);
    as_json_text(json, "reason",
                 telemetry.state == AS_TELEMETRY_NONE
                     ? "no framework said where a step is"
                     : telemetry.reason);
    as_json_number(json, "kernels", telemetry.kernels);
    as_json_number(json, "kernels_ns", telemetry.kernels_ns);
    as_json_number(json, "unplaced_ns", telemetry.nobodys_ns);
    as_json_number(json, "dropped", telemetry.dropped);
    write_way(json, "in", &telemetry.in);
    write_way(json, "out", &telemetry.out);
    write_places(json);
    as_json_close(json, '}');
}

static const char *rate_of(const struct as_telemetry_way *way, char text[32])
{
    if (way->pinned_ns) // bytes a nanosecond are GB a second
        (void)snprintf(text, 32, "%.1f GB/s",
                       (double)way->pinned_bytes / (double)way->pinned_ns);
    else
        (void)snprintf(text, 32, "no pinned copies");
    return text;
}

void as_telemetry_say(const struct as_facts *facts, char *text, size_t text_bytes)
{
    struct as_telemetry telemetry;
    char in[32], out[32];

    *text = '\0';
    if (!facts->settings->cupti)
        return;
    as_telemetry_read(&telemetry);
    if (telemetry.state == AS_TELEMETRY_ON || telemetry.state == AS_TELEMETRY_CUT)
        (void)snprintf(text, text_bytes, "kernels %.3f s; link %s in, %s out, by CUPTI%s",
                       (double)telemetry.kernels_ns / 1e9, rate_of(&telemetry.in, in),
                       rate_of(&telemetry.out, out),
                       telemetry.state == AS_TELEMETRY_CUT ? ", up to a profiler" : "");
    else
        (void)snprintf(text, text_bytes, "not measured");
}
