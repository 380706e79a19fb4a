// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_PAGE_H
#define AS_CLI_REPORT_PAGE_H

// A report as one HTML file that fetches nothing: page.html with each of its places
// filled in. It reads without its script, prints, and stays under 1 MB however long the
// run and however many its ranks.

#include "cli/report/ranks.h"

#include <stdio.h>

// What a section of the page is about.
struct as_page {
    FILE *out;
    const struct as_runs *runs;
    const struct as_run *run; // the first one
    const struct as_rank *rank; // of it, the one that is shown
    json_t *report; // its own
    size_t top; // sites at most
};

// Whether it could be written is for ferror() to say.
void as_report_page(const struct as_runs *runs, FILE *out, size_t top);

// A section that has nothing to show, and says so where it would be looked for.
void as_page_absent(const struct as_page *page, const char *id, const char *heading);

// The sections, each by the name of its place in page.html.
void as_page_title(const struct as_page *page);
void as_page_lead(const struct as_page *page);
void as_page_cards(const struct as_page *page);
void as_page_memory(const struct as_page *page);
void as_page_peak(const struct as_page *page);
void as_page_idle(const struct as_page *page);
void as_page_modules(const struct as_page *page);
void as_page_sites(const struct as_page *page);
void as_page_policies(const struct as_page *page);
void as_page_ranks(const struct as_page *page);
void as_page_how(const struct as_page *page);

#endif
