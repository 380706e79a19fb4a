// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_LAUNCH_H
#define AS_CLI_LAUNCH_H

// Starting the program, with the environment as it is now.

#include <stdbool.h>
#include <stdio.h>

// Sets a variable of our own environment, which the program inherits; NULL leaves it as it
// is. 0 or AS_EXIT_CANNOT.
int as_launch_set(const char *name, const char *value);

// Gives the run its id, unless the user did.
int as_launch_name_run(void);

// Becomes the program. Returns only on failure, with an exit code.
int as_launch_exec(const char *path, char *const program[]);

// Called once a second while a program runs.
struct as_launch_clock {
    void (*tick)(void *context, int seconds);
    void *context;
};

// Runs the program and waits for it. Signals that reach us alone are passed on to it.
// `log`: where its output goes, or NULL for ours. `clock` may be NULL. *status is as of
// waitpid(). 0 or AS_EXIT_CANNOT / 126 / 127.
int as_launch_wait(const char *path, char *const program[], const char *log,
                   const struct as_launch_clock *clock, int *status);

// Ends as the program ended: its exit code is returned, its signal is raised again.
int as_launch_end_as(int status);

// "status 3" or "signal 9 (Killed)", in `text`.
void as_launch_describe(int status, char *text, int text_bytes);

// " word", quoted so that a shell reads it as it is.
void as_launch_print_word(const char *word, FILE *out);

#endif
