// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/code.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct architecture {
    bool binary;
    int number;
    char suffix; // 'a', 'f' or 0
};

// Reads one word and moves behind it. false: there is none, or it is none of these.
static bool next(const char **list, struct architecture *found)
{
    const char *word = *list + strspn(*list, " ;,");
    char *end;

    *list = word + strcspn(word, " ;,");
    found->binary = strncmp(word, "sm_", 3) == 0;
    if (!found->binary && strncmp(word, "compute_", 8) != 0)
        return false;
    found->number = (int)strtol(strchr(word, '_') + 1, &end, 10);
    found->suffix = '\0';
    if (*end == 'a' || *end == 'f')
        found->suffix = *end;
    return found->number > 0;
}

static bool runs(const struct architecture *code, int card)
{
    if (code->suffix == 'a')
        return code->number == card;
    if (code->binary || code->suffix == 'f')
        return code->number / 10 == card / 10 && code->number <= card;
    return code->number <= card;
}

bool sim_code_choose(const char *list, int major, int minor, struct sim_code *code)
{
    const int card = 10 * major + minor;
    struct architecture found;

    *code = (struct sim_code){card, card};
    if (!list || !list[strspn(list, " ;,")])
        return true;

    int binary = 0, intermediate = 0;
    while (*list) {
        if (!next(&list, &found) || !runs(&found, card))
            continue;
        int *best = found.binary ? &binary : &intermediate;
        if (found.number > *best)
            *best = found.number;
    }
    if (binary)
        *code = (struct sim_code){binary, binary};
    else if (intermediate)
        *code = (struct sim_code){card, intermediate};
    return binary || intermediate;
}

static const char *_Atomic compiled_for;

void sim_code_is(const char *list)
{
    const char *none = NULL;
    char *copy = strdup(list);

    // Once: others may be reading it.
    if (copy && !atomic_compare_exchange_strong(&compiled_for, &none, copy))
        free(copy);
}

bool sim_code_for(int major, int minor, struct sim_code *code)
{
    return sim_code_choose(atomic_load(&compiled_for), major, minor, code);
}
