// SPDX-License-Identifier: Apache-2.0
#include "core/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/complaint.h"
#include "core/log.h"
#include "core/policy.h"
#include "core/text.h"

struct setting {
    const char *name;
    const char *values; // as the help shows them
    const char *otherwise; // when it is not set
    const char *help;
    int (*read)(struct as_settings *settings, const char *value,
                const struct as_complaint *complaint);
};

// --- The others

// A size, or a share of something: one of the two becomes other than 0.
static int read_share(const char *value, uint64_t *bytes, unsigned *percent,
                      const struct as_complaint *complaint)
{
    if (as_text_percent(value, percent) == 0)
        return 0;
    if (as_text_bytes(value, bytes) == 0 && *bytes > 0)
        return 0;
    return as_complain(complaint, "is not a size (64GiB, 48GB, bytes, 50%%)");
}

static int read_host_memory(struct as_settings *settings, const char *value,
                            const struct as_complaint *complaint)
{
    return read_share(value, &settings->host_memory_bytes, &settings->host_memory_percent,
                      complaint);
}

// The folder ends at the last colon.
static int read_disk(struct as_settings *settings, const char *value,
                     const struct as_complaint *complaint)
{
    const char *colon = strrchr(value, ':');
    uint64_t bytes;

    if (as_text_bytes(value, &bytes) == 0)
        return as_complain(complaint, "lacks a folder: FOLDER:%s", value);
    if (!colon || strchr(colon, '/'))
        return as_complain(complaint, "lacks a size: %s:64GiB", value);
    if (colon == value)
        return as_complain(complaint, "lacks a folder: FOLDER%s", value);
    if (as_text_bytes(colon + 1, &settings->disk_bytes))
        return as_complain(complaint,
                           "does not end in a size: %.*s:64GiB (64GiB, 48GB, bytes)",
                           (int)(colon - value), value);
    settings->disk = value;
    settings->disk_folder_bytes = (size_t)(colon - value);
    return 0;
}

static int read_budget(struct as_settings *settings, const char *value,
                       const struct as_complaint *complaint)
{
    return read_share(value, &settings->budget_bytes, &settings->budget_percent,
                      complaint);
}

static int read_steps(struct as_settings *settings, const char *value,
                      const struct as_complaint *complaint)
{
    if (as_text_number(value, &settings->steps) || !settings->steps)
        return as_complain(complaint, "is not a number of steps (1, 2, ...)");
    return 0;
}

static int read_memory(struct as_settings *settings, const char *value,
                       const struct as_complaint *complaint)
{
    if (as_text_bytes(value, &settings->memory_bytes) || !settings->memory_bytes)
        return as_complain(complaint, "is not a card's size (40GiB, 48GB, bytes)");
    return 0;
}

// Paths are tried out, so that a wrong letter is found before the run.
static int read_template(const struct as_settings *settings, const char *value,
                         const struct as_complaint *complaint)
{
    char path[4096];
    const int err = as_settings_path(settings, value, path, sizeof(path));

    if (err == -EINVAL)
        return as_complain(complaint,
                           "has an unknown letter after %% (%%p pid, %%h host, "
                           "%%r rank, %%i run id, %%e program, %%t time, "
                           "%%q{VARIABLE}, %%%%)");
    if (err)
        return as_complain(complaint, "is too long");
    return 0;
}

static int read_report(struct as_settings *settings, const char *value,
                       const struct as_complaint *complaint)
{
    settings->report = strcmp(value, "off") == 0 ? NULL : value;
    return settings->report ? read_template(settings, value, complaint) : 0;
}

static int read_log_file(struct as_settings *settings, const char *value,
                         const struct as_complaint *complaint)
{
    settings->log_file = value;
    return read_template(settings, value, complaint);
}

static int read_ranks(struct as_settings *settings, const char *value,
                      const struct as_complaint *complaint)
{
    settings->ranks = value;
    if (strcmp(value, "all") == 0)
        return 0;
    if (value[strspn(value, "0123456789,")] || *value == ',' || strstr(value, ",,"))
        return as_complain(complaint, "is not a list of ranks (all, 0, or 0,7)");
    return 0;
}

