// SPDX-License-Identifier: Apache-2.0
#include "cli/report/words.h"

#include "cli/check.h"
#include "cli/field.h"
#include "cli/report/category.h"
#include "core/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES_SHOWN = 3, ARGUMENTS_MAX = 64 };

static void add(as_words text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(as_words text, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + used, AS_WORDS - used, format, args);
    va_end(args);
}

const char *as_words_bytes(uint64_t bytes, as_words text)
{
    char amount[AS_TEXT_AMOUNT];
    (void)snprintf(text, AS_WORDS, "%s",
                   bytes == AS_NOT_KNOWN ? "not known" : as_text_amount(bytes, amount));
    return text;
}

const char *as_words_time(uint64_t ns, as_words text)
{
    char time[AS_TEXT_AMOUNT];
    (void)snprintf(text, AS_WORDS, "%s",
                   ns == AS_NOT_KNOWN ? "not known" : as_text_time(ns, time));
    return text;
}

const char *as_words_share(uint64_t part, uint64_t whole, as_words text)
{
    *text = '\0';
    if (part == AS_NOT_KNOWN || whole == AS_NOT_KNOWN || !whole)
        return text;
    const double percent = 100 * (double)part / (double)whole;
    if (part && percent < 1)
        add(text, "<1%%");
    else
        add(text, "%.0f%%", percent);
    return text;
}

const char *as_words_program(json_t *report, as_words text)
{
    json_t *const command = as_field(report, "run.command");
    char *arguments[ARGUMENTS_MAX + 1] = {NULL};
    size_t n;
    json_t *item;
    json_array_foreach(command, n, item)
    {
        if (n < ARGUMENTS_MAX && json_is_string(item))
            arguments[n] = (char *)json_string_value(item);
    }
    const char *name = arguments[0];
    const char *slash = name ? strrchr(name, '/') : NULL;
    name = slash ? slash + 1 : name;
    if (name && as_check_is_python(name)) {
        const char *const script = as_check_script(arguments);
        name = script ? script : name;
        slash = strrchr(name, '/');
        name = slash ? slash + 1 : name;
    }
    *text = '\0';
    add(text, "%s", name ? name : "a program");
    return text;
}

const char *as_words_device(json_t *report, as_words text)
{
    const char *const name = as_field_text(report, "device.name");
    const uint64_t total = as_field_number(report, "device.total_bytes");
    const uint64_t own = as_field_number(report, "device.card_bytes");
    as_words amount;
    *text = '\0';
    if (name)
        add(text, "%s", name);
    if (name && own != AS_NOT_KNOWN && total < own)
        add(text, ", pretending %s", as_words_bytes(total, amount));
    return text;
}

const char *as_words_basis(json_t *report, as_words text)
{
    *text = '\0';
    const char *const compute = as_field_text(report, "device.compute");
    if (json_is_true(as_field(report, "device.simulated")))
        add(text, "simulated%s%s%s, not measured", compute ? " (" : "",
            compute ? compute : "", compute ? ")" : "");
    else
        add(text, "measured");
    return text;
}

const char *as_words_ended(const struct as_rank *rank, as_words text)
{
    const char *const s = rank->steps == 1 ? "" : "s";
    *text = '\0';
    if (!strcmp(rank->ended, "oom"))
        add(text, "out of memory in step %" PRIu64, rank->steps + 1);
    else if (rank->complete)
        add(text, "ended by itself after %" PRIu64 " step%s", rank->steps, s);
    else if (!strcmp(rank->ended, "signal"))
        add(text, "ended by a signal after %" PRIu64 " step%s", rank->steps, s);
    else
        add(text,
            "still running, or cut off, when this was written: %" PRIu64 " step%s seen",
            rank->steps, s);
    return text;
}

static void add_place(json_t *moment, as_words text)
{
    const uint64_t step = as_field_number(moment, "step");
    const char *const phase = as_field_text(moment, "phase");
    const char *const block = as_field_text(moment, "block");
    if (step != AS_NOT_KNOWN)
        add(text, "step %" PRIu64, step + 1);
    if (phase && strcmp(phase, "other") != 0)
        add(text, "%s%s", *text ? ", " : "", phase);
    else if (phase)
        add(text, "%soutside of forward, backward and optimizer", *text ? ", " : "");
    if (block && *block)
        add(text, ", in %s", block);
}

const char *as_words_peak_place(json_t *report, as_words text)
{
    *text = '\0';
    add_place(as_field(report, "peak"), text);
    return text;
}

