// SPDX-License-Identifier: Apache-2.0
#include "report/oom.h"

#include <stdbool.h>
#include <stdio.h>

#include <actswap/actswap.h>

#include "core/text.h"
#include "report/json.h"

static void write_row(struct as_json *json, int category, uint64_t bytes)
{
    if (!bytes)
        return;
    as_json_open(json, NULL, '{');
    as_json_text(json, "category",
                 actswap_category_name((enum actswap_category)category));
    as_json_number(json, "bytes", bytes);
    as_json_close(json, '}');
}

void as_oom_write(struct as_json *json, const struct as_oom *oom)
{
    as_json_open(json, "oom", '{');
    as_json_number(json, "asked_bytes", oom->asked_bytes);
    as_json_number(json, "in_use_bytes", oom->in_use_bytes);
    as_json_number(json, "reserved_bytes", oom->reserved_bytes);
    as_json_number(json, "total_bytes", oom->total_bytes);
    as_json_number(json, "free_bytes", oom->holes.bytes);
    as_json_number(json, "largest_free_bytes", oom->holes.largest_bytes);
    as_json_number(json, "step", oom->step);
    as_json_text(json, "phase", as_phase_name(oom->phase));
    as_json_text(json, "block", *oom->block ? oom->block : NULL);
    as_json_open(json, "held_by", '[');
    for (int i = 0; i < ACTSWAP_CATEGORIES; i++)
        write_row(json, i, oom->held[i].bytes);
    as_json_close(json, ']');
    as_json_open(json, "to_come", '[');
    for (int i = 0; i < ACTSWAP_CATEGORIES; i++)
        write_row(json, i, oom->to_come[i]);
    as_json_close(json, ']');
    as_json_close(json, '}');
}

// Largest first, as there are few.
static size_t say_row(char *text, size_t text_bytes, size_t used, int category,
                      uint64_t bytes)
{
    char amount[AS_TEXT_AMOUNT];

    if (used >= text_bytes)
        return used;
    const int length =
        snprintf(text + used, text_bytes - used, "%s%s %s", used ? ", " : "",
                 actswap_category_name((enum actswap_category)category),
                 as_text_amount(bytes, amount));
    return used + (length > 0 ? (size_t)length : 0);
}

void as_oom_say_held(const struct as_oom *oom, char *text, size_t text_bytes)
{
    bool said[ACTSWAP_CATEGORIES] = {false};
    size_t used = 0;

    snprintf(text, text_bytes, "nothing");
    for (;;) {
        int largest = -1;

        for (int i = 0; i < ACTSWAP_CATEGORIES; i++) {
            const uint64_t bytes = said[i] ? 0 : oom->held[i].bytes;

            if (bytes && (largest < 0 || bytes > oom->held[largest].bytes))
                largest = i;
        }
        if (largest < 0)
            return;
        said[largest] = true;
        used = say_row(text, text_bytes, used, largest, oom->held[largest].bytes);
    }
}

void as_oom_say_more(const struct as_oom *oom, char *text, size_t text_bytes)
{
    char row[256] = "", free_amount[AS_TEXT_AMOUNT], largest[AS_TEXT_AMOUNT];
    size_t used = 0;

    *text = '\0';
    for (int i = 0; i < ACTSWAP_CATEGORIES; i++) {
        if (oom->to_come[i])
            used = say_row(row, sizeof(row), used, i, oom->to_come[i]);
    }
    used = 0;
    if (*row)
        used = (size_t)snprintf(text, text_bytes, "  still to come: %s, not made yet\n",
                                row);
    if (oom->holes.bytes && used < text_bytes)
        snprintf(text + used, text_bytes - used,
                 "  %s is free, but in pieces of at most %s\n",
                 as_text_amount(oom->holes.bytes, free_amount),
                 as_text_amount(oom->holes.largest_bytes, largest));
}
