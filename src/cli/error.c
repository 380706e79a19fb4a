// SPDX-License-Identifier: Apache-2.0
#include "cli/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int as_error(enum as_exit code, const char *format, ...)
{
    char line[4096] = "actswap: error: ";
    size_t used = strlen(line);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line + used, sizeof(line) - used - 1, format, args);
    va_end(args);

    // One write(), so that lines of several processes do not mix.
    used = strlen(line);
    line[used] = '\n';
    const ssize_t written = write(STDERR_FILENO, line, used + 1);
    (void)written; // nobody is left to tell
    return (int)code;
}
