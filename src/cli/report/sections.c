// SPDX-License-Identifier: Apache-2.0
#include "cli/field.h"
#include "cli/report/category.h"
#include "cli/report/chart.h"
#include "cli/report/html.h"
#include "cli/report/page.h"
#include "cli/report/words.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

// Fewer can be read off the picture over time.
enum { STEPS_WORTH_IT = 3 };

// --- Title and the first sentence

static void put_date(const struct as_page *page)
{
    const uint64_t ns = as_field_number(page->report, "run.started_unix_ns");
    const time_t seconds = (time_t)(ns / 1000000000);
    struct tm parts;
    char text[64];
    if (ns == AS_NOT_KNOWN || !localtime_r(&seconds, &parts) ||
        !strftime(text, sizeof(text), "%e %B %Y, %H:%M", &parts))
        return;
    as_html(page->out, " <span>%s</span>", text);
}

static void put_fact(const struct as_page *page, const char *field)
{
    const char *const text = as_field_text(page->report, field);
    if (text)
        as_html(page->out, " <span>%s</span>", text);
}

void as_page_title(const struct as_page *page)
{
    const struct as_rank *const rank = page->rank;
    as_words words;
    as_html(page->out, "<h1>%s</h1>\n<p class=\"facts\"><span>policy <b>%s</b></span>",
            as_words_program(page->report, words), page->run->policy);
    if (*as_words_device(page->report, words))
        as_html(page->out, " <span>%s</span>", words);
    if (page->run->world > 1 || page->run->count > 1)
        as_html(page->out,
                " <span>%" PRIu64 " ranks, this is <b>rank %" PRIu64 "</b></span>",
                page->run->world, rank->rank);
    put_fact(page, "run.framework");
    put_date(page);
    as_html(page->out,
            "</p>\n<p class=\"state\"><span class=\"badge%s\">%s</span> "
            "<span class=\"badge%s\">%s</span></p>\n",
            json_is_true(as_field(page->report, "device.simulated")) ? " simulated" : "",
            as_words_basis(page->report, words),
            rank->complete && strcmp(rank->ended, "oom") != 0 ? "" : " bad",
            as_words_ended(rank, (as_words){0}));
}

// The category that holds most at the peak; NULL: not known.
static json_t *largest(json_t *report)
{
    json_t *best = NULL;
    size_t n;
    json_t *item;
    json_array_foreach(as_field(report, "peak.by_category"), n, item)
    {
        const uint64_t bytes = as_field_number(item, "bytes");
        if (bytes != AS_NOT_KNOWN && (!best || bytes > as_field_number(best, "bytes")))
            best = item;
    }
    return best;
}

static void put_oom(const struct as_page *page)
{
    json_t *const oom = as_field(page->rank->oom ? page->rank->oom : page->report, "oom");
    as_words words;
    if (!oom)
        return;
    as_html(page->out,
            "<div class=\"oom\"><h2>Out of memory</h2><p>The program asked "
            "for <b>%s</b>",
            as_words_bytes(as_field_number(oom, "asked_bytes"), words));
    const uint64_t used = as_field_number(oom, "in_use_bytes");
    if (used != AS_NOT_KNOWN)
        as_html(page->out, " while %s were in use", as_words_bytes(used, words));
    const uint64_t total = as_field_number(oom, "total_bytes");
    if (total != AS_NOT_KNOWN)
        as_html(page->out, " of the %s that the card has", as_words_bytes(total, words));
    if (*as_words_oom_place(oom, words))
        as_html(page->out, ", in %s", words);
    as_html(page->out, ".</p>");
    if (*as_words_shares(as_field(oom, "held_by"), words))
        as_html(page->out, "<p>Held by %s.</p>", words);
    if (*as_words_shares(as_field(oom, "to_come"), words))
        as_html(page->out, "<p>Still to come: %s.</p>", words);
    const uint64_t pieces = as_field_number(oom, "free_bytes");
    if (pieces != AS_NOT_KNOWN && pieces) {
        as_html(page->out, "<p>%s were free in pieces", as_words_bytes(pieces, words));
        as_html(page->out, ", the largest %s.</p>",
                as_words_bytes(as_field_number(oom, "largest_free_bytes"), words));
    }
    as_html(page->out, "</div>\n");
}

