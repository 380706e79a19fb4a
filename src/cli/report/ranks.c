// SPDX-License-Identifier: Apache-2.0
#include "cli/report/ranks.h"

#include "cli/document.h"
#include "cli/error.h"
#include "cli/field.h"
#include "cli/folder.h"
#include "cli/report/timeline.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WORLD_MAX = 1 << 20 };

static void take_curve(struct as_rank *rank, json_t *report)
{
    struct as_timeline timeline;
    if (!as_timeline_read(&timeline, report)) {
        rank->curve_count =
            as_timeline_reduce(timeline.total, timeline.rows, rank->curve, AS_RANK_CURVE);
        as_timeline_finish(&timeline);
        if (rank->curve_count)
            return;
    }
    json_t *const peaks = as_field(report, "steps.peak_bytes");
    const size_t count = json_array_size(peaks);
    uint64_t *const values = calloc(count + 1, sizeof(*values));
    for (size_t n = 0; values && n < count; n++) {
        const uint64_t value = as_field_number(json_array_get(peaks, n), "");
        values[n] = value == AS_NOT_KNOWN ? 0 : value;
    }
    rank->curve_of_steps = true;
    rank->curve_count =
        values ? as_timeline_reduce(values, count, rank->curve, AS_RANK_CURVE) : 0;
    free(values);
}

static void take(struct as_rank *rank, json_t *report)
{
    const char *const ended = as_field_text(report, "ended");
    rank->complete = json_is_true(as_field(report, "complete"));
    (void)snprintf(rank->ended, sizeof(rank->ended), "%s", ended ? ended : "");
    const bool seen = !as_field_is(report, "peak.source", "none");
    rank->peak_bytes = seen ? as_field_number(report, "peak.bytes") : AS_NOT_KNOWN;
    rank->reserved_bytes =
        seen ? as_field_number(report, "peak.reserved_bytes") : AS_NOT_KNOWN;
    rank->total_bytes = as_field_number(report, "device.total_bytes");
    if (!rank->total_bytes)
        rank->total_bytes = AS_NOT_KNOWN;
    const uint64_t steps = as_field_number(report, "steps.count");
    rank->steps = steps == AS_NOT_KNOWN ? 0 : steps;
    rank->step_ns = as_field_median(report, "steps.time_ns", rank->steps > 1);
    take_curve(rank, report);
}

