// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <actswap/actswap.h>

#include "core/clock.h"
#include "core/path.h"
#include "core/settings.h"
#include "pager/pager.h"
#include "report/budget.h"
#include "report/degraded.h"
#include "report/fit.h"
#include "report/json.h"
#include "report/memory.h"
#include "report/oom.h"
#include "report/recompute.h"
#include "report/telemetry.h"
#include "track/ledger.h"
#include "track/notes.h"
#include "track/steps.h"

enum { MADE_MAX = 100 };

// The program and its arguments, as the kernel has them; what is beyond 16 KiB is left
// out.
static void write_command(struct as_json *json)
{
    char text[16384];
    ssize_t bytes = -1;
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        bytes = read(fd, text, sizeof(text) - 1);
        close(fd);
    }
    as_json_open(json, "command", '[');
    if (bytes > 0) {
        text[bytes] = '\0';
        for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(text + at) + 1)
            as_json_text(json, NULL, text + at);
    }
    as_json_close(json, ']');
}

static void write_recompute_settings(struct as_json *json,
                                     const struct as_settings *settings)
{
    if (settings->recompute_every)
        as_json_number(json, "recompute_every", settings->recompute_every);
    if (settings->recompute_segments)
        as_json_number(json, "recompute_segments", settings->recompute_segments);
    else if (settings->recompute_sqrt)
        as_json_text(json, "recompute_segments", "sqrt");
    if (*settings->recompute_blocks)
        as_json_text(json, "recompute_blocks", settings->recompute_blocks);
    if (settings->recompute_boundary)
        as_json_text(json, "recompute_boundary", "offload");
}

static void write_settings(struct as_json *json, const struct as_facts *facts)
{
    const struct as_settings *settings = facts->settings;

    as_json_open(json, "settings", '{');
    as_json_text(json, "policy", as_policy_name(settings->policy));
    if (settings->policy == AS_POLICY_OFFLOAD) {
        as_json_number(json, "offload_min_bytes", settings->offload_min_bytes);
        as_json_number(json, "offload_keep_last", settings->offload_keep_last);
        if (settings->offload_boundary)
            as_json_text(json, "offload_only", "boundary");
        as_json_number(json, "host_memory_bytes", settings->host_memory_bytes);
        as_json_number(json, "host_memory_percent", settings->host_memory_percent);
        if (settings->disk)
            as_json_text(json, "disk", settings->disk);
    }
    if (settings->policy == AS_POLICY_RECOMPUTE)
        write_recompute_settings(json, settings);
    if (facts->budget_bytes)
        as_json_number(json, "budget_bytes", facts->budget_bytes);
    if (settings->memory_bytes)
        as_json_number(json, "memory_bytes", settings->memory_bytes);
    if (settings->steps)
        as_json_number(json, "steps", settings->steps);
    as_json_bool(json, "digest", settings->digest);
    as_json_close(json, '}');
}

static void write_run(struct as_json *json, const struct as_facts *facts)
{
    char host[HOST_NAME_MAX + 1] = "";

    gethostname(host, sizeof(host) - 1);
    as_json_open(json, "run", '{');
    as_json_text(json, "id", facts->run_id);
    write_command(json);
    as_json_number(json, "started_unix_ns", as_clock_started_unix_ns());
    as_json_number(json, "written_unix_ns", as_clock_unix_ns());
    as_json_text(json, "host", host);
    as_json_number(json, "pid", (uint64_t)getpid());
    as_json_number(json, "rank", (uint64_t)facts->rank);
    as_json_number(json, "world_size", (uint64_t)facts->world);
    as_json_text(json, "actswap", AS_VERSION);
    const char *framework = facts->framework;
    const bool torch = framework && strncmp(framework, "torch ", 6) == 0;
    as_json_text(json, "framework", framework);
    as_json_text(json, "torch", torch ? framework + 6 : NULL);
    write_settings(json, facts);
    as_json_close(json, '}');
}