void as_page_lead(const struct as_page *page)
{
    const struct as_rank *const rank = page->rank;
    as_words words;
    put_oom(page);
    if (rank->peak_bytes == AS_NOT_KNOWN) {
        as_html(page->out, "<p class=\"lead\">No allocation was seen, so nothing is "
                           "known about memory.</p>\n");
        return;
    }
    as_html(page->out, "<p class=\"lead\">At most <b>%s</b>",
            as_words_bytes(rank->peak_bytes, words));
    if (rank->total_bytes != AS_NOT_KNOWN) {
        as_html(page->out, " of %s", as_words_bytes(rank->total_bytes, words));
        as_html(page->out, " (%s)",
                as_words_share(rank->peak_bytes, rank->total_bytes, words));
    }
    as_html(page->out, " were in use, in %s.", as_words_peak_place(page->report, words));
    json_t *const most = largest(page->report);
    const char *const name = as_field_text(most, "category");
    if (name && !*as_words_advice(page->report, words))
        as_html(page->out, " The largest part of it, %s, is <b>%s</b>.",
                as_words_share(as_field_number(most, "bytes"), rank->peak_bytes, words),
                name);
    as_html(page->out, "</p>\n");
    if (*as_words_budget(page->report, words))
        as_html(page->out, "<p class=\"budget\">Budget %s.</p>\n", words);
    if (*as_words_advice(page->report, words))
        as_html(page->out, "<p class=\"advice\">%s.</p>\n", words);
}

// --- Cards

static void put_card(const struct as_page *page, const char *what, const char *value,
                     const char *more)
{
    as_html(page->out,
            "<div class=\"card\"><span>%s</span><b>%s</b><small>%s</small>"
            "</div>\n",
            what, value, more);
}

static void put_moved_card(const struct as_page *page)
{
    as_words moved, pinned, more;
    const uint64_t out = as_field_number(page->report, "moves.out_bytes");
    const uint64_t steps = page->rank->steps ? page->rank->steps : 1;
    if (out == AS_NOT_KNOWN || !out) {
        put_card(page, "copied to the host", "nothing",
                 !strcmp(page->run->policy, "off") ? "the policy is off: watching only"
                                                   : "this policy moves nothing");
        return;
    }
    (void)snprintf(
        more, sizeof(more), "a step; %.60s pinned on the host",
        as_words_bytes(as_field_number(page->report, "moves.pinned_peak_bytes"), pinned));
    put_card(page, "copied to the host", as_words_bytes(out / steps, moved), more);
    if (*as_words_disk(page->report, more))
        put_card(
            page, "on the disk",
            as_words_bytes(as_field_number(page->report, "moves.disk.peak_bytes"), moved),
            more);
}

static void put_fits_card(const struct as_page *page)
{
    json_t *item;
    size_t n;
    json_array_foreach(as_field(page->report, "verdict"), n, item)
    {
        const char *const fits = as_field_text(item, "fits");
        const char *const gpu = as_field_text(item, "gpu");
        as_words all;
        if (!fits || !gpu || !strcmp(fits, "no"))
            continue;
        const char *const rest = as_words_fits(page->report, all) + strlen(gpu);
        put_card(page, "smallest card that fits", gpu, rest + strspn(rest, " "));
        return;
    }
    const struct as_rank *const rank = page->rank;
    as_words amount;
    if (rank->total_bytes == AS_NOT_KNOWN || rank->peak_bytes == AS_NOT_KNOWN)
        put_card(page, "to spare", "not known", "the card's size was not seen");
    else if (rank->peak_bytes > rank->total_bytes)
        put_card(page, "to spare", "nothing", "the peak is higher than the card");
    else
        put_card(page, "to spare",
                 as_words_bytes(rank->total_bytes - rank->peak_bytes, amount),
                 "of this card, at the peak of tensors");
}