static char *key_of(json_t *report)
{
    const char *const id = as_field_text(report, "run.id");
    json_t *const settings = as_field(report, "run.settings");
    char *const text =
        settings ? json_dumps(settings, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    char *key = NULL;
    if (asprintf(&key, "%s %s", id ? id : "", text ? text : "") < 0)
        key = NULL;
    free(text);
    return key;
}

static char *folder_of(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
}

static bool has_rank(const struct as_run *run, uint64_t rank)
{
    for (size_t n = 0; n < run->count; n++) {
        if (run->ranks[n].rank == rank)
            return true;
    }
    return false;
}

static struct as_run *find_run(struct as_runs *runs, const char *key, const char *folder,
                               uint64_t rank)
{
    for (size_t n = 0; n < runs->count; n++) {
        struct as_run *const run = &runs->runs[n];
        if (!strcmp(run->key, key) &&
            (!strcmp(run->folder, folder) || !has_rank(run, rank)))
            return run;
    }
    return NULL;
}

// Owns `key` and `folder` from here on.
static struct as_run *add_run(struct as_runs *runs, char *key, char *folder,
                              json_t *report)
{
    struct as_run *const all =
        reallocarray(runs->runs, runs->count + 1, sizeof(*runs->runs));
    if (!all) {
        free(key);
        free(folder);
        return NULL;
    }
    runs->runs = all;
    struct as_run *const run = &all[runs->count++];
    *run = (struct as_run){.key = key, .folder = folder};
    const char *const policy = as_field_text(report, "run.settings.policy");
    (void)snprintf(run->policy, sizeof(run->policy), "%s", policy ? policy : "run");
    return run;
}

static struct as_run *run_of(struct as_runs *runs, json_t *report, const char *path,
                             uint64_t rank)
{
    char *const key = key_of(report);
    char *const folder = folder_of(path);
    struct as_run *run = NULL;
    if (key && folder) {
        run = find_run(runs, key, folder, rank);
        if (!run)
            return add_run(runs, key, folder, report);
    }
    free(key);
    free(folder);
    return run;
}

static uint64_t or_else(uint64_t value, uint64_t otherwise)
{
    return value == AS_NOT_KNOWN ? otherwise : value;
}

// A report that was written when memory ran out lies beside the one of the same process.
static bool join(struct as_run *run, json_t *report, uint64_t rank, uint64_t pid)
{
    for (size_t n = 0; n < run->count; n++) {
        struct as_rank *const other = &run->ranks[n];
        if (other->rank != rank || other->pid != pid || !pid)
            continue;
        if (as_field(report, "oom") && !other->oom) {
            other->oom = json_incref(report);
            return true;
        }
        if (other->report && as_field(other->report, "oom") && !other->oom) {
            other->oom = other->report;
            other->report = json_incref(report);
            take(other, report);
            return true;
        }
    }
    return false;
}

// Whether a rank's report is to be kept rather than another's.
static bool is_better(const struct as_runs *runs, const struct as_rank *rank,
                      const struct as_rank *other)
{
    if (runs->wanted_rank != AS_NOT_KNOWN &&
        (rank->rank == runs->wanted_rank) != (other->rank == runs->wanted_rank))
        return rank->rank == runs->wanted_rank;
    return or_else(rank->peak_bytes, 0) > or_else(other->peak_bytes, 0);
}

// Keeps in full only what will be shown: a thousand reports would not fit in memory.
static void keep(const struct as_runs *runs, struct as_run *run)
{
    struct as_rank *worst = NULL;
    size_t kept = 0;
    for (struct as_rank *rank = run->ranks; rank < run->ranks + run->count; rank++) {
        if (!rank->report)
            continue;
        kept++;
        if (!worst || !is_better(runs, rank, worst))
            worst = rank;
    }
    if (!runs->keep || kept <= runs->keep)
        return;
    json_decref(worst->report);
    worst->report = NULL;
}

static int add_report(struct as_runs *runs, const char *path, json_t *report)
{
    const uint64_t number = or_else(as_field_number(report, "run.rank"), 0);
    const uint64_t pid = or_else(as_field_number(report, "run.pid"), 0);
    struct as_run *const run = run_of(runs, report, path, number);
    if (run && join(run, report, number, pid))
        return 0;
    struct as_rank *const ranks =
        run ? reallocarray(run->ranks, run->count + 1, sizeof(*ranks)) : NULL;
    if (!ranks)
        return as_error(AS_EXIT_FAILED, "out of memory");
    run->ranks = ranks;
    struct as_rank *const rank = &ranks[run->count++];
    *rank = (struct as_rank){
        .file = strdup(path),
        .report = json_incref(report),
        .rank = number,
        .pid = pid,
        .world = or_else(as_field_number(report, "run.world_size"), 1),
    };
    if (rank->world > WORLD_MAX)
        rank->world = 1; // nobody has so many: not known
    take(rank, report);
    keep(runs, run);
    return 0;
}

static int read_file(struct as_runs *runs, const char *path)
{
    json_t *const report = as_document_read(path);
    if (!report)
        return AS_EXIT_FAILED;
    runs->files++;
    const int err = add_report(runs, path, report);
    json_decref(report);
    return err;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

// The folder's reports; with `deeper` also those of its folders.
static int read_folder(struct as_runs *runs, const char *path, bool deeper)
{
    struct dirent **entries = NULL;
    const int count = scandir(path, &entries, is_visible, versionsort);
    if (count < 0)
        return as_error(AS_EXIT_FAILED, "cannot read the folder %s: %m", path);
    int err = 0;
    for (int n = 0; n < count && !err; n++) {
        const char *const dot = strrchr(entries[n]->d_name, '.');
        char below[PATH_MAX];
        struct stat status;
        err = as_folder_join(below, path, entries[n]->d_name, "");
        if (err || stat(below, &status))
            continue;
        if (S_ISDIR(status.st_mode) && deeper)
            err = read_folder(runs, below, false);
        else if (S_ISREG(status.st_mode) && dot && !strcmp(dot, ".json"))
            err = read_file(runs, below);
    }
    for (int n = 0; n < count; n++)
        free(entries[n]);
    free(entries);
    return err;
}

int as_runs_read(struct as_runs *runs, const char *path)
{
    char plain[PATH_MAX];
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    (void)snprintf(plain, sizeof(plain), "%.*s", (int)length, path);
    struct stat status;
    if (stat(plain, &status) || !S_ISDIR(status.st_mode))
        return read_file(runs, plain);
    const size_t before = runs->files;
    const int err = read_folder(runs, plain, true);
    if (!err && runs->files == before) {
        return as_error(AS_EXIT_FAILED,
                        "no report (*.json) in %s: is it the folder that the run named?",
                        plain);
    }
    return err;
}

static int by_rank(const void *a, const void *b)
{
    const struct as_rank *const x = a, *const y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static int settle_run(struct as_run *run, uint64_t wanted)
{
    qsort(run->ranks, run->count, sizeof(*run->ranks), by_rank);
    run->highest = run->slowest = 0;
    for (size_t n = 0; n < run->count; n++) {
        const struct as_rank *const rank = &run->ranks[n];
        run->world = rank->world > run->world ? rank->world : run->world;
        if (or_else(rank->peak_bytes, 0) >
            or_else(run->ranks[run->highest].peak_bytes, 0))
            run->highest = n;
        if (rank->step_ns == AS_NOT_KNOWN)
            continue;
        if (!run->has_slowest || rank->step_ns > run->ranks[run->slowest].step_ns)
            run->slowest = n;
        run->has_slowest = true;
    }
    run->shown = run->highest;
    if (wanted == AS_NOT_KNOWN)
        return 0;
    for (run->shown = 0; run->shown < run->count; run->shown++) {
        if (run->ranks[run->shown].rank == wanted)
            return 0;
    }
    return as_error(AS_EXIT_USAGE,
                    "no report of rank %" PRIu64 " in %s: %zu of %" PRIu64
                    " ranks left one",
                    wanted, run->folder, run->count, run->world);
}

static const char *last_part(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Two runs of one policy are told apart by their folder or, within one, by their file.
static void name_run(const struct as_runs *runs, struct as_run *run)
{
    bool same_policy = false, same_folder = false;
    for (const struct as_run *other = runs->runs; other < runs->runs + runs->count;
         other++) {
        if (other == run)
            continue;
        same_policy = same_policy || !strcmp(other->policy, run->policy);
        same_folder =
            same_folder || !strcmp(last_part(other->folder), last_part(run->folder));
    }
    const char *const name = !same_policy   ? run->policy
                             : !same_folder ? last_part(run->folder)
                                            : last_part(run->ranks[0].file);
    (void)snprintf(run->name, sizeof(run->name), "%s", name);
}

int as_runs_settle(struct as_runs *runs)
{
    for (size_t n = 0; n < runs->count; n++) {
        const int err = settle_run(&runs->runs[n], runs->wanted_rank);
        if (err)
            return err;
        name_run(runs, &runs->runs[n]);
    }
    return 0;
}

void as_runs_finish(struct as_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        struct as_run *const run = &runs->runs[i];
        for (size_t n = 0; n < run->count; n++) {
            struct as_rank *const rank = &run->ranks[n];
            json_decref(rank->report);
            json_decref(rank->oom);
            free(rank->file);
        }
        free(run->ranks);
        free(run->folder);
        free(run->key);
    }
    free(runs->runs);
    *runs = (struct as_runs){0};
}

size_t as_run_missing(const struct as_run *run, char *text, size_t bytes)
{
    size_t missing = 0, used = 0, next = 0;
    *text = '\0';
    for (uint64_t rank = 0; rank < run->world; rank++) {
        while (next < run->count && run->ranks[next].rank < rank)
            next++;
        if (next < run->count && run->ranks[next].rank == rank)
            continue;
        const uint64_t first = rank;
        const uint64_t end = next < run->count ? run->ranks[next].rank : run->world;
        rank = end < run->world ? end - 1 : run->world - 1;
        missing += rank - first + 1;
        if (used >= bytes)
            continue;
        used += (size_t)snprintf(text + used, bytes - used, "%s%" PRIu64,
                                 used ? ", " : "", first);
        if (rank > first && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%" PRIu64,
                                     rank > first + 1 ? " to " : ", ", rank);
    }
    return missing;
}
