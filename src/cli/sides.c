// SPDX-License-Identifier: Apache-2.0
#include "cli/sides.h"

#include "cli/field.h"
#include "core/text.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>

enum list { LOSSES, GRADIENTS };

static char **texts_of(const struct as_result *result, enum list list, size_t *count)
{
    *count = list == LOSSES ? result->loss_count : result->digest_count;
    return list == LOSSES ? result->losses : result->digests;
}

// The run that the others are held against: the first that ended and has values.
static const struct as_result *find_reference(const struct as_result results[],
                                              size_t count, enum list list)
{
    for (size_t n = 0; n < count; n++) {
        size_t texts = 0;
        (void)texts_of(&results[n], list, &texts);
        if (results[n].outcome == AS_OUTCOME_OK && texts)
            return &results[n];
    }
    return NULL;
}

static bool has_no_values(const struct as_result *result)
{
    return !strcmp(result->compute, "shapes") || !strcmp(result->compute, "auto");
}

// 0: equal, else the first step that differs.
static size_t first_difference(const struct as_result *a, const struct as_result *b,
                               enum list list)
{
    size_t a_count, b_count;
    char **const a_texts = texts_of(a, list, &a_count);
    char **const b_texts = texts_of(b, list, &b_count);
    return as_result_first_difference(a_texts, a_count, b_texts, b_count);
}

static enum as_verdict judge(const struct as_result results[], size_t count,
                             enum list list)
{
    const struct as_result *const reference = find_reference(results, count, list);
    size_t compared = 0;
    for (size_t n = 0; n < count; n++) {
        if (has_no_values(&results[n]))
            return AS_VERDICT_NOT_COMPUTED;
        if (!reference || &results[n] == reference || results[n].outcome != AS_OUTCOME_OK)
            continue;
        if (first_difference(reference, &results[n], list))
            return AS_VERDICT_DIFFER;
        compared++;
    }
    return compared ? AS_VERDICT_IDENTICAL : AS_VERDICT_NONE;
}

enum as_verdict as_sides_judge(const struct as_result results[], size_t count)
{
    const enum as_verdict losses = judge(results, count, LOSSES);
    const enum as_verdict gradients = judge(results, count, GRADIENTS);
    if (losses == AS_VERDICT_DIFFER || gradients == AS_VERDICT_DIFFER)
        return AS_VERDICT_DIFFER;
    return losses;
}

size_t as_sides_first_difference(const struct as_result *a, const struct as_result *b)
{
    if (has_no_values(a) || has_no_values(b))
        return 0;
    const size_t losses = first_difference(a, b, LOSSES);
    const size_t gradients = first_difference(a, b, GRADIENTS);
    return losses && (!gradients || losses < gradients) ? losses : gradients;
}

static void set(struct as_cell *cell, enum as_tone tone, const char *text)
{
    (void)snprintf(cell->text, sizeof(cell->text), "%s", text);
    cell->tone = tone;
}

// `status` as of waitpid(). 0: the report is older than the program's end, or no end came.
static void set_failure(struct as_cell *cell, int status)
{
    if (!status)
        set(cell, AS_TONE_BAD, "cut off");
    else if (WIFSIGNALED(status))
        (void)snprintf(cell->text, sizeof(cell->text), "failed, signal %d",
                       WTERMSIG(status));
    else
        (void)snprintf(cell->text, sizeof(cell->text), "failed, status %d",
                       WEXITSTATUS(status));
}

static void set_outcome(struct as_cell *cell, const struct as_result *result)
{
    switch (result->outcome) {
    case AS_OUTCOME_OK:
        set(cell, AS_TONE_GOOD, "ok");
        return;
    case AS_OUTCOME_OOM:
        (void)snprintf(cell->text, sizeof(cell->text), "OOM in step %" PRIu64,
                       result->steps + 1);
        cell->tone = AS_TONE_BAD;
        return;
    case AS_OUTCOME_FAILED:
        set_failure(cell, result->exit_status);
        cell->tone = AS_TONE_BAD;
        return;
    case AS_OUTCOME_NONE:
        break;
    }
    set(cell, AS_TONE_BAD, "no report");
}

static void set_agreement(struct as_cell *cell, const struct as_result *result,
                          const struct as_result *reference, enum list list)
{
    if (has_no_values(result)) {
        set(cell, AS_TONE_FAINT, "not computed");
    } else if (result->outcome != AS_OUTCOME_OK || !reference) {
        set(cell, AS_TONE_FAINT, result->outcome == AS_OUTCOME_OK ? "none seen" : "-");
    } else if (result == reference) {
        set(cell, AS_TONE_FAINT, "reference");
    } else {
        const size_t step = first_difference(reference, result, list);
        size_t count;
        (void)texts_of(result, list, &count);
        if (!step) {
            (void)snprintf(cell->text, sizeof(cell->text), "identical, %zu of %zu", count,
                           count);
            cell->tone = AS_TONE_GOOD;
            return;
        }
        (void)snprintf(cell->text, sizeof(cell->text), "differ from step %zu", step);
        cell->tone = AS_TONE_BAD;
    }
}

