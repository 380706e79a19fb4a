// SPDX-License-Identifier: Apache-2.0
#include "cli/report/text.h"

#include "cli/field.h"
#include "cli/report/category.h"
#include "cli/report/modules.h"
#include "cli/report/words.h"

#include <inttypes.h>
#include <string.h>

enum { LABEL = 17, BAR = 24, RANKS_SHOWN = 16 };

struct page {
    FILE *out;
    struct as_look look;
    const struct as_run *run;
    const struct as_rank *rank;
    json_t *report;
    size_t top;
};

static const char *style(const struct page *page, const char *code)
{
    return page->look.colour ? code : "";
}

#define BOLD "\033[1m"
#define FAINT "\033[2m"
#define RED "\033[31m"
#define PLAIN "\033[0m"

// "  label            words", nothing where there are no words.
static void line(const struct page *page, const char *label, const char *words)
{
    if (*words)
        (void)fprintf(page->out, "  %-*s %s\n", LABEL - 1, label, words);
}

static void print_title(const struct page *page)
{
    as_words program, basis, device;
    const char *const framework = as_field_text(page->report, "run.framework");
    const char *const policy = as_field_text(page->report, "run.settings.policy");
    (void)fprintf(page->out, "%sactswap  %s%s", style(page, BOLD),
                  as_words_program(page->report, program), style(page, PLAIN));
    if (page->run->world > 1 || page->run->count > 1)
        (void)fprintf(page->out, "  rank %" PRIu64 " of %" PRIu64, page->rank->rank,
                      page->run->world);
    as_words_device(page->report, device);
    (void)fprintf(page->out, "  policy %s%s%s%s%s   %s\n", policy ? policy : "not known",
                  *device ? "  " : "", device, framework ? "  " : "",
                  framework ? framework : "", as_words_basis(page->report, basis));
}

static void print_peak(const struct page *page)
{
    as_words amount, total, share, place, words = "";
    const struct as_rank *const rank = page->rank;
    if (rank->peak_bytes == AS_NOT_KNOWN) {
        line(page, "peak on device", "not known: no allocation was seen");
        return;
    }
    (void)snprintf(words, sizeof(words), "%s", as_words_bytes(rank->peak_bytes, amount));
    if (rank->total_bytes != AS_NOT_KNOWN) {
        const size_t used = strlen(words);
        (void)snprintf(words + used, sizeof(words) - used, " of %s (%s)",
                       as_words_bytes(rank->total_bytes, total),
                       as_words_share(rank->peak_bytes, rank->total_bytes, share));
    }
    const size_t used = strlen(words);
    (void)snprintf(words + used, sizeof(words) - used, "   %s",
                   as_words_peak_place(page->report, place));
    line(page, "peak on device", words);
    line(page, "", as_words_reconcile(page->report, amount));
}

static void print_moves(const struct page *page)
{
    json_t *const report = page->report;
    as_words out, in, released, pinned, words;
    const uint64_t moved = as_field_number(report, "moves.out_bytes");
    if (page->rank->step_ns != AS_NOT_KNOWN)
        line(page, "step time", as_words_time(page->rank->step_ns, words));
    if (moved == AS_NOT_KNOWN || !moved)
        return;
    (void)snprintf(
        words, sizeof(words), "out %.60s, in %.60s, released %.60s, pinned %.60s",
        as_words_bytes(moved, out),
        as_words_bytes(as_field_number(report, "moves.in_bytes"), in),
        as_words_bytes(as_field_number(report, "moves.released_bytes"), released),
        as_words_bytes(as_field_number(report, "moves.pinned_peak_bytes"), pinned));
    line(page, "moved in all", words);
    line(page, "disk", as_words_disk(report, words));
}

static int bar_cells(uint64_t part, uint64_t whole)
{
    const double share = whole ? (double)part / (double)whole : 0;
    const int full = (int)(share * BAR + 0.5);
    return full < BAR ? full : BAR;
}

static void print_category(const struct page *page, json_t *item, uint64_t whole)
{
    as_words amount, share, row;
    const char *const name = as_field_text(item, "category");
    const char *const source = as_field_text(item, "source");
    const uint64_t bytes = as_field_number(item, "bytes");
    const bool tensors = as_category_is_tensors(name);
    const int cells = tensors ? bar_cells(bytes, whole) : 0;
    (void)snprintf(row, sizeof(row), "    %-18.40s %10.20s %5.10s  %-9.20s ", name,
                   as_words_bytes(bytes, amount),
                   tensors ? as_words_share(bytes, whole, share) : "",
                   source && strcmp(source, "none") != 0 ? source : "");
    for (size_t end = strlen(row); !cells && row[end - 1] == ' '; end--)
        row[end - 1] = '\0';
    (void)fputs(row, page->out);
    for (int n = 0; n < cells; n++)
        (void)fputs(page->look.ascii ? "#" : "\u2588", page->out);
    (void)fputc('\n', page->out);
}

