// SPDX-License-Identifier: Apache-2.0
#include "cli/check.h"
#include "cli/ending.h"
#include "cli/error.h"
#include "cli/files.h"
#include "cli/folder.h"
#include "cli/launch.h"
#include "cli/policies.h"
#include "cli/progress.h"
#include "cli/sides.h"
#include "cli/simulate.h"
#include "cli/verbs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLICIES "off,offload,recompute,recompute:boundary=offload"

// All runs of one comparison.
struct comparison {
    struct as_options options;
    struct as_policies policies;
    struct as_folder folder;
    char *path; // of the program
    struct as_result results[AS_TABLE_COLUMNS];
    size_t count;
    struct as_result again; // of the first policy, when that is off
};

static bool has_gpu(void)
{
    return !access("/dev/nvidiactl", F_OK) || !access("/dev/dxg", F_OK);
}

// Where there is no GPU, one is simulated.
static void choose_device(struct as_options *options)
{
    if (options->gpu || has_gpu())
        return;
    options->gpu = AS_SIMULATE_GPU;
    (void)fprintf(stderr, "actswap: no NVIDIA GPU here, so " AS_SIMULATE_GPU
                          " is simulated; --gpu NAME for another\n");
}

static int check_device(const struct as_options *options)
{
    if (options->gpu)
        return as_simulate(options, "values");
    if (options->compute || options->order) {
        return as_error(AS_EXIT_USAGE,
                        "--compute and --order are for a simulated GPU: add "
                        "--gpu " AS_SIMULATE_GPU);
    }
    return as_check_not_simulated();
}

static int check_policies(struct comparison *all)
{
    const char *const list = all->options.policy ? all->options.policy : POLICIES;
    const int err = as_policies_split(&all->policies, list);
    if (err) {
        return as_error(AS_EXIT_USAGE, "-p %s: %s", list,
                        err == -E2BIG ? "too many policies"
                                      : "a policy's name is missing");
    }
    for (size_t n = 0; n < all->policies.count; n++) {
        int code = as_launch_set("ACTSWAP_POLICY", all->policies.names[n]);
        if (!code)
            code = as_check_settings(&all->options);
        if (code)
            return code;
    }
    return 0;
}

static int prepare(struct comparison *all)
{
    const struct as_options *const options = &all->options;
    int err = as_check_program(options, &all->path);
    if (!err)
        choose_device(&all->options);
    if (!err)
        err = check_device(options);
    if (!err)
        err = check_policies(all);
    if (!err)
        err = as_launch_name_run();
    if (!err)
        err = as_launch_set("ACTSWAP_DIGEST", "1");
    if (!err)
        err = as_folder_make(&all->folder, options->folder, options->force);
    if (err)
        return err;
    err = as_files_preload(options->gpu ? AS_STACK_SIMULATED : AS_STACK_REAL);
    if (err)
        as_folder_discard(&all->folder);
    return err;
}

// "offload", and "offload.2" when the same policy is run again.
static void name_run(const struct comparison *all, size_t run, char *name, size_t bytes)
{
    size_t same = 1;
    for (size_t n = 0; n < run; n++)
        same += !strcmp(all->policies.names[n], all->policies.names[run]);
    if (same > 1)
        (void)snprintf(name, bytes, "%s.%zu", all->policies.names[run], same);
    else
        (void)snprintf(name, bytes, "%s", all->policies.names[run]);
}

static int read_result(struct comparison *all, struct as_result *result, const char *name,
                       int status)
{
    char folder[PATH_MAX], path[PATH_MAX], file[NAME_MAX + 1];
    if (as_folder_join(folder, all->folder.shown, name, ""))
        return AS_EXIT_USAGE;
    if (as_folder_count_reports(folder, file)) {
        if (as_folder_join(path, folder, file, "") || as_result_read(result, path))
            return AS_EXIT_USAGE;
    }
    if (status && result->outcome == AS_OUTCOME_OK)
        result->outcome = AS_OUTCOME_FAILED;
    result->exit_status = status;
    (void)snprintf(result->name, sizeof(result->name), "%s", name);
    return 0;
}

static const char *outcome_text(const struct as_result *result)
{
    switch (result->outcome) {
    case AS_OUTCOME_OK:
        return "ok";
    case AS_OUTCOME_OOM:
        return "out of memory";
    case AS_OUTCOME_FAILED:
        return "failed";
    case AS_OUTCOME_NONE:
        break;
    }
    return "no report";
}

static bool checks_itself(const struct comparison *all)
{
    const char *const compute = all->options.compute;

    return !strcmp(all->policies.names[0], "off") && all->policies.count > 1 &&
           strcmp(all->policies.names[1], "off") != 0 &&
           !(compute && strcmp(compute, "values") != 0);
}

// One run, the `number`th that is shown. A non-zero result ends the comparison.
static int run_one(struct comparison *all, const char *policy, const char *name,
                   size_t number, struct as_result *result)
{
    char log[PATH_MAX];
    int err = as_folder_join(log, all->folder.path, name, ".log");
    if (!err)
        err = as_launch_set("ACTSWAP_POLICY", policy);
    if (!err)
        err = as_folder_report_to(&all->folder, name);
    if (err)
        return err;

    struct as_progress progress;
    as_progress_begin(&progress, number, all->policies.count + checks_itself(all), name);
    int status = 0;
    err = as_launch_wait(all->path, all->options.program, log, &progress.clock, &status);
    if (!err)
        err = read_result(all, result, name, status);
    as_progress_end(&progress, err ? "not started" : outcome_text(result));
    if (err)
        return err;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
        return as_launch_end_as(status);
    (void)as_folder_join(log, all->folder.shown, name, ".log");
    if (result->outcome == AS_OUTCOME_NONE) {
        (void)as_ending_explain(all->path, all->options.program, status, log);
        return AS_EXIT_USAGE;
    }
    if (result->outcome == AS_OUTCOME_FAILED)
        as_ending_failed(all->options.program, status, log, result->report);
    return 0;
}

