// SPDX-License-Identifier: Apache-2.0
#include "core/complaint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/settings.h"

int as_complain(const struct as_complaint *complaint, const char *format, ...)
{
    char rest[512];
    va_list args;

    va_start(args, format);
    vsnprintf(rest, sizeof(rest), format, args);
    va_end(args);
    snprintf(complaint->message, complaint->message_bytes, "%s=%.200s %s",
             complaint->name, complaint->value, rest);
    return -EINVAL;
}

// "is not a policy. Did you mean offload? (off, offload, recompute)"
static int refuse(const struct as_complaint *complaint, const char *value,
                  const char *what, const char *const names[])
{
    char list[256] = "";
    size_t used = 0;

    for (size_t i = 0; names[i] && used < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
                                 names[i]);
    const char *nearest = as_settings_nearest(value, names);
    if (nearest)
        return as_complain(complaint, "is not %s. Did you mean %s? (%s)", what, nearest,
                           list);
    return as_complain(complaint, "is not %s (%s)", what, list);
}

int as_complain_choice(const char *value, const char *what, const char *const names[],
                       const struct as_complaint *complaint)
{
    for (int i = 0; names[i]; i++) {
        if (strcmp(value, names[i]) == 0)
            return i;
    }
    return refuse(complaint, value, what, names);
}
