// SPDX-License-Identifier: Apache-2.0
//
// The page's sections about several processes and several runs, and about how all of it
// was found out.

#include "cli/field.h"
#include "cli/report/category.h"
#include "cli/report/chart.h"
#include "cli/report/html.h"
#include "cli/report/page.h"
#include "cli/report/words.h"

#include <inttypes.h>
#include <string.h>

enum { RANKS_SHOWN = 64 };

static uint64_t known(uint64_t value)
{
    return value == AS_NOT_KNOWN ? 0 : value;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100 * (double)known(part) / (double)whole : 0;
}

static void put_rank(const struct as_page *page, size_t n, uint64_t top)
{
    const struct as_run *const run = page->run;
    const struct as_rank *const rank = &run->ranks[n];
    const uint64_t most = known(run->ranks[run->highest].peak_bytes);
    as_words words;
    const bool pick = as_page_tells(page, n) && page->told_count > 1;
    const bool high = n == run->highest, slow = run->has_slowest && n == run->slowest;
    as_html(page->out, "<tr class=\"%s\"><th scope=\"row\">",
            high || slow ? "outlier" : "");
    if (pick)
        as_html(page->out, "<label for=\"pick-%zu\">rank %" PRIu64 "</label>", n,
                rank->rank);
    else
        as_html(page->out, "rank %" PRIu64, rank->rank);
    as_html(page->out, "</th><td>");
    as_chart_curve(page->out, rank->curve, rank->curve_count, top);
    as_html(page->out,
            "</td><td class=\"bars\"><i class=\"bar highest\" style=\"width:%.2f%%\"></i>"
            "</td><td>%s</td>",
            percent(rank->peak_bytes, most), as_words_bytes(rank->peak_bytes, words));
    as_html(page->out, "<td>%s</td>", as_words_bytes(rank->reserved_bytes, words));
    as_html(page->out, "<td>%s</td>",
            rank->step_ns == AS_NOT_KNOWN ? "\u2013"
                                          : as_words_time(rank->step_ns, words));
    as_html(page->out, "<td class=\"words\">%s%s%s</td></tr>\n",
            as_words_ended(rank, words), high ? "; highest peak" : "",
            slow ? "; slowest step" : "");
}

void as_page_ranks(const struct as_page *page)
{
    const struct as_run *const run = page->run;
    uint64_t top = 0;
    as_words words;
    if (run->count < 2 && run->world < 2)
        return;
    for (size_t n = 0; n < run->count; n++)
        for (size_t k = 0; k < run->ranks[n].curve_count; k++)
            top = run->ranks[n].curve[k] > top ? run->ranks[n].curve[k] : top;
    as_page_section(page, "ranks", "Ranks");
    if (*as_words_outliers(run, words))
        as_html(page->out, "<p class=\"sum\">%s.</p>\n", words);
    const size_t missing = as_run_missing(run, words, sizeof(words));
    if (missing)
        as_html(page->out,
                "<p class=\"bad\">%zu of %" PRIu64 " ranks left no report: %s.</p>\n",
                missing, run->world, words);
    as_html(page->out,
            "<div class=\"scroll\">"
            "<table class=\"ranks\"><thead><tr><th></th><th>memory over "
            "%s</th><th colspan=\"2\">peak</th><th>reserved</th><th>step</th>"
            "<th class=\"words\"></th></tr></thead><tbody>\n",
            run->ranks[0].curve_of_steps ? "steps" : "time");
    for (size_t n = 0; n < run->count; n++) {
        if (n < RANKS_SHOWN || n == run->highest ||
            (run->has_slowest && n == run->slowest))
            put_rank(page, n, top);
    }
    as_html(page->out, "</tbody></table></div>\n");
    if (run->count > RANKS_SHOWN)
        as_html(page->out,
                "<p class=\"note\">%zu ranks in all: the first %d and the "
                "outliers are shown.</p>\n",
                run->count, RANKS_SHOWN);
    as_html(page->out, "</section>\n");
}

// --- Several runs

static void put_run(const struct as_page *page, const struct as_run *run, uint64_t most)
{
    const struct as_rank *const rank = &run->ranks[run->shown];
    as_words words;
    as_html(page->out,
            "<tr><th scope=\"row\">%s</th><td class=\"bars\"><i class=\"bar highest\" "
            "style=\"width:%.2f%%\"></i><i class=\"bar reserved\" "
            "style=\"width:%.2f%%\"></i></td><td>%s</td>",
            run->name, percent(rank->peak_bytes, most),
            percent(rank->reserved_bytes, most), as_words_bytes(rank->peak_bytes, words));
    as_html(page->out, "<td>%s</td>", as_words_bytes(rank->reserved_bytes, words));
    const uint64_t steps = rank->steps ? rank->steps : 1;
    const uint64_t out = as_field_number(rank->report, "moves.out_bytes");
    as_html(page->out, "<td>%s</td>",
            as_words_bytes(out == AS_NOT_KNOWN ? out : out / steps, words));
    as_html(
        page->out, "<td>%s</td>",
        as_words_bytes(as_field_number(rank->report, "moves.pinned_peak_bytes"), words));
    as_html(page->out, "<td>%s</td>",
            rank->step_ns == AS_NOT_KNOWN ? "\u2013"
                                          : as_words_time(rank->step_ns, words));
    as_html(page->out, "<td class=\"words%s\">%s</td></tr>\n",
            rank->complete ? "" : " bad", as_words_ended(rank, words));
}

