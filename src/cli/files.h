// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_FILES_H
#define AS_CLI_FILES_H

// The installed files, found beside the command, and what of them is preloaded.

#include <limits.h>
#include <stddef.h>

// What a program needs: the watching library alone, or the simulated GPU as well, or also
// what sees its threads, for the checker of races.
enum as_stack { AS_STACK_REAL, AS_STACK_SIMULATED, AS_STACK_CHECKED };

// Checks that every file that was installed is there, readable and of its size, then puts
// the stack's libraries at the head of LD_PRELOAD; what the user had there stays behind
// them. Returns 0 or, after one line, AS_EXIT_CANNOT: a missing library is otherwise only a
// warning of the loader's, and the program would train on something else.
int as_files_preload(enum as_stack stack);

// The folder with our libraries, from the command's own place. 0 or, after one line,
// AS_EXIT_CANNOT.
int as_files_folder(char folder[static PATH_MAX]);

#endif
