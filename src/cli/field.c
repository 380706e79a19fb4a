// SPDX-License-Identifier: Apache-2.0
#include "cli/field.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *as_field(json_t *root, const char *name)
{
    char key[64];
    while (root && *name) {
        const size_t length = strcspn(name, ".");
        (void)snprintf(key, sizeof(key), "%.*s", (int)length, name);
        root = json_object_get(root, key);
        name += length + (name[length] == '.');
    }
    return root;
}

static uint64_t number_of(const json_t *item)
{
    const json_int_t value = json_integer_value(item);
    return json_is_integer(item) && value >= 0 ? (uint64_t)value : AS_NOT_KNOWN;
}

uint64_t as_field_number(json_t *root, const char *name)
{
    return number_of(as_field(root, name));
}

const char *as_field_text(json_t *root, const char *name)
{
    return json_string_value(as_field(root, name));
}

bool as_field_is(json_t *root, const char *name, const char *text)
{
    const char *const found = as_field_text(root, name);
    return found && !strcmp(found, text);
}

uint64_t as_field_highest(json_t *root, const char *name)
{
    uint64_t highest = AS_NOT_KNOWN;
    size_t n;
    json_t *item;
    json_array_foreach(as_field(root, name), n, item)
    {
        const uint64_t value = number_of(item);
        if (value != AS_NOT_KNOWN && (highest == AS_NOT_KNOWN || value > highest))
            highest = value;
    }
    return highest;
}

uint64_t as_field_sum(json_t *root, const char *name)
{
    uint64_t sum = AS_NOT_KNOWN;
    size_t n;
    json_t *item;
    json_array_foreach(as_field(root, name), n, item)
    {
        const uint64_t value = number_of(item);
        if (value != AS_NOT_KNOWN)
            sum = sum == AS_NOT_KNOWN ? value : sum + value;
    }
    return sum;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t as_field_median(json_t *root, const char *name, size_t skip)
{
    json_t *const list = as_field(root, name);
    uint64_t *const values = calloc(json_array_size(list) + 1, sizeof(*values));
    size_t count = 0;
    for (size_t n = skip; values && n < json_array_size(list); n++) {
        const uint64_t value = number_of(json_array_get(list, n));
        if (value != AS_NOT_KNOWN)
            values[count++] = value;
    }
    uint64_t median = AS_NOT_KNOWN;
    if (count) {
        qsort(values, count, sizeof(*values), compare);
        median = values[count / 2];
    }
    free(values);
    return median;
}