static void write_device(struct as_json *json, const struct as_facts *facts)
{
    as_json_open(json, "device", '{');
    as_json_text(json, "name", *facts->device ? facts->device : NULL);
    as_json_number(json, "total_bytes", facts->device_bytes);
    as_json_number(json, "card_bytes", facts->card_bytes);
    as_json_bool(json, "measured", !facts->simulated);
    as_json_bool(json, "simulated", facts->simulated);
    if (facts->simulated)
        as_json_text(json, "compute", facts->compute);
    if (facts->simulated && strcmp(facts->compute, "auto") == 0) {
        as_json_number(json, "reads_not_computed", facts->missed.unknown);
        as_json_number(json, "reads_assumed", facts->missed.assumed);
        as_json_number(json, "refused", facts->missed.refused);
        as_json_number(json, "values_forgotten", facts->missed.forgotten);
    }
    if (facts->races.checked) {
        as_json_number(json, "races", facts->races.pairs);
        as_json_number(json, "reads_unwritten", facts->races.unwritten);
        as_json_open(json, "races_said", '[');
        for (unsigned i = 0; facts->race_said && facts->race_said(i); i++)
            as_json_text(json, NULL, facts->race_said(i));
        as_json_close(json, ']');
    }
    as_json_close(json, '}');
}

// What a simulated device's clock says of the whole run.
static void write_clock(struct as_json *json, const struct as_times *times)
{
    as_json_open(json, "clock", '{');
    as_json_number(json, "end_ns", times->end_ns);
    as_json_number(json, "kernels_ns", times->kernels_ns);
    as_json_number(json, "in_ns", times->in_ns);
    as_json_number(json, "out_ns", times->out_ns);
    as_json_number(json, "in_hidden_ns", times->in_hidden_ns);
    as_json_number(json, "out_hidden_ns", times->out_hidden_ns);
    as_json_number(json, "stalled_in_ns", times->stalled_in_ns);
    as_json_number(json, "stalled_out_ns", times->stalled_out_ns);
    as_json_number(json, "stalled_kernels_ns", times->stalled_kernels_ns);
    as_json_number(json, "stalled_host_ns", times->stalled_host_ns);
    as_json_number(json, "kernels", times->kernels);
    as_json_number(json, "kernels_unknown", times->unknown);
    as_json_close(json, '}');
}

// --- Steps

static void put_losses(struct as_json *json, const struct as_step *step)
{
    const unsigned kept = step->root_count < AS_ROOTS ? step->root_count : AS_ROOTS;

    as_json_open(json, NULL, '[');
    for (unsigned i = 0; i < kept; i++) {
        if (step->roots[i].bytes)
            as_json_bits(json, NULL, step->roots[i].bits, step->roots[i].bytes);
        else
            as_json_text(json, NULL, NULL);
    }
    as_json_close(json, ']');
}

static void put_digest(struct as_json *json, const struct as_step *step)
{
    if (step->has_digest)
        as_json_bits(json, NULL, &step->gradient_digest, sizeof(step->gradient_digest));
    else
        as_json_text(json, NULL, NULL);
}

#define FIGURE(name)                                                                     \
    static void put_##name(struct as_json *json, const struct as_step *step)             \
    {                                                                                    \
        as_json_number(json, NULL, step->name);                                          \
    }
static void put_end_ns(struct as_json *json, const struct as_step *step)
{
    const uint64_t start_ns = as_clock_started_ns();

    as_json_number(json, NULL, step->end_ns > start_ns ? step->end_ns - start_ns : 0);
}

FIGURE(time_ns)
FIGURE(peak_bytes)
FIGURE(peak_reserved_bytes)
FIGURE(after_forward_bytes)
FIGURE(out_bytes)
FIGURE(in_bytes)
FIGURE(released_bytes)

static const struct {
    const char *name;
    void (*put)(struct as_json *json, const struct as_step *step);
} columns[] = {
    {"peak_bytes", put_peak_bytes},
    {"peak_reserved_bytes", put_peak_reserved_bytes},
    {"after_forward_bytes", put_after_forward_bytes},
    {"out_bytes", put_out_bytes},
    {"in_bytes", put_in_bytes},
    {"released_bytes", put_released_bytes},
    {"end_ns", put_end_ns},
    {"time_ns", put_time_ns},
    {"loss_bits", put_losses},
    {"gradient_digest", put_digest},
};

// The kept ones, in order.
static bool next_step(struct as_steps *steps, uint64_t omitted, uint64_t *number,
                      struct as_step *step)
{
    const uint64_t count = as_steps_count(steps);

    while (*number < count) {
        if (*number == AS_STEPS_FIRST)
            *number += omitted;
        if (as_steps_read(steps, (*number)++, step))
            return true;
    }
    return false;
}

