// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_PROGRESS_H
#define AS_CLI_PROGRESS_H

// How far `actswap compare` is: one redrawn line on a terminal; elsewhere one line when a
// run starts and one when it ends.

#include "cli/launch.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct as_progress {
    struct as_launch_clock clock; // to be passed to as_launch_wait()
    bool terminal;
    size_t run, runs;
    const char *name; // borrowed
    struct timespec begin;
};

// `progress` must stay where it is until the end.
void as_progress_begin(struct as_progress *progress, size_t run, size_t runs,
                       const char *name);
void as_progress_end(struct as_progress *progress, const char *outcome);

#endif
