// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CORE_LOG_H
#define AS_CORE_LOG_H

// Messages to the user, one write(2) a line on stderr (or ACTSWAP_LOG_FILE), prefixed
// with "actswap: ". No allocation. After 16 messages from one call site the last says
// that further ones are counted, and they are.
//
// Thread-safety: every function may be called from any thread, also from a signal
// handler.

enum as_log_level { AS_LOG_QUIET, AS_LOG_ERROR, AS_LOG_WARN, AS_LOG_INFO, AS_LOG_DEBUG };

void as_log_set_level(enum as_log_level level);

// Opens the file that later lines go to. 0 or a negative errno (stderr stays).
int as_log_open(const char *path);

// `format` says "part: what, which, why": lower case, no full stop.
#define as_log(level, ...)                                                               \
    do {                                                                                 \
        static unsigned as_log_count_;                                                   \
        as_log_line(level, &as_log_count_, __VA_ARGS__);                                 \
    } while (0)

void as_log_line(enum as_log_level level, unsigned *count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The same without prefix, level or cap: summary and banner.
void as_log_print(const char *text);

#endif
