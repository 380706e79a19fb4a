// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_TEXT_H
#define AS_CLI_REPORT_TEXT_H

// A report for the terminal.

#include "cli/report/ranks.h"
#include "cli/table.h"

#include <stdio.h>

// The rank that is shown of the run, then what all ranks have to say. At most `top` sites.
void as_report_text(const struct as_run *run, FILE *out, struct as_look look, size_t top);

#endif