static int read_stacks(struct as_settings *settings, const char *value,
                       const struct as_complaint *complaint)
{
    static const char *const names[] = {"python", "native", "all", "none", NULL};
    const int choice = as_complain_choice(value, "a kind of stacks", names, complaint);

    settings->stacks = value;
    settings->native_stacks = choice == 1 || choice == 2;
    return choice < 0 ? -EINVAL : 0;
}

static int read_skip(struct as_settings *settings, const char *value,
                     const struct as_complaint *complaint)
{
    (void)complaint;
    settings->skip = value;
    return 0;
}

static int read_run_id(struct as_settings *settings, const char *value,
                       const struct as_complaint *complaint)
{
    (void)complaint;
    settings->run_id = value;
    return 0;
}

static int read_log(struct as_settings *settings, const char *value,
                    const struct as_complaint *complaint)
{
    static const char *const names[] = {
        [AS_LOG_QUIET] = "quiet", [AS_LOG_ERROR] = "error", [AS_LOG_WARN] = "warn",
        [AS_LOG_INFO] = "info",   [AS_LOG_DEBUG] = "debug", NULL,
    };
    const int level = as_complain_choice(value, "a log level", names, complaint);

    if (level < 0)
        return level;
    settings->log_level = level;
    return 0;
}

static int read_switch(bool *field, const char *value,
                       const struct as_complaint *complaint)
{
    if (as_text_bool(value, field))
        return as_complain(complaint,
                           "is neither on nor off (1, 0, true, false, on, off, "
                           "yes, no)");
    return 0;
}

static int read_strict(struct as_settings *settings, const char *value,
                       const struct as_complaint *complaint)
{
    return read_switch(&settings->strict, value, complaint);
}

static int read_digest(struct as_settings *settings, const char *value,
                       const struct as_complaint *complaint)
{
    return read_switch(&settings->digest, value, complaint);
}

static int read_cupti(struct as_settings *settings, const char *value,
                      const struct as_complaint *complaint)
{
    return read_switch(&settings->cupti, value, complaint);
}

static int read_sim_gpu(struct as_settings *settings, const char *value,
                        const struct as_complaint *complaint)
{
    (void)complaint;
    settings->sim_gpu = value;
    return 0;
}

static int read_sim_fault(struct as_settings *settings, const char *value,
                          const struct as_complaint *complaint)
{
    (void)complaint;
    settings->sim_fault = value;
    return 0;
}

static int read_sim_gpus(struct as_settings *settings, const char *value,
                         const struct as_complaint *complaint)
{
    uint64_t count;

    if (as_text_number(value, &count) || count < 1 || count > 64)
        return as_complain(complaint, "is not a number of GPUs (1 to 64)");
    settings->sim_gpus = (unsigned)count;
    return 0;
}

bool as_settings_seed(const char *text, uint64_t *seed)
{
    static const char prefix[] = "seed:";

    return !strncmp(text, prefix, strlen(prefix)) &&
           !as_text_number(text + strlen(prefix), seed);
}

static int read_sim_order(struct as_settings *settings, const char *value,
                          const struct as_complaint *complaint)
{
    static const char *const names[] = {"early", "late", "seed:1", NULL};
    uint64_t seed;

    settings->sim_order = value;
    if (as_settings_seed(value, &seed))
        return 0;
    return as_complain_choice(value, "an order", names, complaint) < 0 ? -EINVAL : 0;
}

static int read_sim_compute(struct as_settings *settings, const char *value,
                            const struct as_complaint *complaint)
{
    static const char *const names[] = {"auto", "shapes", "values", NULL};

    settings->sim_compute = value;
    return as_complain_choice(value, "a way to compute", names, complaint) < 0 ? -EINVAL
                                                                               : 0;
}

static int read_sim_check(struct as_settings *settings, const char *value,
                          const struct as_complaint *complaint)
{
    static const char *const names[] = {"off", "races", "first-race", NULL};

    settings->sim_check = value;
    return as_complain_choice(value, "a check", names, complaint) < 0 ? -EINVAL : 0;
}

