// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_PAGE_H
#define AS_CLI_REPORT_PAGE_H

// A report as one HTML file that fetches nothing: page.html with each of its places
// filled in. It reads without its script, prints, and stays under 1 MB however long the
// run and however many its ranks: as many of them are told in full as fit.

#include "cli/report/ranks.h"

#include <stdio.h>

enum { AS_PAGE_RANKS = 8 }; // told in full, at most; the page has a switch between them

// What a section of the page is about.
struct as_page {
    FILE *out;
    const struct as_runs *runs;
    const struct as_run *run; // the first one
    const struct as_rank *rank; // of it, one that is told in full
    json_t *report; // its own
    size_t told[AS_PAGE_RANKS]; // the ranks that are told in full, their indices
    size_t told_count;
    size_t top; // sites at most
    char suffix[24]; // of ids: none for the rank that is shown at first
};

// Whether it could be written is for ferror() to say.
void as_report_page(const struct as_runs *runs, FILE *out, size_t top);

// Whether the rank of that index is one of those told in full.
bool as_page_tells(const struct as_page *page, size_t n);

// Opens a section; a later </section> closes it. Its id is the page's own.
void as_page_section(const struct as_page *page, const char *id, const char *heading);

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
