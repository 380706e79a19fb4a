// SPDX-License-Identifier: Apache-2.0
#include "cli/check.h"
#include "cli/document.h"
#include "cli/ending.h"
#include "cli/error.h"
#include "cli/field.h"
#include "cli/files.h"
#include "cli/folder.h"
#include "cli/launch.h"
#include "cli/simulate.h"
#include "cli/verbs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Everything that can be wrong is found before the program starts.
static int prepare(const struct as_options *options, char **path)
{
    int err = as_check_program(options, path);
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

static bool checks(const struct as_options *options)
{
    return options->check && strcmp(options->check, "off") != 0;
}

// In the reports of all ranks.
static uint64_t count_races(const char *folder)
{
    DIR *const dir = opendir(folder);
    uint64_t all = 0;
    for (const struct dirent *at; dir && (at = readdir(dir));) {
        const char *const suffix = strrchr(at->d_name, '.');
        char path[PATH_MAX];
        if (!suffix || strcmp(suffix, ".json") != 0 ||
            as_folder_join(path, folder, at->d_name, ""))
            continue;
        json_t *const report = as_document_read(path);
        const uint64_t races = as_field_number(report, "device.races");
        all += report && races != AS_NOT_KNOWN ? races : 0;
        json_decref(report);
    }
    if (dir)
        (void)closedir(dir);
    return all;
}

static int end(const struct as_options *options, const struct as_folder *folder,
               const char *path, int status)
{
    char *const *const program = options->program;
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
    if (!status && checks(options) && count_races(folder->path))
        return AS_EXIT_RACES;
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
        err = as_files_preload(checks(&options) ? AS_STACK_CHECKED : AS_STACK_SIMULATED);
    int status = 0;
    if (!err)
        err = as_launch_wait(path, options.program, NULL, NULL, &status);
    if (err && has_folder)
        as_folder_discard(&folder);
    // Where the user sends the reports elsewhere, none here means nothing.
    if (!err && has_folder)
        err = end(&options, &folder, path, status);
    else if (!err)
        err = as_launch_end_as(status);
    free(path);
    return err;
}
