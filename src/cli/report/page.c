// SPDX-License-Identifier: Apache-2.0
#include "cli/report/page.h"

#include "cli/field.h"
#include "cli/report/html.h"
#include "cli/report/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// Of it what is about ranks; the frame and what is about the run come on top.
enum { PAGE_BYTES = 850000 };

// page.html with page.css and page.js in it, made by scripts/embed.
extern const char as_page_template[];

static void put_name(const struct as_page *page)
{
    as_words program;
    as_html(page->out, "%s", as_words_program(page->report, program));
}

bool as_page_tells(const struct as_page *page, size_t n)
{
    for (size_t k = 0; k < page->told_count; k++) {
        if (page->told[k] == n)
            return true;
    }
    return false;
}

// Which rank is shown is for buttons before everything else to say, so that it works
// without the script: what follows a checked one can be told apart by its style.
static void put_buttons(const struct as_page *page)
{
    if (page->told_count < 2)
        return;
    for (size_t k = 0; k < page->told_count; k++)
        as_html(page->out, "<input type=\"radio\" name=\"rank\" id=\"pick-%zu\"%s>\n",
                page->told[k], page->told[k] == page->run->shown ? " checked" : "");
    as_html(page->out, "<style>.of-rank{display:none}\n");
    for (size_t k = 0; k < page->told_count; k++) {
        const size_t n = page->told[k];
        as_html(page->out,
                "#pick-%zu:checked~* .rank-%zu{display:block}\n"
                "#pick-%zu:checked~* [for=pick-%zu]{background:var(--ink);"
                "color:var(--paper)}\n#pick-%zu:focus-visible~header "
                "[for=pick-%zu]{outline:2px solid var(--gradient)}\n",
                n, n, n, n, n, n);
    }
    as_html(page->out, "</style>\n");
}

static void put_switch(const struct as_page *page)
{
    if (page->told_count < 2)
        return;
    as_html(page->out, "<nav aria-label=\"rank\">");
    for (size_t k = 0; k < page->told_count; k++) {
        const struct as_rank *const rank = &page->run->ranks[page->told[k]];
        as_words words;
        as_html(page->out,
                "<label for=\"pick-%zu\">rank %" PRIu64 " <small>%s</small></label>",
                page->told[k], rank->rank, as_words_bytes(rank->peak_bytes, words));
    }
    if (page->told_count < page->run->count)
        as_html(page->out,
                " <span>%zu of %zu are on this page; --rank N adds another</span>",
                page->told_count, page->run->count);
    as_html(page->out, "</nav>\n");
}

static const struct place {
    const char *name;
    void (*put)(const struct as_page *page);
    bool of_rank; // once for each that is told in full
} places[] = {
    {"name", put_name, false},
    {"buttons", put_buttons, false},
    {"title", as_page_title, true},
    {"switch", put_switch, false},
    {"lead", as_page_lead, true},
    {"cards", as_page_cards, true},
    {"memory", as_page_memory, true},
    {"peak", as_page_peak, true},
    {"policies", as_page_policies, false},
    {"idle", as_page_idle, true},
    {"modules", as_page_modules, true},
    {"sites", as_page_sites, true},
    {"ranks", as_page_ranks, false},
    {"how", as_page_how, true},
};

enum { PLACES = sizeof(places) / sizeof(places[0]) };

static void put_of_ranks(const struct as_page *page, const struct place *place)
{
    const struct as_run *const run = page->run;
    const bool wrapped = page->told_count > 1;
    for (size_t k = 0; k < page->told_count; k++) {
        const size_t n = page->told[k];
        struct as_page one = *page;
        one.rank = &run->ranks[n];
        one.report = one.rank->report;
        if (n != run->shown)
            (void)snprintf(one.suffix, sizeof(one.suffix), "-%zu", n);
        if (wrapped)
            as_html(page->out, "<div class=\"of-rank rank-%zu\">\n", n);
        place->put(&one);
        if (wrapped)
            as_html(page->out, "</div>\n");
    }
}

// A place is "{{name}}".
static const char *put_place(const struct as_page *page, const char *place)
{
    const size_t length = strcspn(place, "}");
    for (size_t n = 0; n < PLACES; n++) {
        if (strlen(places[n].name) != length ||
            strncmp(places[n].name, place, length) != 0)
            continue;
        if (places[n].of_rank)
            put_of_ranks(page, &places[n]);
        else
            places[n].put(page);
    }
    return place + length + 2;
}

// --- Which ranks are told in full

// How much of the page one rank takes; SIZE_MAX: no memory for it.
static size_t bytes_of(const struct as_page *page, size_t n)
{
    char *text = NULL;
    size_t bytes = 0;
    struct as_page one = *page;
    one.told[0] = n;
    one.told_count = 1;
    one.out = open_memstream(&text, &bytes);
    if (!one.out)
        return SIZE_MAX;
    for (size_t k = 0; k < PLACES; k++) {
        if (places[k].of_rank)
            put_of_ranks(&one, &places[k]);
    }
    const bool failed = fclose(one.out) != 0;
    free(text);
    return failed ? SIZE_MAX : bytes;
}

// The highest that is not told yet; run->count: none is left.
static size_t next_highest(const struct as_page *page)
{
    const struct as_run *const run = page->run;
    size_t best = run->count;
    for (size_t n = 0; n < run->count; n++) {
        if (!run->ranks[n].report || as_page_tells(page, n))
            continue;
        const bool higher = best == run->count ||
                            (run->ranks[n].peak_bytes != AS_NOT_KNOWN &&
                             run->ranks[n].peak_bytes > run->ranks[best].peak_bytes);
        best = higher ? n : best;
    }
    return best;
}

static int by_index(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static void choose(struct as_page *page)
{
    const struct as_run *const run = page->run;
    page->told[page->told_count++] = run->shown;
    size_t bytes = run->count > 1 ? bytes_of(page, run->shown) : 0;
    while (page->told_count < AS_PAGE_RANKS) {
        const size_t n = next_highest(page);
        const size_t more = n < run->count ? bytes_of(page, n) : SIZE_MAX;
        if (more > PAGE_BYTES || bytes + more > PAGE_BYTES)
            break;
        bytes += more;
        page->told[page->told_count++] = n;
    }
    qsort(page->told, page->told_count, sizeof(page->told[0]), by_index);
}

void as_report_page(const struct as_runs *runs, FILE *out, size_t top)
{
    const struct as_run *const run = &runs->runs[0];
    struct as_page page = {
        .out = out,
        .runs = runs,
        .run = run,
        .rank = &run->ranks[run->shown],
        .report = run->ranks[run->shown].report,
        .top = top,
    };
    choose(&page);
    const char *rest = as_page_template;
    for (const char *place = strstr(rest, "{{"); place; place = strstr(rest, "{{")) {
        (void)fwrite(rest, 1, (size_t)(place - rest), out);
        rest = put_place(&page, place + 2);
    }
    (void)fputs(rest, out);
}