void as_page_cards(const struct as_page *page)
{
    const struct as_rank *const rank = page->rank;
    as_words value, more = "", share;
    if (rank->total_bytes != AS_NOT_KNOWN)
        (void)snprintf(more, sizeof(more), "%.16s of the card; %.60s reserved",
                       as_words_share(rank->peak_bytes, rank->total_bytes, share),
                       as_words_bytes(rank->reserved_bytes, value));
    as_html(page->out, "<div class=\"cards\">\n");
    put_card(page, "peak on the device", as_words_bytes(rank->peak_bytes, value), more);
    if (rank->step_ns != AS_NOT_KNOWN)
        put_card(page, "time of a step", as_words_time(rank->step_ns, value),
                 json_is_true(as_field(page->report, "device.simulated"))
                     ? "median, simulated at the card's peak rates"
                     : "median, without the first");
    else {
        (void)snprintf(value, sizeof(value), "%" PRIu64, rank->steps);
        put_card(page, "steps seen", value, "their time is not known");
    }
    put_moved_card(page);
    put_fits_card(page);
    as_html(page->out, "</div>\n");
}

// --- Memory over time

void as_page_section(const struct as_page *page, const char *id, const char *heading)
{
    as_html(page->out, "<section id=\"%s%s\"><h2>%s</h2>\n", id, page->suffix, heading);
}

void as_page_absent(const struct as_page *page, const char *id, const char *heading)
{
    const char *const writer = as_field_text(page->report, "run.actswap");
    as_page_section(page, id, heading);
    as_html(page->out,
            "<p class=\"note\">Not in this report: actswap%s%s, which wrote it, did not "
            "see it.</p></section>\n",
            writer ? " " : "", writer ? writer : "");
}

static void put_legend(const struct as_page *page, const struct as_timeline *timeline)
{
    const size_t row = as_timeline_peak(timeline);
    as_html(page->out, "<ul class=\"legend\">");
    for (size_t n = timeline->series_count; n-- > 0;) {
        as_words amount;
        as_html(
            page->out, "<li><i class=\"c-%s\"></i>%s <b data-value=\"%zu\">%s</b></li>",
            as_category_known(timeline->series[n].category), timeline->series[n].category,
            n, as_words_bytes(timeline->series[n].bytes[row], amount));
    }
    as_html(page->out, "<li class=\"when\">at the peak</li></ul>\n");
    if (timeline->phases)
        as_html(page->out, "<p class=\"note\">Above the picture: "
                           "<i class=\"key p-forward\"></i> forward "
                           "<i class=\"key p-backward\"></i> backward "
                           "<i class=\"key p-optimizer\"></i> optimizer</p>\n");
}