const char *as_words_budget(json_t *report, as_words text)
{
    json_t *const budget = as_field(report, "budget");
    const uint64_t bytes = as_field_number(budget, "bytes");
    const uint64_t over = as_field_number(budget, "over_bytes");
    const uint64_t spare = as_field_number(budget, "spare_bytes");
    as_words amount, place = "";
    *text = '\0';
    if (bytes == AS_NOT_KNOWN || over == AS_NOT_KNOWN)
        return text;
    add(text, "%s: ", as_words_bytes(bytes, amount));
    if (!over) {
        add(text, "kept, %s to spare", as_words_bytes(spare, amount));
        return text;
    }
    add(text, "exceeded by %s", as_words_bytes(over, amount));
    add_place(budget, place);
    if (*place)
        add(text, ", first in %s", place);
    return text;
}

const char *as_words_disk(json_t *report, as_words text)
{
    json_t *const disk = as_field(report, "moves.disk");
    const uint64_t moved = as_field_number(disk, "out_bytes");
    as_words out, in, most;
    *text = '\0';
    if (moved == AS_NOT_KNOWN || !moved)
        return text;
    add(text, "out %s, in %s, at most %s there", as_words_bytes(moved, out),
        as_words_bytes(as_field_number(disk, "in_bytes"), in),
        as_words_bytes(as_field_number(disk, "peak_bytes"), most));
    return text;
}

const char *as_words_oom_place(json_t *oom, as_words text)
{
    *text = '\0';
    add_place(oom, text);
    return text;
}

const char *as_words_shares(json_t *list, as_words text)
{
    uint64_t below = AS_NOT_KNOWN;
    *text = '\0';
    for (size_t k = 0; k < json_array_size(list); k++) {
        uint64_t next = 0;
        size_t n;
        json_t *item;
        json_array_foreach(list, n, item)
        {
            const uint64_t bytes = as_field_number(item, "bytes");
            if (bytes != AS_NOT_KNOWN && bytes < below && bytes > next)
                next = bytes;
        }
        json_array_foreach(list, n, item)
        {
            const char *const name = as_field_text(item, "category");
            as_words amount;
            if (next && name && as_field_number(item, "bytes") == next)
                add(text, "%s%s %s", *text ? ", " : "", name,
                    as_words_bytes(next, amount));
        }
        below = next;
    }
    return text;
}

// What no tensor held: " + 3.4 GiB cached". Returns its sum.
static uint64_t add_others(json_t *report, as_words text)
{
    uint64_t sum = 0;
    size_t n;
    json_t *item;
    json_array_foreach(as_field(report, "peak.by_category"), n, item)
    {
        const char *const name = as_field_text(item, "category");
        const uint64_t bytes = as_field_number(item, "bytes");
        as_words amount;
        if (!name || as_category_is_tensors(name) || bytes == AS_NOT_KNOWN || !bytes)
            continue;
        add(text, " + %s %s", as_words_bytes(bytes, amount), name);
        sum += bytes;
    }
    return sum;
}

const char *as_words_reconcile(json_t *report, as_words text)
{
    const uint64_t bytes = as_field_number(report, "peak.bytes");
    const uint64_t reserved = as_field_number(report, "peak.reserved_bytes");
    as_words tensors, others = "", all;
    *text = '\0';
    if (bytes == AS_NOT_KNOWN || !as_field_is(report, "peak.source", "allocator"))
        return text;
    const uint64_t sum = add_others(report, others);
    if (sum)
        add(text, "%s in tensors%.300s = %s taken from the card",
            as_words_bytes(bytes, tensors), others, as_words_bytes(bytes + sum, all));
    else if (reserved != AS_NOT_KNOWN && reserved >= bytes)
        add(text, "the framework's allocator had reserved at most %s, %s more than that",
            as_words_bytes(reserved, all), as_words_bytes(reserved - bytes, tensors));
    return text;
}

const char *as_words_advice(json_t *report, as_words text)
{
    size_t n;
    json_t *item;
    *text = '\0';
    json_array_foreach(as_field(report, "advice"), n, item)
    {
        if (json_is_string(item))
            add(text, "%s%s", *text ? "; " : "", json_string_value(item));
    }
    return text;
}

