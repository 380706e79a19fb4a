// SPDX-License-Identifier: Apache-2.0
#ifndef AS_REPORT_OOM_H
#define AS_REPORT_OOM_H

// The moment at which memory ran out.

#include <stddef.h>
#include <stdint.h>

#include "track/ledger.h"
#include "track/place.h"

struct as_json;

struct as_oom {
    uint64_t asked_bytes, in_use_bytes, reserved_bytes;
    uint64_t total_bytes; // of the device
    uint64_t step;
    enum as_phase phase;
    char block[AS_PLACE_TEXT]; // whose work it was, or ""
    struct as_holes holes; // 0: none, or not known
    struct as_share held[ACTSWAP_CATEGORIES];
    uint64_t to_come[ACTSWAP_CATEGORIES]; // expected, less what is there
};

void as_oom_write(struct as_json *json, const struct as_oom *oom);

// "activation 46.1 GiB, parameter 15.0 GiB"; "nothing".
void as_oom_say_held(const struct as_oom *oom, char *text, size_t text_bytes);

// Further lines, each ended by a newline; "" when there is nothing to add.
void as_oom_say_more(const struct as_oom *oom, char *text, size_t text_bytes);

#endif
