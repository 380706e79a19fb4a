// SPDX-License-Identifier: Apache-2.0
#include "core/policy.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

typedef int option_fn(struct as_settings *settings, const char *value,
                      const struct as_complaint *complaint);

// One "key=value".
struct option {
    const char *key;
    option_fn *read;
};

static int read_min(struct as_settings *settings, const char *value,
                    const struct as_complaint *complaint)
{
    if (as_text_bytes(value, &settings->offload_min_bytes))
        return as_complain(complaint, "does not give a size in min (1MiB, 64KB, bytes)");
    return 0;
}

static int read_keep_last(struct as_settings *settings, const char *value,
                          const struct as_complaint *complaint)
{
    uint64_t blocks;
    if (as_text_number(value, &blocks) || blocks > UINT_MAX)
        return as_complain(complaint, "does not give a number of blocks in keep_last");
    settings->offload_keep_last = (unsigned)blocks;
    return 0;
}

static int read_only(struct as_settings *settings, const char *value,
                     const struct as_complaint *complaint)
{
    static const char *const parts[] = {"all", "boundary", NULL};
    const int part = as_complain_choice(value, "a part of activations", parts, complaint);

    settings->offload_boundary = part == 1;
    return part < 0 ? part : 0;
}

static bool read_count(unsigned *count, const char *value)
{
    uint64_t number;
    if (as_text_number(value, &number) || !number || number > UINT_MAX)
        return false;
    *count = (unsigned)number;
    return true;
}

static int read_every(struct as_settings *settings, const char *value,
                      const struct as_complaint *complaint)
{
    if (!read_count(&settings->recompute_every, value))
        return as_complain(complaint,
                           "does not give a number of blocks in every (1, 2, ...)");
    return 0;
}

static int read_segments(struct as_settings *settings, const char *value,
                         const struct as_complaint *complaint)
{
    settings->recompute_sqrt = strcmp(value, "sqrt") == 0;
    if (settings->recompute_sqrt)
        return 0;
    if (!read_count(&settings->recompute_segments, value))
        return as_complain(complaint,
                           "does not give a number of segments (1, 2, ..., sqrt)");
    return 0;
}

static int read_blocks(struct as_settings *settings, const char *value,
                       const struct as_complaint *complaint)
{
    if (!*value || strlen(value) >= sizeof(settings->recompute_blocks))
        return as_complain(complaint, "does not give a pattern in blocks (layers.*)");
    memcpy(settings->recompute_blocks, value, strlen(value) + 1);
    return 0;
}

static int read_boundary(struct as_settings *settings, const char *value,
                         const struct as_complaint *complaint)
{
    static const char *const ways[] = {"keep", "offload", NULL};
    const int way = as_complain_choice(value, "a way for boundaries", ways, complaint);

    settings->recompute_boundary = way == 1;
    return way < 0 ? way : 0;
}

static const struct option offload_options[] = {
    {"min", read_min}, {"keep_last", read_keep_last}, {"only", read_only}, {NULL, NULL}};

static const struct option recompute_options[] = {{"every", read_every},
                                                  {"segments", read_segments},
                                                  {"blocks", read_blocks},
                                                  {"boundary", read_boundary},
                                                  {NULL, NULL}};

enum { OPTIONS_MAX = 8 };
_Static_assert(sizeof(recompute_options) <= (OPTIONS_MAX + 1) * sizeof(struct option),
               "no list is longer");

static int read_option(struct as_settings *settings, const char *policy,
                       const struct option *options, const char *text,
                       const struct as_complaint *complaint)
{
    const char *keys[OPTIONS_MAX + 1] = {NULL};
    char key[64], what[96];
    const char *value = strchr(text, '=');
    const size_t length = value ? (size_t)(value - text) : strlen(text);

    for (int i = 0; options[i].key; i++)
        keys[i] = options[i].key;
    snprintf(key, sizeof(key), "%.*s", (int)length, text);
    snprintf(what, sizeof(what), "an option of %s", policy);
    const int which = as_complain_choice(key, what, keys, complaint);
    if (which < 0)
        return which;
    if (!value)
        return as_complain(complaint, "lacks a value: %s=...", keys[which]);
    return options[which].read(settings, value + 1, complaint);
}

static int read_options(struct as_settings *settings, const char *policy,
                        const struct option *options, const char *list,
                        const struct as_complaint *complaint)
{
    char text[256];

    if (strlen(list) >= sizeof(text))
        return as_complain(complaint, "is too long");
    memcpy(text, list, strlen(list) + 1);

    char *rest = text, *option;
    while ((option = strsep(&rest, ","))) {
        const int err = read_option(settings, policy, options, option, complaint);
        if (err)
            return err;
    }
    if (settings->recompute_every &&
        (settings->recompute_sqrt || settings->recompute_segments))
        return as_complain(complaint, "has both every and segments: one of them says how "
                                      "many blocks belong together");
    return 0;
}

static const char *const policies[] = {
    [AS_POLICY_OFF] = "off",
    [AS_POLICY_OFFLOAD] = "offload",
    [AS_POLICY_RECOMPUTE] = "recompute",
    NULL,
};

const char *as_policy_name(enum as_policy policy)
{
    return policies[policy];
}

int as_policy_read(struct as_settings *settings, const char *value,
                   const struct as_complaint *complaint)
{
    char name[64];
    const char *options = strchr(value, ':');
    const size_t length = options ? (size_t)(options - value) : strlen(value);

    snprintf(name, sizeof(name), "%.*s", (int)length, value);
    if (strcmp(name, "hybrid") == 0)
        return as_complain(complaint, "is not there yet (off, offload, recompute)");
    const int policy = as_complain_choice(name, "a policy", policies, complaint);
    if (policy < 0)
        return policy;
    settings->policy = (enum as_policy)policy;
    settings->policy_chosen = true;
    if (!options)
        return 0;
    if (policy == AS_POLICY_OFF)
        return as_complain(complaint, "has options, and %s takes none", name);
    return read_options(settings, name,
                        policy == AS_POLICY_OFFLOAD ? offload_options : recompute_options,
                        options + 1, complaint);
}
