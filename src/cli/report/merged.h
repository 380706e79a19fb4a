// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_MERGED_H
#define AS_CLI_REPORT_MERGED_H

// What `actswap report --json` prints: one object, schema actswap.merged/1.

#include "cli/report/ranks.h"

#include <stdio.h>

#define AS_MERGED_SCHEMA "actswap.merged/1"

// Needs runs whose reports were all kept. 0 or -ENOMEM, or -EIO if it cannot be written.
int as_report_merged(const struct as_runs *runs, FILE *out);

#endif