void as_page_memory(const struct as_page *page)
{
    struct as_timeline timeline;
    as_words where;
    size_t steps = json_array_size(as_field(page->report, "steps.peak_bytes"));
    if (!as_timeline_read(&timeline, page->report)) {
        const struct as_chart_lines lines = {
            .device_bytes = page->rank->total_bytes,
            .budget_bytes = as_field_number(page->report, "run.settings.budget_bytes"),
            .peak = as_words_peak_place(page->report, where),
        };
        as_page_section(page, "memory", "Memory over time");
        as_html(page->out,
                "<p class=\"note\">What the tensors on the device were for. "
                "Each point is the highest of its stretch of time, so no peak "
                "is lost.%s</p>\n<figure class=\"timeline\">\n",
                json_is_true(as_field(page->report, "device.simulated"))
                    ? " The time is the simulation's, not the card's."
                    : "");
        as_chart_timeline(page->out, &timeline, &lines);
        as_html(page->out, "</figure>\n");
        if (timeline.left_out_ns)
            as_html(page->out,
                    "<p class=\"note\">The first %s, before any forward, are "
                    "left out.</p>\n",
                    as_words_time(timeline.left_out_ns, where));
        put_legend(page, &timeline);
        as_chart_timeline_data(page->out, &timeline);
        as_timeline_finish(&timeline);
        as_html(page->out, "</section>\n");
        steps = steps < STEPS_WORTH_IT ? 0 : steps;
    } else {
        as_page_absent(page, "memory", "Memory over time");
    }
    if (!steps)
        return;
    as_page_section(page, "steps", "Each step");
    as_html(page->out, "<figure>\n");
    as_chart_steps(page->out, page->report);
    as_html(page->out, "</figure>\n<ul class=\"legend\">"
                       "<li><i class=\"bar reserved\"></i>reserved by the allocator</li>"
                       "<li><i class=\"bar highest\"></i>highest in the step</li>"
                       "<li><i class=\"bar after\"></i>alive after forward</li></ul>\n");
    const uint64_t omitted = as_field_number(page->report, "steps.omitted_count");
    if (omitted != AS_NOT_KNOWN && omitted)
        as_html(page->out,
                "<p class=\"note\">%" PRIu64 " steps in the middle of the run "
                "are not listed in the report.</p>\n",
                omitted);
    as_html(page->out, "</section>\n");
}

// --- At the peak

static uint64_t bytes_of(json_t *list, const char *category)
{
    size_t n;
    json_t *item;
    json_array_foreach(list, n, item)
    {
        if (as_field_is(item, "category", category))
            return as_field_number(item, "bytes");
    }
    return 0;
}

// Without a bar: next to a small model the driver's own would be all there is to see.
static void put_other(const struct as_page *page, json_t *item)
{
    const char *const name = as_field_text(item, "category");
    as_words amount;
    as_html(page->out, "<tr><th scope=\"row\">%s</th><td class=\"bars\"></td><td>%s</td>",
            name, as_words_bytes(as_field_number(item, "bytes"), amount));
}

static void put_bars(const struct as_page *page, json_t *item, uint64_t most)
{
    const char *const name = as_field_text(item, "category");
    const uint64_t bytes = as_field_number(item, "bytes");
    const uint64_t off = as_field_number(item, "off_bytes");
    as_words amount;
    as_html(page->out,
            "<tr><th scope=\"row\">%s</th><td class=\"bars\"><i class=\"c-%s\" "
            "style=\"width:%.2f%%\"></i>",
            name, as_category_known(name), 100 * (double)bytes / (double)most);
    if (off != AS_NOT_KNOWN)
        as_html(page->out, "<i class=\"ghost\" style=\"width:%.2f%%\"></i>",
                100 * (double)off / (double)most);
    as_html(page->out, "</td><td>%s</td>", as_words_bytes(bytes, amount));
}

static void put_source(const struct as_page *page, json_t *item)
{
    const char *const source = as_field_text(item, "source");
    as_html(page->out, "<td class=\"source\">%s</td></tr>\n",
            !source || !strcmp(source, "none") ? "nobody said" : source);
}

static void put_category(const struct as_page *page, json_t *item, uint64_t most)
{
    json_t *const before = as_field(page->report, "peak.before.by_category");
    json_t *const after = as_field(page->report, "peak.after.by_category");
    const char *const name = as_field_text(item, "category");
    as_words words;
    put_bars(page, item, most);
    as_html(
        page->out, "<td>%s</td>",
        as_words_share(as_field_number(item, "bytes"), page->rank->peak_bytes, words));
    if (before)
        as_html(page->out, "<td>%s</td>", as_words_bytes(bytes_of(before, name), words));
    if (after)
        as_html(page->out, "<td>%s</td>", as_words_bytes(bytes_of(after, name), words));
    put_source(page, item);
}

