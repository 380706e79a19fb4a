// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_SIDES_H
#define AS_CLI_SIDES_H

// Runs side by side: the table of `actswap compare` and what follows from it.

#include "cli/results.h"
#include "cli/table.h"

#include <stdio.h>

// What the losses and gradients of all runs say together.
enum as_verdict {
    AS_VERDICT_IDENTICAL, // those of every run that ended agree bit for bit
    AS_VERDICT_DIFFER,
    AS_VERDICT_NOT_COMPUTED, // a simulation that leaves values out
    AS_VERDICT_NONE, // fewer than two runs had any
};

enum as_verdict as_sides_judge(const struct as_result results[], size_t count);

// The first step at which two runs' losses or gradients differ, counted from 1; 0: they
// agree, or there are none.
size_t as_sides_first_difference(const struct as_result *a, const struct as_result *b);

// The heading line, the table, and where the first run's memory was at its peak.
// `program` names what ran.
void as_sides_print(const struct as_result results[], size_t count, const char *program,
                    FILE *out, struct as_look look);

// The run that ended with the smallest peak, of those that beat the first one and whose
// losses and gradients are not known to differ; NULL: none.
const struct as_result *as_sides_best(const struct as_result results[], size_t count);

#endif
