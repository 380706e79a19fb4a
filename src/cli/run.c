// SPDX-License-Identifier: Apache-2.0
#include "cli/check.h"
#include "cli/error.h"
#include "cli/files.h"
#include "cli/folder.h"
#include "cli/launch.h"
#include "cli/verbs.h"

#include <stdlib.h>

static int choose_folder(const struct as_options *options)
{
    if (!options->folder && getenv("ACTSWAP_REPORT"))
        return 0;
    struct as_folder folder;
    int err = as_folder_make(&folder, options->folder, options->force);
    if (err)
        return err;
    err = as_folder_report_to(&folder, "");
    // Made again by the library with the first report: a program that never uses CUDA
    // leaves nothing behind.
    as_folder_discard(&folder);
    return err;
}

int as_verb_run(int argc, char **argv)
{
    struct as_options options;
    char *path = NULL;
    int err = as_options_parse(&options, "run", argc, argv);
    if (!err)
        err = as_check_program(&options, &path);
    if (!err)
        err = as_check_not_simulated();
    if (!err)
        err = as_check_settings(&options);
    if (!err)
        err = as_launch_name_run();
    if (!err)
        err = choose_folder(&options);
    if (!err)
        err = as_files_preload(AS_STACK_REAL);
    if (!err)
        err = as_launch_exec(path, options.program);
    free(path);
    return err;
}
