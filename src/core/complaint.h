// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CORE_COMPLAINT_H
#define AS_CORE_COMPLAINT_H

// Where one setting's reader says what is wrong with its value.

#include <stddef.h>

struct as_complaint {
    const char *name;
    const char *value;
    char *message;
    size_t message_bytes;
};

// "NAME=value " and the rest. Always -EINVAL.
int as_complain(const struct as_complaint *complaint, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The index of `value` in `names` (NULL-terminated), or -EINVAL with the complaint
// written, in which `what` is what it is not.
int as_complain_choice(const char *value, const char *what, const char *const names[],
                       const struct as_complaint *complaint);

#endif