// Of tensors.
static uint64_t most_bytes(json_t *list, const char *field)
{
    uint64_t most = 0;
    size_t n;
    json_t *item;
    json_array_foreach(list, n, item)
    {
        const uint64_t bytes = as_category_is_tensors(as_field_text(item, "category"))
                                   ? as_field_number(item, field)
                                   : 0;
        most = bytes != AS_NOT_KNOWN && bytes > most ? bytes : most;
    }
    return most;
}

static bool is_row(json_t *item, bool tensors)
{
    return as_field_text(item, "category") &&
           as_field_number(item, "bytes") != AS_NOT_KNOWN &&
           as_category_is_tensors(as_field_text(item, "category")) == tensors;
}

static void put_tensors(const struct as_page *page, uint64_t most)
{
    size_t n;
    json_t *item;
    for (size_t order = 0; order <= as_category_order(""); order++) {
        json_array_foreach(as_field(page->report, "peak.by_category"), n, item)
        {
            if (is_row(item, true) &&
                as_category_order(as_field_text(item, "category")) == order)
                put_category(page, item, most);
        }
    }
}

static void put_others(const struct as_page *page)
{
    const int moments = (as_field(page->report, "peak.before") != NULL) +
                        (as_field(page->report, "peak.after") != NULL);
    bool first = true;
    size_t n;
    json_t *item;
    json_array_foreach(as_field(page->report, "peak.by_category"), n, item)
    {
        if (!is_row(item, false))
            continue;
        if (first)
            as_html(page->out,
                    "<tr><td class=\"apart\" colspan=\"%d\">and outside of "
                    "tensors</td></tr>\n",
                    5 + moments);
        first = false;
        put_other(page, item);
        for (int k = 0; k <= moments; k++)
            as_html(page->out, "<td></td>");
        put_source(page, item);
    }
}

void as_page_peak(const struct as_page *page)
{
    json_t *const list = as_field(page->report, "peak.by_category");
    as_words words;
    uint64_t most = most_bytes(list, "bytes");
    if (!most)
        return;
    most = most_bytes(list, "off_bytes") > most ? most_bytes(list, "off_bytes") : most;
    as_page_section(page, "peak", "What held it at the peak");
    as_html(
        page->out,
        "<p class=\"note\">In %s. A source says how sure the name is: the adapter was "
        "told by the framework; inferred is drawn from use.</p>\n"
        "<div class=\"scroll\"><table class=\"peak\"><thead><tr><th>held for</th>"
        "<th></th><th>bytes</th><th>share</th>",
        as_words_peak_place(page->report, words));
    if (as_field(page->report, "peak.before"))
        as_html(page->out, "<th>as its step began</th>");
    if (as_field(page->report, "peak.after"))
        as_html(page->out, "<th>as it ended</th>");
    as_html(page->out, "<th class=\"source\">source</th></tr></thead><tbody>\n");
    put_tensors(page, most);
    put_others(page);
    as_html(page->out, "</tbody></table></div>\n");
    if (*as_words_reconcile(page->report, words))
        as_html(page->out, "<p class=\"sum\">%s.</p>\n", words);
    as_html(page->out, "</section>\n");
}

// --- Idle gaps

void as_page_idle(const struct as_page *page)
{
    const uint64_t all = as_field_sum(page->report, "idle_gap.bytes");
    as_words words;
    if (all == AS_NOT_KNOWN || !all) {
        as_page_absent(page, "idle", "How long activations wait");
        return;
    }
    as_page_section(page, "idle", "How long activations wait");
    as_html(page->out,
            "<p class=\"note\">Forward saves a tensor, backward needs it later. "
            "What lies in between without use could be elsewhere.</p>\n"
            "<p class=\"sum\">%s.</p>\n<figure>\n",
            as_words_idle(page->report, words));
    as_chart_idle(page->out, page->report);
    as_html(page->out, "</figure></section>\n");
}