static void print_categories(const struct page *page)
{
    json_t *const list = as_field(page->report, "peak.by_category");
    size_t n;
    json_t *item;
    if (!json_array_size(list))
        return;
    as_words place;
    (void)fprintf(page->out, "\n  %sat the peak%s, %s\n", style(page, BOLD),
                  style(page, PLAIN), as_words_peak_place(page->report, place));
    for (size_t order = 0; order <= as_category_order(""); order++) {
        json_array_foreach(list, n, item)
        {
            const char *const name = as_field_text(item, "category");
            const uint64_t bytes = as_field_number(item, "bytes");
            if (name && as_category_order(name) == order && bytes &&
                bytes != AS_NOT_KNOWN)
                print_category(page, item, page->rank->peak_bytes);
        }
    }
}

static void print_site(const struct page *page, json_t *site)
{
    as_words amount, gap, stack;
    const char *const category = as_field_text(site, "category");
    const char *const decision = as_field_text(site, "decision");
    const uint64_t count = as_field_number(site, "count");
    const uint64_t idle = as_field_number(site, "idle_ns.p50");
    (void)fprintf(page->out, "    %10s %6" PRIu64 "x  %-16.40s %-8s %-10s %s\n",
                  as_words_bytes(as_field_number(site, "peak_bytes"), amount),
                  count == AS_NOT_KNOWN ? 0 : count, category ? category : "",
                  idle == AS_NOT_KNOWN ? "" : as_words_time(idle, gap),
                  decision ? decision : "", as_words_stack(page->report, site, stack));
}

static void print_sites(const struct page *page)
{
    json_t *const sites = as_field(page->report, "sites");
    const size_t count = json_array_size(sites);
    if (!count)
        return;
    (void)fprintf(page->out,
                  "\n  %slargest sites%s: bytes at the peak, tensors, kind, "
                  "time until the next use, where\n",
                  style(page, BOLD), style(page, PLAIN));
    for (size_t n = 0; n < count && n < page->top; n++)
        print_site(page, json_array_get(sites, n));
    if (count > page->top)
        (void)fprintf(page->out, "    %s... %zu more: add --top %zu%s\n",
                      style(page, FAINT), count - page->top, count, style(page, PLAIN));
}

static void print_module(const struct page *page, const struct as_module *module)
{
    as_words amount;
    char count[24] = "";

    if (module->count > 1)
        (void)snprintf(count, sizeof(count), "%zux", module->count);
    (void)fprintf(page->out, "    %10s %7s  %*s%s\n",
                  as_words_bytes(module->all_bytes, amount), count,
                  (int)(2 * module->depth), "", module->name);
}

static void print_modules(const struct page *page)
{
    struct as_modules modules;

    if (!as_modules_init(&modules, page->report) && modules.count) {
        const uint64_t least = as_modules_least(&modules, page->top);
        size_t left = 0;

        (void)fprintf(page->out,
                      "\n  %slargest modules%s: activations at the peak with what is "
                      "inside, modules alike, name\n",
                      style(page, BOLD), style(page, PLAIN));
        for (size_t n = 0; n < modules.count; n++) {
            if (modules.list[n].all_bytes >= least)
                print_module(page, &modules.list[n]);
            else
                left++;
        }
        if (left)
            (void)fprintf(page->out, "    %s... %zu more: add --top %zu%s\n",
                          style(page, FAINT), left, modules.count, style(page, PLAIN));
    }
    as_modules_finish(&modules);
}

static void print_rank(const struct page *page, size_t n)
{
    const struct as_rank *const rank = &page->run->ranks[n];
    as_words peak, reserved, step, ended;
    const bool high = n == page->run->highest && page->run->count > 1;
    const bool slow =
        page->run->has_slowest && n == page->run->slowest && page->run->count > 1;
    (void)fprintf(page->out, "    %5" PRIu64 " %12s %12s %12s   %s%s%s\n", rank->rank,
                  as_words_bytes(rank->peak_bytes, peak),
                  as_words_bytes(rank->reserved_bytes, reserved),
                  rank->step_ns == AS_NOT_KNOWN ? "-"
                                                : as_words_time(rank->step_ns, step),
                  as_words_ended(rank, ended), high ? "   <- highest peak" : "",
                  slow ? "   <- slowest" : "");
}

