// SPDX-License-Identifier: Apache-2.0
//
// The page's sections about where in the code memory is taken.

#include "cli/field.h"
#include "cli/report/category.h"
#include "cli/report/html.h"
#include "cli/report/modules.h"
#include "cli/report/page.h"
#include "cli/report/words.h"

#include <inttypes.h>
#include <string.h>

// Further modules are folded away; page.css has a class for each depth.
enum { MODULES_SHOWN = 12, DEEPEST = 4 };

// A cell whose text is for people and whose value is what it sorts by.
static void put_number(const struct as_page *page, uint64_t value, const char *text)
{
    if (value == AS_NOT_KNOWN)
        as_html(page->out, "<td data-sort=\"-1\">&ndash;</td>");
    else
        as_html(page->out, "<td data-sort=\"%" PRIu64 "\">%s</td>", value, text);
}

static void put_text(const struct as_page *page, json_t *item, const char *field)
{
    const char *const text = as_field_text(item, field);
    as_html(page->out, "<td>%s</td>", text ? text : "");
}

static void put_module(const struct as_page *page, const struct as_module *module,
                       uint64_t most)
{
    as_words all, own;

    as_html(page->out, "<tr><th scope=\"row\" class=\"in-%zu\">%s",
            module->depth < DEEPEST ? module->depth : DEEPEST, module->name);
    if (module->count > 1)
        as_html(page->out, " <small>%zu alike</small>", module->count);
    as_html(page->out,
            "</th><td class=\"bars\"><i class=\"c-activation\" style=\"width:%.2f%%\">"
            "</i></td><td>%s</td><td>%s</td></tr>\n",
            most ? 100 * (double)module->all_bytes / (double)most : 0.0,
            as_words_bytes(module->all_bytes, all),
            as_words_bytes(module->own_bytes, own));
}

// The largest ones, or all others.
static void put_table(const struct as_page *page, const struct as_modules *modules,
                      uint64_t least, bool largest)
{
    uint64_t most = 0;

    for (size_t n = 0; n < modules->count; n++) {
        if (modules->list[n].all_bytes > most)
            most = modules->list[n].all_bytes;
    }
    (void)fputs("<table class=\"peak\"><thead><tr><th>module</th><th></th><th>at the "
                "peak</th><th>itself</th></tr></thead><tbody>\n",
                page->out);
    for (size_t n = 0; n < modules->count; n++) {
        if ((modules->list[n].all_bytes >= least) == largest)
            put_module(page, &modules->list[n], most);
    }
    as_html(page->out, "</tbody></table>\n");
}

static void put_modules(const struct as_page *page, const struct as_modules *modules)
{
    const uint64_t least = as_modules_least(modules, MODULES_SHOWN);
    size_t left = 0;

    for (size_t n = 0; n < modules->count; n++)
        left += modules->list[n].all_bytes < least;
    as_page_section(page, "modules", "Which modules hold activations");
    as_html(page->out, "<p class=\"note\">Each with what is inside of it; those whose "
                       "names differ in numbers alone are one row.</p>\n");
    put_table(page, modules, least, true);
    if (left) {
        as_html(page->out, "<details class=\"more\"><summary>%zu more</summary>", left);
        put_table(page, modules, least, false);
        as_html(page->out, "</details>\n");
    }
    as_html(page->out, "</section>\n");
}

void as_page_modules(const struct as_page *page)
{
    struct as_modules modules;

    if (!as_modules_init(&modules, page->report) && modules.count)
        put_modules(page, &modules);
    as_modules_finish(&modules);
}

static void put_stack(const struct as_page *page, json_t *site)
{
    const uint64_t which = as_field_number(site, "stack");
    json_t *const frames =
        which == AS_NOT_KNOWN
            ? NULL
            : json_array_get(as_field(page->report, "stacks"), (size_t)which);
    const size_t count = json_array_size(frames);
    const char *const inner = json_string_value(json_array_get(frames, count - 1));
    as_words words;
    if (count < 2) {
        as_html(page->out, "<td class=\"where\">%s</td>",
                as_words_stack(page->report, site, words));
        return;
    }
    as_html(page->out, "<td class=\"where\"><details><summary>%s</summary><ol>",
            inner ? inner : "?");
    for (size_t n = count - 1; n-- > 0;) {
        const char *const frame = json_string_value(json_array_get(frames, n));
        as_html(page->out, "<li>%s</li>", frame ? frame : "?");
    }
    as_html(page->out, "</ol></details></td>");
}

static bool any_has(json_t *list, const char *field)
{
    size_t n;
    json_t *item;
    json_array_foreach(list, n, item)
    {
        json_t *const value = as_field(item, field);
        if (value && !json_is_null(value))
            return true;
    }
    return false;
}

// A column that no site has anything for is left out.
static const struct column {
    const char *field, *heading;
    enum { BYTES, COUNT, TIME, WORD, PLACE } kind;
} columns[] = {
    {"peak_bytes", "at the peak", BYTES}, {"count", "tensors", COUNT},
    {"category", "held for", WORD},       {"idle_ns.p50", "waits", TIME},
    {"module", "module", WORD},           {"stack", "where", PLACE},
    {"copy_ns", "to copy", TIME},         {"recompute_ns", "to recompute", TIME},
    {"decision", "decision", WORD},       {"reason", "why", WORD},
    {"saved_bytes", "saves", BYTES},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static void put_cell(const struct as_page *page, json_t *site,
                     const struct column *column)
{
    const uint64_t value = as_field_number(site, column->field);
    as_words words;
    switch (column->kind) {
    case BYTES:
        put_number(page, value, as_words_bytes(value, words));
        return;
    case TIME:
        put_number(page, value, as_words_time(value, words));
        return;
    case COUNT:
        (void)snprintf(words, sizeof(words), "%" PRIu64, value);
        put_number(page, value, words);
        return;
    case WORD:
        put_text(page, site, column->field);
        return;
    case PLACE:
        put_stack(page, site);
        return;
    }
}

void as_page_sites(const struct as_page *page)
{
    json_t *const sites = as_field(page->report, "sites");
    bool shown[COLUMNS];
    size_t n;
    json_t *site;
    if (!json_array_size(sites)) {
        as_page_absent(page, "sites", "Where it was allocated");
        return;
    }
    as_page_section(page, "sites", "Where it was allocated");
    as_html(
        page->out,
        "<p class=\"note\">The "
        "places in the code that held most, and what was allocated there. Open one to "
        "see how the program got there.</p>\n<div class=\"scroll\">"
        "<table class=\"sites\"><thead><tr>");
    for (size_t c = 0; c < COLUMNS; c++) {
        shown[c] = any_has(sites, columns[c].field);
        if (shown[c])
            as_html(page->out, "<th class=\"%s\">%s</th>",
                    columns[c].kind <= TIME ? "number" : "", columns[c].heading);
    }
    as_html(page->out, "</tr></thead><tbody>\n");
    json_array_foreach(sites, n, site)
    {
        if (n >= page->top)
            break;
        as_html(page->out, "<tr>");
        for (size_t c = 0; c < COLUMNS; c++) {
            if (shown[c])
                put_cell(page, site, &columns[c]);
        }
        as_html(page->out, "</tr>\n");
    }
    as_html(page->out, "</tbody></table></div></section>\n");
}