static const struct setting table[] = {
    // First, since it says what becomes of the others' mistakes.
    {"ACTSWAP_STRICT", "1|0", "1",
     "0: a bad setting becomes a warning and the policy off, instead of an error.",
     read_strict},
    {"ACTSWAP_POLICY",
     "off|offload[:min=SIZE,keep_last=N,only=boundary]|"
     "recompute[:every=K,segments=N|sqrt,blocks=PATTERN,boundary=offload]",
     "off",
     "What becomes of activations. off: nothing, report only. offload: evict them to "
     "pinned host memory, but not tensors below min (4KiB: moving less costs more than "
     "it frees), nor those of the last N blocks (0); only=boundary: those alone that a "
     "block takes from the one before it, not what it makes itself (all). "
     "recompute: have the framework compute those of each block again, once a trial has "
     "shown that they come out the same; every=K: of K blocks together, which keeps "
     "fewer inputs and needs room for K blocks at a time (1); segments=N: of as many as "
     "make N such groups, sqrt: the square root of the number of blocks; blocks=PATTERN: "
     "only of those whose name matches, as of files (all); boundary=offload: what blocks "
     "take goes to pinned host memory meanwhile (it stays).",
     as_policy_read},
    {"ACTSWAP_BUDGET", "SIZE|PERCENT", "none",
     "What the peak of device memory is held against: the report says how much is to "
     "spare, or where it was first exceeded. offload moves no more than it takes to keep "
     "it, from the second step on; without a budget, everything. Percent: of the card.",
     read_budget},
    {"ACTSWAP_MEMORY", "SIZE", "the card's own",
     "Pretend that each card is this small: what it says of itself, and when it is full.",
     read_memory},
    {"ACTSWAP_HOST_MEMORY", "SIZE|PERCENT", "a fair share of what is free",
     "The most pinned host memory for this rank.", read_host_memory},
    {"ACTSWAP_DISK", "FOLDER:SIZE", "none",
     "Where activations go on to once that is full, under offload: a file in this folder "
     "of at most this size, which has no name and ends with the process.",
     read_disk},
    {"ACTSWAP_REPORT", "PATH|off", "actswap-%i/rank%r.json",
     "The report's file. %p pid, %h host, %r rank, %i run id, %e program, %t start "
     "time, %q{VARIABLE}, %%. A file that exists is kept: the new one gets a number.",
     read_report},
    {"ACTSWAP_STEPS", "N", "none",
     "End the program when the next step after so many begins, as by sys.exit().",
     read_steps},
    {"ACTSWAP_RANKS", "all|0|0,7", "all", "The ranks that write a report.", read_ranks},
    {"ACTSWAP_STACKS", "python|native|all|none", "python",
     "How the report says which code saves tensors: by lines of the script, by the "
     "native "
     "functions that they end in (libunwind finds them), or by both.",
     read_stacks},
    {"ACTSWAP_LOG", "quiet|error|warn|info|debug", "info on rank 0, warn on others",
     "How much is said.", read_log},
    {"ACTSWAP_LOG_FILE", "PATH", "standard error", "Where it is said.", read_log_file},
    {"ACTSWAP_SKIP", "NAME,NAME", "none", "Programs to leave alone.", read_skip},
    {"ACTSWAP_DIGEST", "1|0", "0",
     "1: hash the gradients of each step into the report; compare does so.", read_digest},
    {"ACTSWAP_CUPTI", "1|0", "0",
     "1: the report has the times of kernels, copies and blocks as the device itself "
     "measures them, until a profiler starts. CUPTI takes some time of each kernel, and "
     "a "
     "few MiB of the card.",
     read_cupti},
    {"ACTSWAP_RUN_ID", "TEXT", "from the launcher",
     "What the ranks of one launch have in common.", read_run_id},
    {"ACTSWAP_SIM_GPU", "NAME", "none", "The simulated GPU; actswap rehearse sets it.",
     read_sim_gpu},
    {"ACTSWAP_SIM_GPUS", "N", "1", "How many of them; actswap rehearse sets it.",
     read_sim_gpus},
    {"ACTSWAP_SIM_ORDER", "early|late|seed:N", "early",
     "When the simulated device does its work; actswap rehearse sets it.",
     read_sim_order},
    {"ACTSWAP_SIM_COMPUTE", "auto|shapes|values", "auto",
     "What it computes: integers and small tensors, nothing, or everything; actswap "
     "rehearse sets it.",
     read_sim_compute},
    {"ACTSWAP_SIM_CHECK", "off|races|first-race", "off",
     "Whether the simulated device looks for accesses that nothing orders, and goes on "
     "or "
     "ends with status 70 at the first; actswap rehearse sets it.",
     read_sim_check},
    {"ACTSWAP_SIM_FAULT", "FUNCTION:CALL=ERROR,...", "none",
     "Calls that the simulated device refuses, for tests: cudaMalloc:7=2 makes the "
     "seventh cudaMalloc answer 2.",
     read_sim_fault},
};

