// SPDX-License-Identifier: Apache-2.0
#include "cli/policies.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_option(const char *part)
{
    return part[strcspn(part, ",:=")] == '=';
}

// The comma behind this policy and its options; NULL: it is the last.
static char *find_end(char *policy)
{
    char *comma = strchr(policy, ',');
    while (comma && is_option(comma + 1))
        comma = strchr(comma + 1, ',');
    return comma;
}

int as_policies_split(struct as_policies *policies, const char *list)
{
    *policies = (struct as_policies){.text = strdup(list)};
    if (!policies->text)
        return -ENOMEM;
    char *part = policies->text;
    while (part) {
        if (policies->count == AS_POLICIES_MAX)
            return -E2BIG;
        if (*part == '\0' || *part == ',')
            return -EINVAL;
        policies->names[policies->count++] = part;
        char *const comma = find_end(part);
        part = comma ? comma + 1 : NULL;
        if (comma)
            *comma = '\0';
    }
    return 0;
}

void as_policies_finish(struct as_policies *policies)
{
    free(policies->text);
    policies->text = NULL;
}
