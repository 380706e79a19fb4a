// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

enum { NAME_WIDTH = 12 };

static void draw(void *context, int seconds)
{
    const struct as_progress *const progress = context;
    if (progress->terminal)
        (void)fprintf(stderr, "\r[%zu/%zu] %-*s %4d s", progress->run, progress->runs,
                      NAME_WIDTH, progress->name, seconds);
}

void as_progress_begin(struct as_progress *progress, size_t run, size_t runs,
                       const char *name)
{
    *progress = (struct as_progress){
        .clock = {.tick = draw, .context = progress},
        .terminal = isatty(STDERR_FILENO),
        .run = run,
        .runs = runs,
        .name = name,
    };
    (void)clock_gettime(CLOCK_MONOTONIC, &progress->begin);
    if (progress->terminal)
        draw(progress, 0);
    else
        (void)fprintf(stderr, "[%zu/%zu] %s\n", run, runs, name);
}

void as_progress_end(struct as_progress *progress, const char *outcome)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    const double seconds = (double)(now.tv_sec - progress->begin.tv_sec) +
                           (double)(now.tv_nsec - progress->begin.tv_nsec) / 1e9;
    (void)fprintf(stderr, "%s[%zu/%zu] %-*s %6.1f s  %s\n",
                  progress->terminal ? "\r" : "", progress->run, progress->runs,
                  NAME_WIDTH, progress->name, seconds, outcome);
}
