// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_FIELD_H
#define AS_CLI_FIELD_H

// Reading what a report may or may not say. A field is named by its way through the
// objects, "peak.bytes"; "" is the value itself. A field that is missing, null or of
// another type is not known: an older writer, or nothing to tell.

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AS_NOT_KNOWN UINT64_MAX

// NULL: not there. Borrowed from `root`.
json_t *as_field(json_t *root, const char *name);

// AS_NOT_KNOWN for anything but a whole number from 0.
uint64_t as_field_number(json_t *root, const char *name);

// NULL: not known. Borrowed from `root`.
const char *as_field_text(json_t *root, const char *name);

bool as_field_is(json_t *root, const char *name, const char *text);

// Of an array's numbers; those not known are left out. AS_NOT_KNOWN: there is none.
uint64_t as_field_highest(json_t *root, const char *name);
uint64_t as_field_sum(json_t *root, const char *name);

// The middle one, not counting the first `skip` items.
uint64_t as_field_median(json_t *root, const char *name, size_t skip);

#endif
