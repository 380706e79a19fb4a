// SPDX-License-Identifier: Apache-2.0
#include "cli/report/page.h"

#include "cli/report/html.h"
#include "cli/report/words.h"

#include <string.h>

// page.html with page.css and page.js in it, made by scripts/embed.
extern const char as_page_template[];

static void put_name(const struct as_page *page)
{
    as_words program;
    as_html(page->out, "%s", as_words_program(page->report, program));
}

static const struct {
    const char *name;
    void (*put)(const struct as_page *page);
} places[] = {
    {"name", put_name},         {"title", as_page_title},
    {"lead", as_page_lead},     {"cards", as_page_cards},
    {"memory", as_page_memory}, {"peak", as_page_peak},
    {"idle", as_page_idle},     {"modules", as_page_modules},
    {"sites", as_page_sites},   {"policies", as_page_policies},
    {"ranks", as_page_ranks},   {"how", as_page_how},
};

// A place is "{{name}}".
static const char *put_place(const struct as_page *page, const char *place)
{
    const size_t length = strcspn(place, "}");
    for (size_t n = 0; n < sizeof(places) / sizeof(places[0]); n++) {
        if (strlen(places[n].name) == length && !strncmp(places[n].name, place, length))
            places[n].put(page);
    }
    return place + length + 2;
}

void as_report_page(const struct as_runs *runs, FILE *out, size_t top)
{
    const struct as_run *const run = &runs->runs[0];
    const struct as_page page = {
        .out = out,
        .runs = runs,
        .run = run,
        .rank = &run->ranks[run->shown],
        .report = run->ranks[run->shown].report,
        .top = top,
    };
    const char *rest = as_page_template;
    for (const char *place = strstr(rest, "{{"); place; place = strstr(rest, "{{")) {
        (void)fwrite(rest, 1, (size_t)(place - rest), out);
        rest = put_place(&page, place + 2);
    }
    (void)fputs(rest, out);
}