static void write_column(struct as_json *json, struct as_steps *steps, uint64_t omitted,
                         int category)
{
    struct as_step step;
    bool any = false;

    for (uint64_t number = 0; !any && next_step(steps, omitted, &number, &step);)
        any = step.end_by_category[category];
    if (!any)
        return;
    as_json_open(json, actswap_category_name((enum actswap_category)category), '[');
    for (uint64_t number = 0; next_step(steps, omitted, &number, &step);)
        as_json_number(json, NULL, step.end_by_category[category]);
    as_json_close(json, ']');
}

// Who says where a step ends.
static const char *detected_by(const struct as_facts *facts)
{
    if (!as_steps_count(facts->steps))
        return NULL;
    if (facts->moments & 1U << ACTSWAP_OPTIMIZER)
        return "optimizer";
    return facts->moments & 1U << ACTSWAP_BACKWARD ? "period" : "user";
}

static void write_steps(struct as_json *json, const struct as_facts *facts)
{
    struct as_steps *steps = facts->steps;
    const uint64_t count = as_steps_count(steps);
    struct as_step step;

    as_json_open(json, "steps", '{');
    as_json_number(json, "count", count);
    as_json_text(json, "detected_by", detected_by(facts));
    // Between the first and the last ones of a long run some are not kept.
    const uint64_t gap_end = count >= AS_STEPS_LAST ? count - AS_STEPS_LAST + 1 : 0;
    const uint64_t omitted = gap_end > AS_STEPS_FIRST ? gap_end - AS_STEPS_FIRST : 0;
    as_json_number(json, "omitted_from", omitted ? AS_STEPS_FIRST : count);
    as_json_number(json, "omitted_count", omitted);
    for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
        as_json_open(json, columns[i].name, '[');
        for (uint64_t number = 0; next_step(steps, omitted, &number, &step);)
            columns[i].put(json, &step);
        as_json_close(json, ']');
    }
    as_json_open(json, "end_by_category", '{');
    for (int i = 0; i < ACTSWAP_CATEGORIES; i++)
        write_column(json, steps, omitted, i);
    as_json_close(json, '}');
    as_json_text(json, "digest_kind", "xxh64");
    as_json_close(json, '}');
}

// --- The rest

static void write_disk(struct as_json *json, const struct as_disk_totals *disk)
{
    as_json_open(json, "disk", '{');
    as_json_number(json, "out_bytes", disk->out_bytes);
    as_json_number(json, "in_bytes", disk->in_bytes);
    as_json_number(json, "peak_bytes", disk->peak_bytes);
    as_json_number(json, "end_bytes", disk->bytes);
    as_json_close(json, '}');
}

static void write_moves(struct as_json *json, const struct as_facts *facts)
{
    struct as_ledger_totals totals;

    as_ledger_totals(facts->ledger, -1, &totals);
    as_json_open(json, "moves", '{');
    as_json_number(json, "out_bytes", facts->pager->out_bytes);
    as_json_number(json, "in_bytes", facts->pager->in_bytes);
    as_json_number(json, "released_bytes", totals.released_bytes);
    as_json_number(json, "pinned_peak_bytes", facts->pager->pinned_peak_bytes);
    const uint64_t cap = facts->pager->pinned_cap_bytes;
    if (cap && cap != UINT64_MAX)
        as_json_number(json, "pinned_cap_bytes", cap);
    else
        as_json_text(json, "pinned_cap_bytes", NULL);
    as_json_number(json, "pages", facts->pager->pages_made);
    as_json_number(json, "let_go", facts->pager->let_go);
    as_json_number(json, "brought", facts->pager->brought);
    as_json_number(json, "ahead", facts->pager->ahead);
    as_json_number(json, "held_elsewhere", facts->pager->held_elsewhere);
    if (facts->settings->disk)
        write_disk(json, &facts->pager->disk);
    as_json_close(json, '}');
}

static void write_kept(struct as_json *json, const struct as_pager_totals *pager)
{
    as_json_open(json, "kept", '[');
    for (int i = 0; i < ACTSWAP_KEPT_REASONS; i++) {
        if (!pager->kept[i])
            continue;
        as_json_open(json, NULL, '{');
        as_json_text(json, "reason", actswap_reason_name((enum actswap_reason)i));
        as_json_number(json, "count", pager->kept[i]);
        as_json_number(json, "bytes", pager->kept_bytes[i]);
        as_json_close(json, '}');
    }
    as_json_close(json, ']');
}