// The rows that are one number of bytes. An OOM's numbers are true as far as it came.
static const struct byte_row {
    const char *label;
    size_t offset;
    bool each_step;
} byte_rows[] = {
    {"after forward", offsetof(struct as_result, after_forward_bytes), false},
    {"peak on device", offsetof(struct as_result, peak_bytes), false},
    {"reserved", offsetof(struct as_result, reserved_bytes), false},
    {"released a step", offsetof(struct as_result, released_bytes), true},
    {"out a step", offsetof(struct as_result, out_bytes), true},
    {"in a step", offsetof(struct as_result, in_bytes), true},
    {"pinned host memory", offsetof(struct as_result, pinned_bytes), false},
};

static void set_bytes(struct as_cell *cell, const struct as_result *result,
                      const struct byte_row *row)
{
    char amount[AS_TEXT_AMOUNT];
    uint64_t bytes;
    memcpy(&bytes, (const char *)result + row->offset, sizeof(bytes));
    if (row->each_step && result->steps)
        bytes /= result->steps;
    if (result->outcome == AS_OUTCOME_NONE)
        set(cell, AS_TONE_FAINT, "-");
    else
        set(cell, AS_TONE_PLAIN, as_text_amount(bytes, amount));
}

static bool has_step_time(const struct as_result results[], size_t count)
{
    for (size_t n = 0; n < count; n++) {
        if (results[n].step_ns != AS_NOT_KNOWN && results[n].step_ns)
            return true;
    }
    return false;
}

static void set_step_time(struct as_cell *cell, const struct as_result *result)
{
    char time[AS_TEXT_AMOUNT];
    const bool known = result->step_ns != AS_NOT_KNOWN && result->step_ns;

    if (known && result->outcome == AS_OUTCOME_OK)
        set(cell, AS_TONE_PLAIN, as_text_time(result->step_ns, time));
    else
        set(cell, AS_TONE_FAINT, "-");
}

// Where the peak sat.
static void set_place(struct as_cell *cell, const struct as_result *result)
{
    if (!*result->peak_phase) {
        set(cell, AS_TONE_FAINT, "-");
        return;
    }
    (void)snprintf(cell->text, sizeof(cell->text), "step %" PRIu64 ", %.24s",
                   result->peak_step + 1, result->peak_phase);
    cell->tone = AS_TONE_PLAIN;
}

static bool has_blocks(const struct as_result results[], size_t count)
{
    for (size_t n = 0; n < count; n++) {
        if (results[n].blocks)
            return true;
    }
    return false;
}

static void set_blocks(struct as_cell *cell, const struct as_result *result)
{
    if (!result->blocks) {
        set(cell, AS_TONE_FAINT, "-");
        return;
    }
    (void)snprintf(cell->text, sizeof(cell->text), "%" PRIu64 " of %" PRIu64,
                   result->blocks_recomputed, result->blocks);
    cell->tone =
        result->blocks_recomputed == result->blocks ? AS_TONE_PLAIN : AS_TONE_BAD;
}

static bool has_budget(const struct as_result results[], size_t count)
{
    for (size_t n = 0; n < count; n++) {
        if (results[n].budget_bytes)
            return true;
    }
    return false;
}

static void set_budget(struct as_cell *cell, const struct as_result *result)
{
    const bool over = result->over_bytes;
    char amount[AS_TEXT_AMOUNT];
    if (!result->budget_bytes || result->outcome != AS_OUTCOME_OK) {
        set(cell, AS_TONE_FAINT, "-");
        return;
    }
    as_text_amount(over ? result->over_bytes : result->spare_bytes, amount);
    (void)snprintf(cell->text, sizeof(cell->text), "%s %s", amount,
                   over ? "over" : "to spare");
    cell->tone = over ? AS_TONE_BAD : AS_TONE_GOOD;
}