enum { SETTINGS = sizeof(table) / sizeof(*table) };

static const struct as_settings defaults = {
    .policy = AS_POLICY_OFF,
    // A copy costs several microseconds however small it is, and below this it frees a
    // few of an allocator's units of 512 bytes. Models made for tests save more.
    .offload_min_bytes = 4096,
    .report = "actswap-%i/rank%r.json",
    .ranks = "all",
    .stacks = "python",
    .log_level = -1,
    .strict = true,
    .sim_gpus = 1,
};

// The value of NAME in "NAME=value", or NULL.
static const char *value_of(const char *entry, const char *name)
{
    const size_t length = strlen(name);

    return strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1
                                                                     : NULL;
}

static bool is_known(const char *entry)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (value_of(entry, table[i].name))
            return true;
    }
    return false;
}

static int refuse_unknown(const char *entry, char *message, size_t message_bytes)
{
    const char *names[SETTINGS + 1] = {NULL};
    const size_t prefix = strlen("ACTSWAP_");
    char name[64];

    // Without the common beginning, which would make all of them look alike.
    for (size_t i = 0; i < SETTINGS; i++)
        names[i] = table[i].name + prefix;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(entry, "="), entry);
    const char *nearest = as_settings_nearest(name + prefix, names);
    if (nearest)
        snprintf(message, message_bytes,
                 "%s is not a setting. Did you mean ACTSWAP_%s? (actswap help env lists "
                 "all)",
                 name, nearest);
    else
        snprintf(message, message_bytes,
                 "%s is not a setting (actswap help env lists all)", name);
    return -EINVAL;
}

static int read_setting(struct as_settings *settings, const struct setting *setting,
                        char *const environment[],
                        char *message, // NOLINT(readability-non-const-parameter)
                        size_t message_bytes)
{
    for (; *environment; environment++) {
        const char *value = value_of(*environment, setting->name);

        if (value && *value) {
            const struct as_complaint complaint = {setting->name, value, message,
                                                   message_bytes};

            return setting->read(settings, value, &complaint);
        }
    }
    return 0;
}

int as_settings_read(struct as_settings *settings, char *const environment[],
                     char *message, size_t message_bytes)
{
    *settings = defaults;
    if (message_bytes)
        *message = '\0';

    for (size_t i = 0; i < SETTINGS; i++) {
        const int err =
            read_setting(settings, &table[i], environment, message, message_bytes);
        if (err)
            return err;
    }
    for (; *environment; environment++) {
        if (strncmp(*environment, "ACTSWAP_", strlen("ACTSWAP_")) == 0 &&
            !is_known(*environment))
            return refuse_unknown(*environment, message, message_bytes);
    }
    return 0;
}

void as_settings_switch_off(struct as_settings *settings)
{
    const bool strict = settings->strict;

    *settings = defaults;
    settings->strict = strict;
}

size_t as_settings_help(char *text, size_t text_bytes)
{
    size_t used = 0;

    if (text_bytes)
        *text = '\0';
    for (size_t i = 0; i < SETTINGS; i++) {
        const size_t room = used < text_bytes ? text_bytes - used : 0;
        const int length =
            snprintf(room ? text + used : NULL, room, "%s=%s\n    %s\n    default: %s\n",
                     table[i].name, table[i].values, table[i].help, table[i].otherwise);

        used += length > 0 ? (size_t)length : 0;
    }
    return used;
}
