// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_FOLDER_H
#define AS_CLI_FOLDER_H

// The folder that a run's reports go to.

#include <limits.h>
#include <stdbool.h>

struct as_folder {
    char shown[PATH_MAX]; // as the user would type it
    char path[PATH_MAX]; // absolute: the program may change its directory
};

// Makes `wanted`, or for NULL a new folder named after ACTSWAP_RUN_ID. A folder that
// exists is an error unless `force`. Returns 0, AS_EXIT_USAGE or AS_EXIT_CANNOT.
int as_folder_make(struct as_folder *folder, const char *wanted, bool force);

// Removes it again if nothing was put into it.
void as_folder_discard(const struct as_folder *folder);

// Points ACTSWAP_REPORT at rank%r.json in `subfolder` ("" is the folder itself).
int as_folder_report_to(const struct as_folder *folder, const char *subfolder);

// "folder/name" and a suffix. 0, or AS_EXIT_CANNOT after one line: too long.
int as_folder_join(char path[static PATH_MAX], const char *folder, const char *name,
                   const char *suffix);

// How many reports lie directly in it, and the name of the first one in order.
int as_folder_count_reports(const char *path, char first[NAME_MAX + 1]);

#endif
