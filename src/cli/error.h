// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_ERROR_H
#define AS_CLI_ERROR_H

// Exit codes of the command, and its one way to say what is wrong.

enum as_exit {
    AS_EXIT_OK = 0,
    AS_EXIT_FAILED = 1, // rehearse: never used CUDA; compare: results differ
    AS_EXIT_USAGE = 2, // bad option or setting; compare: could not compare
    AS_EXIT_RACES = 3, // rehearse --check races: the program succeeded, but races
    AS_EXIT_NOT_SAME = 3, // compare: two runs without a policy differ by themselves
    AS_EXIT_CANNOT = 125, // actswap failed before the program started
    AS_EXIT_NOT_EXECUTABLE = 126,
    AS_EXIT_NOT_FOUND = 127,
};

// Prints "actswap: error: ..." as one line on stderr and returns `code`.
int as_error(enum as_exit code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
