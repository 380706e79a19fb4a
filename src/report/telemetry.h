// SPDX-License-Identifier: Apache-2.0
#ifndef AS_REPORT_TELEMETRY_H
#define AS_REPORT_TELEMETRY_H

// How long the device worked as it says itself (track/telemetry.h), for who asked for it.

#include <stddef.h>

#include "report/json.h"

struct as_facts;

// The object "device_times", or nothing.
void as_telemetry_write(struct as_json *json, const struct as_facts *facts);

// The summary's line; "": there is none.
void as_telemetry_say(const struct as_facts *facts, char *text, size_t text_bytes);

#endif
