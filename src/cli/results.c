// SPDX-License-Identifier: Apache-2.0
#include "cli/results.h"

#include "cli/document.h"
#include "cli/field.h"
#include "cli/report/category.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A run without the figure had none of it.
static uint64_t number_at(json_t *root, const char *name)
{
    const uint64_t value = as_field_number(root, name);
    return value == AS_NOT_KNOWN ? 0 : value;
}

static const char *text_at(json_t *root, const char *name)
{
    const char *const text = as_field_text(root, name);
    return text ? text : "";
}

static uint64_t highest_at(json_t *root, const char *name)
{
    const uint64_t value = as_field_highest(root, name);
    return value == AS_NOT_KNOWN ? 0 : value;
}

// A text, or a list of texts joined by commas. NULL: something in it is not known.
static char *copy_text(json_t *item)
{
    if (!json_is_array(item))
        return json_is_string(item) ? strdup(json_string_value(item)) : NULL;

    size_t bytes = 1;
    size_t n;
    json_t *part;
    json_array_foreach(item, n, part)
    {
        if (!json_is_string(part))
            return NULL;
        bytes += json_string_length(part) + 1;
    }
    char *const text = calloc(1, bytes);
    char *end = text;
    if (text) {
        json_array_foreach(item, n, part) end =
            stpcpy(stpcpy(end, n ? "," : ""), json_string_value(part));
    }
    return text;
}

static bool says_something(json_t *item)
{
    return json_is_string(item) || json_array_size(item) > 0;
}

// One text for each item; none at all when no item says anything.
static char **texts_at(json_t *root, const char *path, size_t *count)
{
    json_t *const list = as_field(root, path);
    size_t n;
    json_t *item;
    bool any = false;
    json_array_foreach(list, n, item) any = any || says_something(item);

    *count = any ? json_array_size(list) : 0;
    char **const texts = calloc(*count + 1, sizeof(*texts));
    if (!texts)
        *count = 0;
    for (n = 0; n < *count; n++)
        texts[n] = copy_text(json_array_get(list, n));
    return texts;
}

static enum as_outcome outcome_of(json_t *root)
{
    const char *const ended = text_at(root, "ended");
    if (!strcmp(ended, "oom"))
        return AS_OUTCOME_OOM;
    return json_is_true(as_field(root, "complete")) ? AS_OUTCOME_OK : AS_OUTCOME_FAILED;
}

static void take_categories(struct as_result *result, json_t *list)
{
    size_t n;
    json_t *item;
    json_array_foreach(list, n, item)
    {
        if (result->category_count == AS_RESULT_CATEGORIES)
            return;
        if (!as_category_is_tensors(text_at(item, "category")))
            continue; // beside the peak, not in it
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
    result->simulated = json_is_true(as_field(root, "device.simulated"));
    const uint64_t steps = number_at(root, "steps.count");
    result->step_ns = as_field_median(root, "steps.time_ns", steps > 1);
    result->device_bytes = number_at(root, "device.total_bytes");
    result->pretends = result->device_bytes < number_at(root, "device.card_bytes");
    result->is_off = !strcmp(result->name, "off");
    result->budget_bytes = number_at(root, "budget.bytes");
    result->over_bytes = number_at(root, "budget.over_bytes");
    result->spare_bytes = number_at(root, "budget.spare_bytes");
    result->outcome = outcome_of(root);
    result->steps = steps;
    result->after_forward_bytes = highest_at(root, "steps.after_forward_bytes");
    result->peak_bytes = number_at(root, "peak.bytes");
    result->reserved_bytes = number_at(root, "peak.reserved_bytes");
    result->released_bytes = number_at(root, "moves.released_bytes");
    result->out_bytes = number_at(root, "moves.out_bytes");
    result->in_bytes = number_at(root, "moves.in_bytes");
    result->pinned_bytes = number_at(root, "moves.pinned_peak_bytes");
    result->blocks = number_at(root, "recompute.blocks_found");
    result->blocks_recomputed = number_at(root, "recompute.blocks_recomputed");
    result->peak_step = number_at(root, "peak.step");
    (void)snprintf(result->peak_phase, sizeof(result->peak_phase), "%s",
                   text_at(root, "peak.phase"));
    take_categories(result, as_field(root, "peak.by_category"));
    result->losses = texts_at(root, "steps.loss_bits", &result->loss_count);
    result->digests = texts_at(root, "steps.gradient_digest", &result->digest_count);
    result->warnings = texts_at(root, "warnings", &result->warning_count);
    result->blocks_said = texts_at(root, "recompute.said", &result->blocks_said_count);
}

void as_result_take(struct as_result *result, json_t *root, const char *path)
{
    (void)snprintf(result->report, sizeof(result->report), "%s", path);
    take(result, root);
}

int as_result_read(struct as_result *result, const char *path)
{
    json_t *const root = as_document_read(path);
    if (!root)
        return -EINVAL;
    as_result_take(result, root, path);
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
    free_texts(result->warnings, result->warning_count);
    free_texts(result->blocks_said, result->blocks_said_count);
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
