// SPDX-License-Identifier: Apache-2.0
#include "cli/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// One write(), so that lines of several processes do not mix.
static void write_line(const char *prefix, const char *format, va_list args)
{
    char line[4096];
    int used = snprintf(line, sizeof(line), "%s", prefix);
    if (used < 0)
        return;
    (void)vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, args);
    const size_t length = strlen(line);
    line[length] = '\n';
    const ssize_t written = write(STDERR_FILENO, line, length + 1);
    (void)written; // nobody is left to tell
}

int as_error(enum as_exit code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line("actswap: error: ", format, args);
    va_end(args);
    return (int)code;
}

void as_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line("actswap: ", format, args);
    va_end(args);
}
