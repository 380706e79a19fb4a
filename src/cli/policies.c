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
        char *comma = strchr(part, ',');
        while (comma && is_option(comma + 1))
            comma = strchr(comma + 1, ',');
        if (comma)
            *comma++ = '\0';
        part = comma;
    }
    return 0;
}

void as_policies_finish(struct as_policies *policies)
{
    free(policies->text);
    policies->text = NULL;
}
