// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_CHECK_H
#define AS_CLI_CHECK_H

// What can be wrong before anything starts. Each function returns 0, or an exit code after
// one line that names the wrong thing and the way out.

#include "cli/options.h"

// There is a program, it can be executed and, for a Python, its script exists. The
// program's full path is put into `path`.
int as_check_program(const struct as_options *options, char **path);

// --gpu, --compute and --order.
int as_check_simulation(const struct as_options *options);

// All ACTSWAP_ settings of the environment as it is now. Of those that came from an option
// messages name the option.
int as_check_settings(const struct as_options *options);

// No ACTSWAP_SIM_ setting is there: a real run must not look like a rehearsal.
int as_check_not_simulated(void);

// Where a Python's arguments name its script; NULL: none, as with -c or -m.
const char *as_check_script(char *const program[]);

// True if the program's name is one of a Python interpreter.
bool as_check_is_python(const char *program);

#endif