// A script that differs from itself cannot be held against anything.
static int check_itself(struct comparison *all)
{
    if (!checks_itself(all) || all->results[0].outcome != AS_OUTCOME_OK)
        return 0;
    const int err = run_one(all, "off", "off.again", 2, &all->again);
    if (err)
        return err;
    const size_t step = as_sides_first_difference(&all->results[0], &all->again);
    if (!step)
        return 0;
    return as_error(AS_EXIT_NOT_SAME,
                    "not comparable: two runs with off differ from step %zu on. A fixed "
                    "seed, and torch.use_deterministic_algorithms(True), make a script "
                    "the same each time; -p off,off shows both runs",
                    step);
}

static int run_policies(struct comparison *all)
{
    for (size_t run = 0; run < all->policies.count; run++) {
        char name[AS_RESULT_NAME_BYTES];
        name_run(all, run, name, sizeof(name));
        const size_t number = run + 1 + (run && checks_itself(all));
        int err =
            run_one(all, all->policies.names[run], name, number, &all->results[run]);
        if (err)
            return err;
        all->count = run + 1;
        err = run ? 0 : check_itself(all);
        if (err)
            return err;
    }
    return 0;
}

static void print_command(const struct comparison *all, const struct as_result *best)
{
    (void)printf("\nreports: actswap report");
    as_launch_print_word(all->folder.shown, stdout);
    (void)printf(" --html report.html   output: %s/*.log\n", all->folder.shown);
    if (!best)
        return;
    (void)printf("next: actswap run -p %s --", best->name);
    for (char *const *arg = all->options.program; *arg; arg++)
        as_launch_print_word(*arg, stdout);
    (void)printf("%s\n", all->options.gpu ? "   # on the card itself" : "");
}

static int exit_code(const struct comparison *all)
{
    bool failed = false, over = false;
    size_t ended = 0;
    for (size_t n = 0; n < all->count; n++) {
        failed = failed || all->results[n].outcome == AS_OUTCOME_FAILED ||
                 all->results[n].outcome == AS_OUTCOME_NONE;
        ended += all->results[n].outcome == AS_OUTCOME_OK;
        over = over || (all->results[n].over_bytes && !all->results[n].is_off);
    }
    const enum as_verdict verdict = as_sides_judge(all->results, all->count);
    if (verdict == AS_VERDICT_DIFFER)
        return AS_EXIT_FAILED;
    if (failed || !ended)
        return AS_EXIT_USAGE;
    return over ? AS_EXIT_FAILED : 0;
}

static const char *program_name(const struct comparison *all)
{
    const char *const script = as_check_is_python(all->options.program[0])
                                   ? as_check_script(all->options.program)
                                   : NULL;
    const char *const name = script ? script : all->options.program[0];
    const char *const slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static int run_all(struct comparison *all)
{
    int err = prepare(all);
    if (err)
        return err;
    err = run_policies(all);
    if (err)
        return err;
    const struct as_look look = as_look_of(stdout, all->options.ascii);
    (void)putchar('\n');
    as_sides_print(all->results, all->count, program_name(all), stdout, look);
    print_command(all, as_sides_best(all->results, all->count));
    return exit_code(all);
}

static bool is_folder(const char *path)
{
    struct stat status;
    return !stat(path, &status) && S_ISDIR(status.st_mode);
}

// Reports of earlier runs: each argument is a folder with one.
static int read_all(struct comparison *all)
{
    for (char *const *arg = all->options.program; *arg; arg++) {
        char file[NAME_MAX + 1], path[PATH_MAX];
        if (all->count == AS_TABLE_COLUMNS)
            return as_error(AS_EXIT_USAGE, "too many folders: at most %d",
                            AS_TABLE_COLUMNS);
        if (!is_folder(*arg))
            return as_error(AS_EXIT_USAGE, "%s is not a folder of reports", *arg);
        if (!as_folder_count_reports(*arg, file))
            return as_error(AS_EXIT_USAGE, "no report (*.json) in %s", *arg);
        if (as_folder_join(path, *arg, file, "") ||
            as_result_read(&all->results[all->count], path))
            return AS_EXIT_USAGE;
        all->count++;
    }
    as_sides_print(all->results, all->count, "earlier runs", stdout,
                   as_look_of(stdout, all->options.ascii));
    return exit_code(all);
}

int as_verb_compare(int argc, char **argv)
{
    struct comparison *const all = calloc(1, sizeof(*all));
    if (!all)
        return as_error(AS_EXIT_USAGE, "out of memory");
    int err = as_options_parse(&all->options, "compare", argc, argv);
    if (!err) {
        const bool old = all->options.program[0] && is_folder(all->options.program[0]);
        err = old ? read_all(all) : run_all(all);
    }
    for (size_t n = 0; n < all->count; n++)
        as_result_finish(&all->results[n]);
    as_result_finish(&all->again);
    as_policies_finish(&all->policies);
    free(all->path);
    free(all);
    return err;
}
