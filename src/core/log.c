// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 1024, SAME_MAX = 16 };

static _Atomic int log_level = AS_LOG_WARN;
static _Atomic int log_fd = STDERR_FILENO;

static const char *const prefixes[] = {
    [AS_LOG_QUIET] = "actswap: ",         [AS_LOG_ERROR] = "actswap: error: ",
    [AS_LOG_WARN] = "actswap: warning: ", [AS_LOG_INFO] = "actswap: ",
    [AS_LOG_DEBUG] = "actswap: debug: ",
};

void as_log_set_level(enum as_log_level level)
{
    atomic_store(&log_level, (int)level);
}

int as_log_open(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;

    // The old file stays open: another thread may be writing to it.
    atomic_store(&log_fd, fd);
    return 0;
}

// One call for a line keeps ranks from mixing; the rest of a short write is lost, as a
// loop would wait for a reader that may never come.
static void write_line(const char *line, size_t bytes)
{
    const ssize_t written = write(atomic_load(&log_fd), line, bytes);

    (void)written;
}

// NOLINTNEXTLINE(readability-non-const-parameter): it does not see the atomic addition
void as_log_line(enum as_log_level level, unsigned *count, const char *format, ...)
{
    if ((int)level > atomic_load(&log_level))
        return;
    const unsigned n = __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
    if (n > SAME_MAX)
        return;

    const int saved_errno = errno;
    char line[LINE_BYTES];
    size_t used = (size_t)snprintf(line, sizeof(line), "%s", prefixes[level]);

    va_list args;
    va_start(args, format);
    const int length = vsnprintf(line + used, sizeof(line) - used, format, args);
    va_end(args);
    if (length > 0)
        used += (size_t)length;
    if (used >= sizeof(line))
        used = sizeof(line) - 1;

    static const char last[] = " (further ones are counted)";
    if (n == SAME_MAX && used + sizeof(last) < sizeof(line)) {
        memcpy(line + used, last, sizeof(last) - 1);
        used += sizeof(last) - 1;
    }
    if (used == sizeof(line))
        used--;
    line[used++] = '\n';
    write_line(line, used);
    errno = saved_errno;
}

void as_log_print(const char *text)
{
    const int saved_errno = errno;

    write_line(text, strlen(text));
    errno = saved_errno;
}
