// SPDX-License-Identifier: Apache-2.0
#ifndef AS_REPORT_MEMORY_H
#define AS_REPORT_MEMORY_H

// The parts of the report that say where the memory goes.
//
// Thread-safety: as of report.h.

#include <stddef.h>

struct as_facts;
struct as_json;
struct as_peak;

void as_report_peak(struct as_json *json, const struct as_facts *facts);
void as_report_taken(struct as_json *json, const struct as_facts *facts);
void as_report_advices(struct as_json *json, const struct as_facts *facts);
void as_report_timeline(struct as_json *json, const struct as_facts *facts);

// Stacks, sites, modules and idle gaps.
void as_report_places(struct as_json *json, const struct as_facts *facts);

// A sentence: is doing without activations worth a thought? "" when nothing was seen.
void as_report_advice(const struct as_peak *peak, char *text, size_t text_bytes);

#endif
