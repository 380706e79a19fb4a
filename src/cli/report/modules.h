// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_MODULES_H
#define AS_CLI_REPORT_MODULES_H

// The modules of a report as people read them. A row of the report holds what one module
// made itself; here modules whose names differ in numbers alone (`layers.0`, `layers.1`)
// are one, `layers.*` (of one alone the name is told), and each also has the sum with all that is inside of it.
//
// Thread-safety: none.

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct as_module {
    char *name;
    size_t count; // of modules with such a name
    uint64_t own_bytes, all_bytes;
    size_t depth; // how many of those listed before hold it
};

struct as_modules {
    struct as_module *list; // each behind the one that holds it, the largest first
    size_t count;
};

// What a report says; -ENOMEM. To be finished, also after an error.
int as_modules_init(struct as_modules *modules, json_t *report);
void as_modules_finish(struct as_modules *modules);

// The bytes that a row must have to be among the `most` largest ones.
uint64_t as_modules_least(const struct as_modules *modules, size_t most);

#endif
