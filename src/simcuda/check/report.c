// SPDX-License-Identifier: Apache-2.0
#include "simcuda/check/report.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simcuda/check/check.h"
#include "simcuda/simcuda.h"

enum { SAID_MAX = 16, LINE_BYTES = 400 };

static struct sim_site *sites;
static unsigned site_count, site_capacity;
static unsigned *site_slots; // number + 1, open addressing
static unsigned slot_count;

struct pair {
    unsigned now, before;
    enum sim_clash clash;
};

static struct pair *pairs;
static size_t pair_capacity;
static size_t pair_count;
// Read without the lock for the run's report.
static atomic_ulong races, unwritten, clashes;
static char *said[SAID_MAX];
static atomic_uint said_count;

// --- Sites

static bool same_site(const struct sim_site *a, const struct sim_site *b)
{
    return a->name == b->name && a->place == b->place && a->stream == b->stream &&
           a->device == b->device;
}

static unsigned *slot_of(const struct sim_site *site)
{
    uintptr_t sum = (uintptr_t)site->name * 31 + (uintptr_t)site->place;

    sum = (sum * 31 + (uintptr_t)site->stream) * 31 + (uintptr_t)(site->device + 1);
    sum *= 0x9e3779b97f4a7c15u;

    unsigned at = (unsigned)(sum >> 32) & (slot_count - 1);

    while (site_slots[at] && !same_site(&sites[site_slots[at] - 1], site))
        at = (at + 1) & (slot_count - 1);
    return &site_slots[at];
}

static void grow_sites(void)
{
    site_capacity = site_capacity ? site_capacity * 2 : 1024;
    slot_count = site_capacity * 2;

    struct sim_site *more = realloc(sites, site_capacity * sizeof(*sites));

    free(site_slots);
    site_slots = calloc(slot_count, sizeof(*site_slots));
    if (!more || !site_slots)
        sim_fail("no memory for the checker's places");
    sites = more;
    for (unsigned i = 0; i < site_count; i++)
        *slot_of(&sites[i]) = i + 1;
}

unsigned sim_site_intern(const struct sim_site *site)
{
    if (site_count == site_capacity)
        grow_sites();

    unsigned *slot = slot_of(site);

    if (!*slot) {
        sites[site_count] = *site;
        *slot = ++site_count;
    }
    return *slot - 1;
}

const char *sim_text_intern(const char *text)
{
    static char **texts;
    static size_t count;

    for (size_t i = 0; i < count; i++)
        if (!strcmp(texts[i], text))
            return texts[i];

    char **more = realloc(texts, (count + 1) * sizeof(*texts));
    char *copy = strdup(text);

    if (!more || !copy)
        sim_fail("no memory for the checker's places");
    texts = more;
    return texts[count++] = copy;
}

// --- Text

struct line {
    char text[LINE_BYTES];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line,
                                                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int more =
        vsnprintf(line->text + line->used, LINE_BYTES - 1 - line->used, format, args);
    va_end(args);
    line->used += more < 0 ? 0 : (size_t)more;
    if (line->used > LINE_BYTES - 2)
        line->used = LINE_BYTES - 2;
}

static void add_site(struct line *line, const struct sim_site *site)
{
    add(line, "%s", site->name);
    if (site->place)
        add(line, " (%s)", site->place);
    if (site->device < 0)
        return;
    if (site->stream)
        add(line, " on stream %p", site->stream);
    else
        add(line, " on the default stream");
    if (site->device)
        add(line, " of device %d", site->device);
}

static void add_bytes(struct line *line, size_t bytes)
{
    add(line, bytes == 1 ? "%zu byte" : "%zu bytes", bytes);
}

static const char *why(const struct sim_found *found)
{
    if (found->told)
        return ": a thread knows it to be over, and was not seen to hand over to this "
               "one";
    if (found->reused)
        return ": they were freed and given out again meanwhile (record_stream, or wait "
               "before the free)";
    return ": nothing orders the two";
}

