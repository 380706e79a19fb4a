// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_CATEGORY_H
#define AS_CLI_REPORT_CATEGORY_H

// What memory is held for: one table for order, colour and explanation.

#include <stdbool.h>
#include <stddef.h>

struct as_category {
    const char *name; // as reports spell it
    const char *what; // for the glossary
    bool tensors; // false: not in the framework's tensors, drawn above them
};

// From the bottom of a picture to its top; ends with a NULL name.
extern const struct as_category as_categories[];

// The place in the table; names that a later writer added come last.
size_t as_category_order(const char *name);

// The name as the style sheet knows it; "unknown" for names not known here.
const char *as_category_known(const char *name);

// Whether tensors hold it; names not known here, and none (NULL), are of tensors.
bool as_category_is_tensors(const char *name);

#endif