const char *as_words_idle(json_t *report, as_words text)
{
    json_t *const edges = as_field(report, "idle_gap.edges_ns");
    json_t *const bytes = as_field(report, "idle_gap.bytes");
    const bool simulated = json_is_true(as_field(report, "device.simulated"));
    const uint64_t even =
        simulated ? AS_NOT_KNOWN : as_field_number(report, "idle_gap.break_even_ns");
    const uint64_t all = as_field_sum(report, "idle_gap.bytes");
    *text = '\0';
    if (all == AS_NOT_KNOWN || !all)
        return text;
    // With a break-even the bytes above it; without, the middle byte's gap.
    uint64_t above = 0, below = 0;
    for (size_t n = 0; n < json_array_size(bytes); n++) {
        const uint64_t here = as_field_number(json_array_get(bytes, n), "");
        const uint64_t edge = as_field_number(json_array_get(edges, n), "");
        if (here == AS_NOT_KNOWN || edge == AS_NOT_KNOWN)
            continue;
        above += even != AS_NOT_KNOWN && edge >= even ? here : 0;
        if (even == AS_NOT_KNOWN && 2 * below < all && 2 * (below + here) >= all) {
            as_words gap;
            add(text,
                "half of the activation bytes wait %s or longer for their next use%s",
                as_words_time(edge, gap),
                simulated ? ", in the time of this simulation" : "");
        }
        below += here;
    }
    if (even != AS_NOT_KNOWN) {
        as_words gap, share;
        add(text,
            "%s of activation bytes wait longer than the %s that a round trip takes",
            as_words_share(above, all, share), as_words_time(even, gap));
    }
    return text;
}

const char *as_words_fits(json_t *report, as_words text)
{
    json_t *item, *room = NULL, *lacking = NULL;
    as_words amount;
    size_t n;
    *text = '\0';
    json_array_foreach(as_field(report, "verdict"), n, item) // the smallest card first
    {
        const char *const fits = as_field_text(item, "fits");
        if (!fits || !as_field_text(item, "gpu"))
            continue;
        if (strcmp(fits, "no") != 0)
            room = room ? room : item;
        else
            lacking = item;
    }
    if (room) {
        const char *const fits = as_field_text(room, "fits");
        add(text, "%s %s", as_field_text(room, "gpu"),
            strcmp(fits, "as_is") == 0 ? "as it is" : fits);
        const uint64_t usable = as_field_number(room, "usable_bytes");
        const uint64_t peak = as_field_number(room, "peak_bytes");
        if (usable != AS_NOT_KNOWN && peak != AS_NOT_KNOWN && usable >= peak)
            add(text, ", %s to spare", as_words_bytes(usable - peak, amount));
    }
    if (lacking)
        add(text, "%s%s is %s short", room ? "; " : "", as_field_text(lacking, "gpu"),
            as_words_bytes(as_field_number(lacking, "short_bytes"), amount));
    const char *const basis = as_field_text(room ? room : lacking, "basis");
    if (basis && *text)
        add(text, " (%s)", basis);
    return text;
}

const char *as_words_lacking(json_t *report, as_words text)
{
    static const struct {
        const char *field, *what;
    } parts[] = {
        {"timeline.t_ns", "memory over time"}, {"sites", "sites in the code"},
        {"idle_gap.bytes", "idle gaps"},       {"steps.time_ns", "step times"},
        {"verdict", "what it would fit on"},
    };
    *text = '\0';
    for (size_t n = 0; n < sizeof(parts) / sizeof(parts[0]); n++) {
        if (!json_array_size(as_field(report, parts[n].field)))
            add(text, "%s%s", *text ? ", " : "", parts[n].what);
    }
    return text;
}

const char *as_words_outliers(const struct as_run *run, as_words text)
{
    const struct as_rank *const high = &run->ranks[run->highest];
    const struct as_rank *const slow = &run->ranks[run->slowest];
    as_words amount;
    *text = '\0';
    if (run->count < 2 || high->peak_bytes == AS_NOT_KNOWN)
        return text;
    uint64_t least = high->peak_bytes;
    for (size_t n = 0; n < run->count; n++)
        least = run->ranks[n].peak_bytes < least ? run->ranks[n].peak_bytes : least;
    if (least == high->peak_bytes)
        add(text, "every rank peaks at %s", as_words_bytes(least, amount));
    else
        add(text, "rank %" PRIu64 " has the highest peak, %s", high->rank,
            as_words_bytes(high->peak_bytes, amount));
    if (least != high->peak_bytes)
        add(text, "; the lowest is %s", as_words_bytes(least, amount));
    if (run->has_slowest)
        add(text, "; rank %" PRIu64 " has the slowest step, %s", slow->rank,
            as_words_time(slow->step_ns, amount));
    return text;
}

const char *as_words_stack(json_t *report, json_t *site, as_words text)
{
    const uint64_t which = as_field_number(site, "stack");
    const char *const module = as_field_text(site, "module");
    json_t *const frames =
        which == AS_NOT_KNOWN ? NULL
                              : json_array_get(as_field(report, "stacks"), (size_t)which);
    const size_t count = json_array_size(frames);
    *text = '\0';
    for (size_t n = 0; n < count && n < FRAMES_SHOWN; n++) {
        const char *const frame =
            json_string_value(json_array_get(frames, count - 1 - n));
        add(text, "%s%s", n ? " < " : "", frame ? frame : "?");
    }
    if (!*text)
        add(text, "%s", module && *module ? module : "place not known");
    return text;
}