static void add_before(struct line *line, const struct sim_report *report,
                       const struct sim_site *before)
{
    const struct sim_found *found = report->found;

    switch (found->clash) {
    case SIM_CLASH_FRESH:
        add(line, "that nothing has written since they were allocated");
        return;
    case SIM_CLASH_FREED:
        add(line, "that were freed before");
        if (!before)
            return;
        add(line, "; the last to write them: ");
        add_site(line, before);
        return;
    default:
        add(line, "that ");
        if (!before) {
            add(line, "somebody else uses: nothing orders the two");
            return;
        }
        add_site(line, before);
        add(line, found->clash == SIM_CLASH_READ ? " may not have read yet"
                  : report->write                ? " may write later"
                                                 : " may not have written yet");
        add(line, "%s", why(found));
    }
}

static void add_now(struct line *line, const struct sim_report *report,
                    const struct sim_site *now)
{
    add_site(line, now);
    add(line, " %s ", report->write ? "writes" : "reads");
    add_bytes(line, report->bytes);
    add(line, " at %p",
        (void *)report->found->address); // NOLINT(performance-no-int-to-ptr)
}

static void print(struct line *line)
{
    line->text[line->used++] = '\n';
    if (write(STDERR_FILENO, line->text, line->used) < 0)
        return;
    line->used = 0;
}

static void say(const struct sim_report *report, const struct sim_site *now,
                const struct sim_site *before)
{
    struct line line = {.used = 0};

    if (report->found->clash == SIM_CLASH_FRESH)
        add(&line, "simcuda: unwritten: ");
    else
        add(&line, "simcuda: race %lu: ", (unsigned long)races);
    add_now(&line, report, now);
    print(&line);
    line.used = 0;
    add(&line, "simcuda:    ");
    add_before(&line, report, before);
    print(&line);
    line.used = 0;
    if (pair_count == SAID_MAX) {
        add(&line, "simcuda: further ones are counted only");
        print(&line);
    }
}

// For the run's report: both lines in one.
static void keep(const struct sim_report *report, const struct sim_site *now,
                 const struct sim_site *before)
{
    struct line line = {.used = 0};

    if (report->found->clash == SIM_CLASH_FRESH || said_count == SAID_MAX)
        return;
    add_now(&line, report, now);
    add(&line, " ");
    add_before(&line, report, before);
    line.text[line.used] = '\0';

    char *text = strdup(line.text);

    if (text)
        said[said_count++] = text;
}

const char *sim_race_said(unsigned which)
{
    return which < said_count ? said[which] : NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

// Streams come and go: a place is its name and line.
static bool same_place(unsigned a, unsigned b)
{
    return same_text(sites[a].name, sites[b].name) &&
           same_text(sites[a].place, sites[b].place);
}

static bool is_new(const struct pair *pair)
{
    for (size_t i = 0; i < pair_count; i++)
        if (pairs[i].clash == pair->clash && same_place(pairs[i].now, pair->now) &&
            same_place(pairs[i].before, pair->before))
            return false;
    return true;
}

static bool remember(const struct pair *pair)
{
    if (!is_new(pair))
        return false;
    if (pair_count == pair_capacity) {
        const size_t capacity = pair_capacity * 2 + 64;
        struct pair *more = realloc(pairs, capacity * sizeof(*pairs));

        if (!more)
            return false;
        pairs = more;
        pair_capacity = capacity;
    }
    pairs[pair_count++] = *pair;
    return true;
}

void sim_report_say(const struct sim_report *report)
{
    const struct sim_found *found = report->found;
    const unsigned before = found->has_before ? found->before.site : report->site;
    const struct pair pair = {report->site, before, found->clash};

    clashes += found->clash != SIM_CLASH_FRESH && !found->again;
    if (!remember(&pair))
        return;
    if (found->clash == SIM_CLASH_FRESH)
        unwritten++;
    else
        races++;

    const struct sim_site *other = found->has_before ? &sites[before] : NULL;

    if (pair_count <= SAID_MAX)
        say(report, &sites[report->site], other);
    keep(report, &sites[report->site], other);
    if (sim_check() == SIM_CHECK_FIRST && races)
        sim_fail("stopped at the first race (ACTSWAP_SIM_CHECK=first-race)");
}

unsigned long sim_report_clashes(void)
{
    return clashes;
}

unsigned long sim_report_pairs(void)
{
    return races;
}

unsigned long sim_report_unwritten(void)
{
    return unwritten;
}
