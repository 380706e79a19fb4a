// SPDX-License-Identifier: Apache-2.0
#include "cli/check.h"
#include "cli/ending.h"
#include "cli/error.h"
#include "cli/files.h"
#include "cli/folder.h"
#include "cli/launch.h"
#include "cli/simulate.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>

// Everything that can be wrong is found before the program starts.
static int prepare(const struct as_options *options, char **path)
{
    int err = as_check_program(options, path);
    if (!err)
        err = as_launch_set("ACTSWAP_POLICY", options->policy);
    if (!err)
        err = as_launch_set("ACTSWAP_BUDGET", options->budget);
    if (!err)
        err = as_simulate(options, "auto");
    if (!err)
        err = as_check_settings(options);
    if (!err)
        err = as_launch_name_run();
    return err;
}

// The user's own ACTSWAP_REPORT stays, unless -o names a folder.
static bool chooses_folder(const struct as_options *options)
{
    return options->folder || !getenv("ACTSWAP_REPORT");
}

static int end(const struct as_folder *folder, const char *path, char *const program[],
               int status)
{
    char first[NAME_MAX + 1];
    if (!as_folder_count_reports(folder->path, first)) {
        as_folder_discard(folder);
        const int code = as_ending_explain(path, program, status, NULL);
        return status ? as_launch_end_as(status) : code;
    }
    if (status) {
        char report[PATH_MAX + NAME_MAX + 2];
        (void)snprintf(report, sizeof(report), "%s/%s", folder->shown, first);
        as_ending_failed(program, status, NULL, report);
    }
    // To where the summary went, so that the program's own output stays its own.
    (void)fputs("actswap: more: actswap report", stderr);
    as_launch_print_word(folder->shown, stderr);
    (void)fputs(" --html report.html\n", stderr);
    return as_launch_end_as(status);
}

int as_verb_rehearse(int argc, char **argv)
{
    struct as_options options;
    char *path = NULL;
    int err = as_options_parse(&options, "rehearse", argc, argv);
    if (!err)
        err = prepare(&options, &path);
    if (err)
        return err;

    const bool has_folder = chooses_folder(&options);
    struct as_folder folder;
    if (has_folder)
        err = as_folder_make(&folder, options.folder, options.force);
    if (!err && has_folder)
        err = as_folder_report_to(&folder, "");
    if (!err)
        err = as_files_preload(AS_STACK_SIMULATED);
    int status = 0;
    if (!err)
        err = as_launch_wait(path, options.program, NULL, NULL, &status);
    if (err && has_folder)
        as_folder_discard(&folder);
    // Where the user sends the reports elsewhere, none here means nothing.
    if (!err && has_folder)
        err = end(&folder, path, options.program, status);
    else if (!err)
        err = as_launch_end_as(status);
    free(path);
    return err;
}