static void print_ranks(const struct page *page)
{
    const struct as_run *const run = page->run;
    as_words words;
    if (run->count < 2 && run->world < 2)
        return;
    (void)fprintf(page->out, "\n  %sranks%s %12s %12s %12s\n", style(page, BOLD),
                  style(page, PLAIN), "  peak", "reserved", "step");
    for (size_t n = 0; n < run->count; n++) {
        if (n < RANKS_SHOWN || n == run->highest || n == run->slowest)
            print_rank(page, n);
    }
    if (run->count > RANKS_SHOWN)
        (void)fprintf(page->out, "    ... all %zu: --json\n", run->count);
    if (*as_words_outliers(run, words))
        (void)fprintf(page->out, "    %s\n", words);
    const size_t missing = as_run_missing(run, words, sizeof(words));
    if (missing)
        (void)fprintf(page->out, "    %s%zu of %" PRIu64 " ranks left no report: %s%s\n",
                      style(page, RED), missing, run->world, words, style(page, PLAIN));
}

static void print_list(const struct page *page, const char *field, const char *label)
{
    size_t n;
    json_t *item;
    json_array_foreach(as_field(page->report, field), n, item)
    {
        const char *const what =
            json_is_string(item) ? json_string_value(item) : as_field_text(item, "what");
        const uint64_t count = as_field_number(item, "count");
        if (!what)
            continue;
        (void)fprintf(page->out, "  %-*s %s", LABEL - 1, n ? "" : label, what);
        if (count != AS_NOT_KNOWN && count > 1)
            (void)fprintf(page->out, ", %" PRIu64 " times", count);
        (void)fputc('\n', page->out);
    }
}

static void print_verdict(const struct page *page)
{
    as_words words;

    line(page, "fits", as_words_fits(page->report, words));
}

static void print_oom(const struct page *page)
{
    json_t *const oom = as_field(page->rank->oom ? page->rank->oom : page->report, "oom");
    as_words asked, in_use, total, free_bytes, words;
    if (!oom)
        return;
    (void)snprintf(words, sizeof(words), "asked for %.60s with %.60s of %.60s in use",
                   as_words_bytes(as_field_number(oom, "asked_bytes"), asked),
                   as_words_bytes(as_field_number(oom, "in_use_bytes"), in_use),
                   as_words_bytes(as_field_number(oom, "total_bytes"), total));
    line(page, "out of memory", words);
    line(page, "", as_words_oom_place(oom, words));
    line(page, "held by", as_words_shares(as_field(oom, "held_by"), words));
    line(page, "still to come", as_words_shares(as_field(oom, "to_come"), words));
    const uint64_t pieces = as_field_number(oom, "free_bytes");
    if (pieces == AS_NOT_KNOWN || !pieces)
        return;
    (void)snprintf(words, sizeof(words), "%.60s, the largest piece %.60s",
                   as_words_bytes(pieces, free_bytes),
                   as_words_bytes(as_field_number(oom, "largest_free_bytes"), total));
    line(page, "free in pieces", words);
}

void as_report_text(const struct as_run *run, FILE *out, struct as_look look, size_t top)
{
    const struct as_rank *const rank = &run->ranks[run->shown];
    const struct page page = {out, look, run, rank, rank->report, top};
    as_words words;

    print_title(&page);
    line(&page, "run", as_words_ended(rank, words));
    print_oom(&page);
    print_peak(&page);
    line(&page, "budget", as_words_budget(rank->report, words));
    print_moves(&page);
    line(&page, "advice", as_words_advice(rank->report, words));
    print_categories(&page);
    print_modules(&page);
    print_sites(&page);
    if (*as_words_idle(rank->report, words))
        (void)fprintf(out, "\n  %s\n", words);
    print_ranks(&page);
    (void)fputc('\n', out);
    print_verdict(&page);
    print_list(&page, "recompute.said", "recompute");
    print_list(&page, "degraded", "degraded");
    print_list(&page, "device.races_said", "races");
    print_list(&page, "notes", "left alone");
    print_list(&page, "warnings", "warnings");
    line(&page, "not in it", as_words_lacking(rank->report, words));
    line(&page, "report", rank->file);
}