static void write_notes(struct as_json *json, struct as_notes *notes)
{
    struct as_note note;

    as_json_open(json, "notes", '[');
    for (size_t i = 0; (note = as_notes_read(notes, i)).what; i++) {
        as_json_open(json, NULL, '{');
        as_json_text(json, "what", note.what);
        as_json_number(json, "count", note.count);
        as_json_close(json, '}');
    }
    as_json_close(json, ']');
}

static void write_degraded(struct as_json *json, const struct as_pager_totals *pager)
{
    as_json_open(json, "degraded", '[');
    char text[AS_DEGRADED_BYTES];
    for (unsigned i = 0; as_degraded_text(pager, i, text); i++) {
        as_json_open(json, NULL, '{');
        as_json_text(json, "what", text);
        as_json_close(json, '}');
    }
    as_json_close(json, ']');
}

static void write_warnings(struct as_json *json, struct as_notes *warnings)
{
    struct as_note note;

    as_json_open(json, "warnings", '[');
    for (size_t i = 0; (note = as_notes_read(warnings, i)).what; i++)
        as_json_text(json, NULL, note.what);
    as_json_close(json, ']');
}

static int write_all(int fd, const struct as_facts *facts)
{
    struct as_json json;

    as_json_start(&json, fd);
    as_json_open(&json, NULL, '{');
    as_json_text(&json, "schema", "actswap.report/1");
    as_json_bool(&json, "complete", facts->complete);
    as_json_text(&json, "ended", facts->ended);
    write_run(&json, facts);
    write_device(&json, facts);
    if (facts->simulated)
        write_clock(&json, &facts->times);
    as_telemetry_write(&json, facts);
    write_steps(&json, facts);
    as_report_peak(&json, facts);
    as_report_taken(&json, facts);
    as_budget_write(&json, facts);
    as_report_timeline(&json, facts);
    as_report_places(&json, facts);
    if (facts->oom)
        as_oom_write(&json, facts->oom);
    write_moves(&json, facts);
    as_fit_write(&json, facts);
    as_recompute_write(&json, facts);
    write_kept(&json, facts->pager);
    write_notes(&json, facts->notes);
    char text[AS_DEGRADED_BYTES];
    if (as_degraded_text(facts->pager, 0, text))
        write_degraded(&json, facts->pager);
    as_report_advices(&json, facts);
    write_warnings(&json, facts->warnings);
    as_json_close(&json, '}');
    return as_json_finish(&json);
}

// A write beyond RLIMIT_FSIZE sends a signal that would end the user's run.
static int write_within_limit(int fd, const struct as_facts *facts)
{
    const struct timespec at_once = {0};
    sigset_t limit, before, pending;

    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    sigpending(&pending);
    if (pthread_sigmask(SIG_BLOCK, &limit, &before))
        return -errno;
    const int err = write_all(fd, facts);
    if (err == -EFBIG && !sigismember(&pending, SIGXFSZ))
        sigtimedwait(&limit, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

// Writes a whole file or none.
static int write_file(const char *path, int flags, const struct as_facts *facts)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    if (fd < 0)
        return -errno;

    int err = write_within_limit(fd, facts);
    if (close(fd) && !err)
        err = -errno;
    if (err)
        unlink(path);
    return err;
}

int as_report_create(char *path, size_t path_bytes, const struct as_facts *facts)
{
    char made[PATH_MAX];
    int err = -EEXIST;

    // Another machine that shares the folder may have a process of the same number.
    for (int n = 0; n < MADE_MAX && err == -EEXIST; n++) {
        const int length =
            snprintf(made, sizeof(made), "%s.%d.%d.tmp", path, (int)getpid(), n);

        if (length < 0 || (size_t)length >= sizeof(made))
            return -ENAMETOOLONG;
        err = write_file(made, O_EXCL, facts);
    }
    if (err)
        return err;
    err = as_path_place(made, path, path_bytes);
    if (err)
        unlink(made);
    return err;
}

int as_report_write(const char *path, const struct as_facts *facts)
{
    char made[PATH_MAX];
    const int length = snprintf(made, sizeof(made), "%s.tmp", path);

    if (length < 0 || (size_t)length >= sizeof(made))
        return -ENAMETOOLONG;
    int err = write_file(made, O_TRUNC, facts);
    if (!err && rename(made, path)) {
        err = -errno;
        unlink(made);
    }
    return err;
}