static void fill_table(struct as_table *table, const struct as_result results[],
                       size_t count)
{
    const struct as_result *const losses = find_reference(results, count, LOSSES);
    const struct as_result *const gradients = find_reference(results, count, GRADIENTS);

    table->columns = count;
    struct as_row *row = as_table_add(table, "");
    for (size_t n = 0; n < count; n++)
        set(&row->cells[n], AS_TONE_PLAIN, results[n].name);
    row = as_table_add(table, "result");
    for (size_t n = 0; n < count; n++)
        set_outcome(&row->cells[n], &results[n]);
    for (size_t k = 0; k < sizeof(byte_rows) / sizeof(byte_rows[0]); k++) {
        row = as_table_add(table, byte_rows[k].label);
        for (size_t n = 0; n < count; n++)
            set_bytes(&row->cells[n], &results[n], &byte_rows[k]);
    }
    row = as_table_add(table, "peak in");
    for (size_t n = 0; n < count; n++)
        set_place(&row->cells[n], &results[n]);
    if (has_blocks(results, count)) {
        row = as_table_add(table, "blocks run again");
        for (size_t n = 0; n < count; n++)
            set_blocks(&row->cells[n], &results[n]);
    }
    if (has_step_time(results, count)) {
        row = as_table_add(table, "step time");
        for (size_t n = 0; n < count; n++)
            set_step_time(&row->cells[n], &results[n]);
    }
    if (has_budget(results, count)) {
        row = as_table_add(table, "budget");
        for (size_t n = 0; n < count; n++)
            set_budget(&row->cells[n], &results[n]);
    }
    row = as_table_add(table, "losses");
    for (size_t n = 0; n < count; n++)
        set_agreement(&row->cells[n], &results[n], losses, LOSSES);
    row = as_table_add(table, "gradients");
    for (size_t n = 0; n < count; n++)
        set_agreement(&row->cells[n], &results[n], gradients, GRADIENTS);
}

static void print_heading(const struct as_result *first, const char *program, FILE *out)
{
    char total[AS_TEXT_AMOUNT], budget[AS_TEXT_AMOUNT];
    (void)fprintf(out, "actswap compare  %s  %" PRIu64 " steps  %s (%s%s)", program,
                  first->steps, *first->device ? first->device : "unknown device",
                  first->pretends ? "pretending " : "",
                  as_text_amount(first->device_bytes, total));
    if (first->budget_bytes)
        (void)fprintf(out, "  budget %s", as_text_amount(first->budget_bytes, budget));
    (void)fprintf(out, "%s%s   %s\n\n", *first->compute ? "  " : "", first->compute,
                  first->simulated ? "simulated, not measured" : "measured");
}

static void print_categories(const struct as_result *result, FILE *out)
{
    char text[AS_TEXT_AMOUNT];
    if (!result->category_count || !result->peak_bytes)
        return;
    (void)fprintf(out, "\nat the peak of %s, %s in step %" PRIu64 ", %s:\n", result->name,
                  as_text_amount(result->peak_bytes, text), result->peak_step + 1,
                  result->peak_phase);
    for (size_t n = 0; n < result->category_count; n++) {
        const struct as_result_category *const category = &result->categories[n];
        if (!category->bytes)
            continue;
        (void)fprintf(out, "  %-18s %10s  %3.0f%%\n", category->name,
                      as_text_amount(category->bytes, text),
                      100.0 * (double)category->bytes / (double)result->peak_bytes);
    }
}

static bool print_sentences(const char *name, char *const texts[], size_t from,
                            size_t count, FILE *out)
{
    bool any = false;
    for (size_t n = from; n < count; n++) {
        if (!texts[n])
            continue;
        (void)fprintf(out, "\n%s: %s", name, texts[n]);
        any = true;
    }
    return any;
}

// Warnings, and why blocks are not run again.
static void print_notes(const struct as_result *result, FILE *out)
{
    const bool warned =
        print_sentences(result->name, result->warnings, 0, result->warning_count, out);
    const bool refused =
        print_sentences(result->name, result->blocks_said, result->blocks > 0,
                        result->blocks_said_count, out);
    if (warned || refused)
        (void)fputc('\n', out);
}

void as_sides_print(const struct as_result results[], size_t count, const char *program,
                    FILE *out, struct as_look look)
{
    struct as_table table = {0};
    fill_table(&table, results, count);
    print_heading(&results[0], program, out);
    as_table_print(&table, out, look);
    for (size_t n = 0; n < count; n++)
        print_notes(&results[n], out);
    print_categories(&results[0], out);
}

static bool differs(const struct as_result results[], size_t count, size_t run)
{
    for (enum list list = LOSSES; list <= GRADIENTS; list++) {
        const struct as_result *const reference = find_reference(results, count, list);
        if (reference && first_difference(reference, &results[run], list))
            return true;
    }
    return false;
}

const struct as_result *as_sides_best(const struct as_result results[], size_t count)
{
    const struct as_result *best = NULL;
    for (size_t n = 1; n < count; n++) {
        if (results[n].outcome != AS_OUTCOME_OK || differs(results, count, n))
            continue;
        const bool fits_first = results[0].outcome == AS_OUTCOME_OK;
        if (fits_first && results[n].peak_bytes >= results[0].peak_bytes)
            continue;
        if (!best || results[n].peak_bytes < best->peak_bytes)
            best = &results[n];
    }
    return best;
}
