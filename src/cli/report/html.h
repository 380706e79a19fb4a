// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_HTML_H
#define AS_CLI_REPORT_HTML_H

// Writing markup. What comes from a report is text, never markup: it is escaped by the
// writer, so that a script called "<b>" is called that on the page as well.

#include <jansson.h>
#include <stdio.h>

// As fprintf(), but the text of a %s is escaped. Of the rest %d, %zu, %llu, PRIu64 and
// %f with a precision are understood.
void as_html(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Inside of <script type="application/json">.
void as_html_json(FILE *out, json_t *value);

#endif
