// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CORE_TEXT_H
#define AS_CORE_TEXT_H

// Small readings of text, without allocation.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// 1/0, true/false, on/off, yes/no in any case. 0 or -EINVAL.
int as_text_bool(const char *text, bool *value);

// A decimal number and nothing else. 0, -EINVAL or -ERANGE.
int as_text_number(const char *text, uint64_t *value);

// "512MiB", "1.5GiB", "48GB", bytes. 0, -EINVAL or -ERANGE.
int as_text_bytes(const char *text, uint64_t *bytes);

// "1%" to "100%". 0, -EINVAL or -ERANGE.
int as_text_percent(const char *text, unsigned *percent);

// How many single-character changes, with swapped neighbours counted as one, turn one
// text into the other, in any case. Texts over 63 characters are as far as can be.
unsigned as_text_distance(const char *a, const char *b);

enum { AS_TEXT_AMOUNT = 32 };

// "41.8 GiB", "512.0 MiB", "17 B": for people. Returns `text`.
char *as_text_amount(uint64_t bytes, char text[AS_TEXT_AMOUNT]);

// "412 us", "3.1 ms", "412 ms", "1.84 s", "31 min": for people. Returns `text`.
char *as_text_time(uint64_t ns, char text[AS_TEXT_AMOUNT]);

#endif
