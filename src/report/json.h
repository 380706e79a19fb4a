// SPDX-License-Identifier: Apache-2.0
#ifndef AS_REPORT_JSON_H
#define AS_REPORT_JSON_H

// Writes JSON to a file descriptor through one fixed buffer: no allocation, so that it
// works at exit and when memory has run out. Commas and quotes are put by the writer;
// text that is not UTF-8 is made so.
//
//     as_json_open(&json, NULL, '{');
//     as_json_number(&json, "bytes", 12);
//     as_json_close(&json, '}');
//
// Inside an array `key` is NULL.
//
// Thread-safety: a writer belongs to one thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AS_JSON_BUFFER = 8192 };

struct as_json {
    int fd;
    int error; // the first negative errno; later output is dropped
    bool comma;
    size_t used;
    char buffer[AS_JSON_BUFFER];
};

void as_json_start(struct as_json *json, int fd);

// Writes what is left. 0 or the first error.
int as_json_finish(struct as_json *json);

void as_json_open(struct as_json *json, const char *key, char bracket);
void as_json_close(struct as_json *json, char bracket);
void as_json_number(struct as_json *json, const char *key, uint64_t value);
void as_json_bool(struct as_json *json, const char *key, bool value);
void as_json_text(struct as_json *json, const char *key, const char *value); // NULL: null

// "0x0123...": `bytes` bytes, the most significant first, as the hardware's order of a
// little-endian value reads as a number.
void as_json_bits(struct as_json *json, const char *key, const void *bits, size_t bytes);

#endif
