// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_POLICIES_H
#define AS_CLI_POLICIES_H

// "off,offload:min=1MiB,keep_last=2,recompute": a list of policies whose options are
// separated by commas as well. A part with '=' and no ':' before it belongs to the
// policy on its left.

#include <stddef.h>

enum { AS_POLICIES_MAX = 8 };

struct as_policies {
    char *text; // owned; the names point into it
    const char *names[AS_POLICIES_MAX];
    size_t count;
};

// 0, -ENOMEM, -EINVAL for an empty part, or -E2BIG.
int as_policies_split(struct as_policies *policies, const char *list);

void as_policies_finish(struct as_policies *policies);

#endif
