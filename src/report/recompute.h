// SPDX-License-Identifier: Apache-2.0
#ifndef AS_REPORT_RECOMPUTE_H
#define AS_REPORT_RECOMPUTE_H

// Which blocks are run again in backward, on what grounds, and why the others are not.
//
// Thread-safety: as of report.h.

#include <stddef.h>

struct as_facts;
struct as_json;

// "recompute"; nothing under another policy.
void as_recompute_write(struct as_json *json, const struct as_facts *facts);

// What people are told, in lines without their ends: "" when there is nothing (more) to
// say. Line 0 is about what is run again, each further one about some blocks that are not.
void as_recompute_say(const struct as_facts *facts, size_t line, char *text,
                      size_t text_bytes);

#endif