void as_page_policies(const struct as_page *page)
{
    uint64_t most = 0;
    if (page->runs->count < 2)
        return;
    for (size_t n = 0; n < page->runs->count; n++) {
        const struct as_run *const run = &page->runs->runs[n];
        const struct as_rank *const rank = &run->ranks[run->shown];
        most = known(rank->peak_bytes) > most ? known(rank->peak_bytes) : most;
        most = known(rank->reserved_bytes) > most ? known(rank->reserved_bytes) : most;
    }
    as_page_section(page, "policies", "Policies side by side");
    as_html(
        page->out,
        "<p class=\"note\">"
        "Everything else on this page is about <b>%s</b>. Whether losses and gradients "
        "agree is said by actswap compare.</p>\n<div class=\"scroll\">"
        "<table class=\"ranks\"><thead><tr><th>policy</th><th></th><th>peak</th>"
        "<th>reserved</th><th>copied out a step</th><th>pinned</th><th>step</th>"
        "<th class=\"words\">result</th></tr></thead><tbody>\n",
        page->run->name);
    for (size_t n = 0; n < page->runs->count; n++)
        put_run(page, &page->runs->runs[n], most);
    as_html(page->out,
            "</tbody></table></div>\n"
            "<ul class=\"legend\"><li><i class=\"bar highest\"></i>peak</li>"
            "<li><i class=\"bar reserved\"></i>reserved</li></ul></section>\n");
}

// --- How this was measured

static void put_row(const struct as_page *page, const char *what, const char *text)
{
    if (text && *text)
        as_html(page->out, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>\n", what, text);
}

static void put_command(const struct as_page *page)
{
    size_t n;
    json_t *word;
    as_html(page->out, "<tr><th scope=\"row\">command</th><td><code>");
    json_array_foreach(as_field(page->report, "run.command"), n, word)
    {
        if (json_is_string(word))
            as_html(page->out, "%s%s", n ? " " : "", json_string_value(word));
    }
    as_html(page->out, "</code></td></tr>\n");
}

static void put_settings(const struct as_page *page)
{
    const char *name;
    json_t *value;
    bool first = true;
    as_html(page->out, "<tr><th scope=\"row\">settings</th><td>");
    json_object_foreach(as_field(page->report, "run.settings"), name, value)
    {
        char *const text = json_dumps(value, JSON_ENCODE_ANY);
        as_html(page->out, "%s%s %s", first ? "" : ", ", name, text ? text : "");
        free(text);
        first = false;
    }
    as_html(page->out, "</td></tr>\n");
}

static void put_list(const struct as_page *page, const char *field, const char *what)
{
    json_t *const list = as_field(page->report, field);
    size_t n;
    json_t *item;
    if (!json_array_size(list))
        return;
    as_html(page->out, "<tr><th scope=\"row\">%s</th><td><ul>", what);
    json_array_foreach(list, n, item)
    {
        const char *text =
            json_is_string(item) ? json_string_value(item) : as_field_text(item, "what");
        text = text ? text : as_field_text(item, "reason");
        const uint64_t count = as_field_number(item, "count");
        const uint64_t bytes = as_field_number(item, "bytes");
        as_words amount;
        as_html(page->out, "<li>%s", text ? text : "");
        if (count != AS_NOT_KNOWN && count > 1)
            as_html(page->out, ", %" PRIu64 " times", count);
        if (bytes != AS_NOT_KNOWN)
            as_html(page->out, ", %s", as_words_bytes(bytes, amount));
        as_html(page->out, "</li>");
    }
    as_html(page->out, "</ul></td></tr>\n");
}

static void put_glossary(const struct as_page *page)
{
    as_html(page->out,
            "<h3>Words</h3>\n<dl class=\"words\">\n"
            "<dt>allocated</dt><dd>what tensors hold; the peak is of this</dd>\n"
            "<dt>reserved</dt><dd>what the framework's allocator took from the driver: "
            "allocated and cached together</dd>\n"
            "<dt>pinned</dt><dd>host memory that the device can copy to and from at full "
            "speed</dd>\n"
            "<dt>released</dt><dd>freed on the device after its copy on the host was "
            "complete</dd>\n"
            "<dt>step</dt><dd>from one optimizer step to the next</dd>\n");
    for (const struct as_category *category = as_categories; category->name; category++)
        as_html(page->out, "<dt><i class=\"c-%s\"></i>%s</dt><dd>%s</dd>\n",
                category->name, category->name, category->what);
    as_html(page->out, "</dl>\n");
}

void as_page_how(const struct as_page *page)
{
    as_words words;
    as_page_section(page, "how", "How this was found out");
    as_html(page->out, "<table class=\"how\"><tbody>\n");
    put_row(page, "figures are", as_words_basis(page->report, words));
    put_row(page, "source of memory", as_field_text(page->report, "peak.source"));
    put_row(page, "not in this report", as_words_lacking(page->report, words));
    put_command(page);
    put_row(page, "run", as_field_text(page->report, "run.id"));
    put_row(page, "machine", as_field_text(page->report, "run.host"));
    put_row(page, "framework", as_field_text(page->report, "run.framework"));
    put_row(page, "actswap", as_field_text(page->report, "run.actswap"));
    put_settings(page);
    put_list(page, "warnings", "warnings");
    put_list(page, "recompute.said", "recompute");
    put_list(page, "degraded", "degraded");
    put_list(page, "device.races_said", "races");
    put_list(page, "kept", "left on the device");
    put_list(page, "notes", "left alone");
    put_row(page, "report", page->rank->file);
    as_html(page->out, "</tbody></table>\n");
    put_glossary(page);
    as_html(page->out, "</section>\n");
}
