// SPDX-License-Identifier: Apache-2.0
#include "cli/results.h"

#include "cli/error.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "actswap.report/1"

// The value at "peak.bytes"; NULL: not there.
static json_t *at(json_t *root, const char *path)
{
    char key[64];
    while (root && *path) {
        const size_t length = strcspn(path, ".");
        (void)snprintf(key, sizeof(key), "%.*s", (int)length, path);
        root = json_object_get(root, key);
        path += length + (path[length] == '.');
    }
    return root;
}

static uint64_t number_at(json_t *root, const char *path)
{
    const json_int_t value = json_integer_value(at(root, path));
    return value > 0 ? (uint64_t)value : 0;
}

static const char *text_at(json_t *root, const char *path)
{
    const char *const text = json_string_value(at(root, path));
    return text ? text : "";
}

static uint64_t sum_at(json_t *root, const char *path)
{
    uint64_t sum = 0;
    size_t n;
    json_t *item;
    json_array_foreach(at(root, path), n, item) sum += (uint64_t)json_integer_value(item);
    return sum;
}

// A copy of a list of texts; null and numbers become "".
static char **texts_at(json_t *root, const char *path, size_t *count)
{
    json_t *const list = at(root, path);
    *count = json_array_size(list);
    char **const texts = calloc(*count + 1, sizeof(*texts));
    for (size_t n = 0; texts && n < *count; n++) {
        const char *const text = json_string_value(json_array_get(list, n));
        texts[n] = strdup(text ? text : "");
    }
    if (!texts)
        *count = 0;
    return texts;
}

static enum as_outcome outcome_of(json_t *root)
{
    const char *const ended = text_at(root, "ended");
    if (!strcmp(ended, "oom"))
        return AS_OUTCOME_OOM;
    if (!strcmp(ended, "exit") && !json_integer_value(at(root, "run.exit_code")))
        return AS_OUTCOME_OK;
    return AS_OUTCOME_FAILED;
}

static void take_categories(struct as_result *result, json_t *list)
{
    size_t n;
    json_t *item;
    json_array_foreach(list, n, item)
    {
        if (result->category_count == AS_RESULT_CATEGORIES)
            return;
        struct as_result_category *const category =
            &result->categories[result->category_count++];
        (void)snprintf(category->name, sizeof(category->name), "%s",
                       text_at(item, "category"));
        category->bytes = number_at(item, "bytes");
    }
}

static void take(struct as_result *result, json_t *root)
{
    (void)snprintf(result->name, sizeof(result->name), "%s",
                   text_at(root, "run.settings.policy"));
    (void)snprintf(result->device, sizeof(result->device), "%s",
                   text_at(root, "device.name"));
    (void)snprintf(result->compute, sizeof(result->compute), "%s",
                   text_at(root, "device.compute"));
    result->simulated = json_is_false(at(root, "device.measured"));
    result->device_bytes = number_at(root, "device.total_bytes");
    result->outcome = outcome_of(root);
    result->steps = number_at(root, "steps.count");
    result->after_forward_bytes = number_at(root, "peak.after_forward_bytes");
    result->peak_bytes = number_at(root, "peak.bytes");
    result->reserved_bytes = number_at(root, "peak.reserved_bytes");
    result->released_bytes = number_at(root, "moves.offload.released_bytes");
    result->out_bytes = sum_at(root, "steps.d2h_bytes");
    result->in_bytes = sum_at(root, "steps.h2d_bytes");
    result->pinned_bytes = number_at(root, "moves.pinned_peak_bytes");
    take_categories(result, at(root, "peak.by_category"));
    result->losses = texts_at(root, "steps.loss_bits", &result->loss_count);
    result->digests = texts_at(root, "steps.gradient_digest", &result->digest_count);
}

int as_result_read(struct as_result *result, const char *path)
{
    json_error_t where;
    json_t *const root = json_load_file(path, 0, &where);
    if (!root) {
        (void)as_error(AS_EXIT_USAGE, "cannot read the report %s: %s", path, where.text);
        return -EINVAL;
    }
    const char *const schema = text_at(root, "schema");
    if (strcmp(schema, SCHEMA) != 0) {
        (void)as_error(AS_EXIT_USAGE,
                       "%s is not a report this version reads: schema %s, "
                       "expected " SCHEMA,
                       path, *schema ? schema : "missing");
        json_decref(root);
        return -EINVAL;
    }
    (void)snprintf(result->report, sizeof(result->report), "%s", path);
    take(result, root);
    json_decref(root);
    return 0;
}

static void free_texts(char **texts, size_t count)
{
    for (size_t n = 0; n < count; n++)
        free(texts[n]);
    free(texts);
}

void as_result_finish(struct as_result *result)
{
    free_texts(result->losses, result->loss_count);
    free_texts(result->digests, result->digest_count);
    result->losses = result->digests = NULL;
}

size_t as_result_first_difference(char *const a[], size_t a_count, char *const b[],
                                  size_t b_count)
{
    const size_t shorter = a_count < b_count ? a_count : b_count;
    for (size_t n = 0; n < shorter; n++) {
        if (!a[n] || !b[n] || strcmp(a[n], b[n]) != 0)
            return n + 1;
    }
    return a_count == b_count ? 0 : shorter + 1;
}
