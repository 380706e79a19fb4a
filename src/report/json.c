// SPDX-License-Identifier: Apache-2.0
#include "report/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void flush(struct as_json *json)
{
    size_t done = 0;

    while (!json->error && done < json->used) {
        const ssize_t written = write(json->fd, json->buffer + done, json->used - done);

        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            json->error = written == 0 ? -EIO : -errno;
    }
    json->used = 0;
}

static void put_byte(struct as_json *json, char byte)
{
    if (json->used == sizeof(json->buffer))
        flush(json);
    json->buffer[json->used++] = byte;
}

static void put(struct as_json *json, const char *text)
{
    for (; *text; text++)
        put_byte(json, *text);
}

// The length of the UTF-8 sequence at `text`, or 0 if it is none.
static size_t sequence_bytes(const unsigned char *text)
{
    const size_t bytes = text[0] < 0x80   ? 1
                         : text[0] < 0xC2 ? 0
                         : text[0] < 0xE0 ? 2
                         : text[0] < 0xF0 ? 3
                         : text[0] < 0xF5 ? 4
                                          : 0;

    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    }
    // Too long for its value, half of a UTF-16 pair, or beyond the last code point.
    if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
        (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))
        return 0;
    return bytes;
}

static void put_quoted(struct as_json *json, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    put_byte(json, '"');
    while (*at) {
        const size_t bytes = sequence_bytes(at);

        if (bytes == 0) {
            put(json, "\\ufffd");
            at++;
        } else if (*at < ' ' || *at == '"' || *at == '\\') {
            char escaped[8];

            snprintf(escaped, sizeof(escaped), "\\u%04x", *at);
            put(json, escaped);
            at++;
        } else {
            for (size_t i = 0; i < bytes; i++)
                put_byte(json, (char)*at++);
        }
    }
    put_byte(json, '"');
}

// What comes before any value.
static void begin(struct as_json *json, const char *key)
{
    if (json->comma)
        put_byte(json, ',');
    // A line for each member of an object; arrays of figures stay on theirs.
    if (key) {
        put_byte(json, '\n');
        put_quoted(json, key);
        put(json, ": ");
    }
    json->comma = true;
}

void as_json_start(struct as_json *json, int fd)
{
    json->fd = fd;
    json->error = 0;
    json->comma = false;
    json->used = 0;
}

int as_json_finish(struct as_json *json)
{
    put_byte(json, '\n');
    flush(json);
    return json->error;
}

void as_json_open(struct as_json *json, const char *key, char bracket)
{
    begin(json, key);
    put_byte(json, bracket);
    json->comma = false;
}

void as_json_close(struct as_json *json, char bracket)
{
    put_byte(json, bracket);
    json->comma = true;
}

void as_json_number(struct as_json *json, const char *key, uint64_t value)
{
    char text[24];

    begin(json, key);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    put(json, text);
}

void as_json_bool(struct as_json *json, const char *key, bool value)
{
    begin(json, key);
    put(json, value ? "true" : "false");
}

void as_json_text(struct as_json *json, const char *key, const char *value)
{
    begin(json, key);
    if (value)
        put_quoted(json, value);
    else
        put(json, "null");
}

void as_json_bits(struct as_json *json, const char *key, const void *bits, size_t bytes)
{
    const unsigned char *at = bits;
    char text[4];

    begin(json, key);
    put(json, "\"0x");
    for (size_t i = bytes; i-- > 0;) {
        snprintf(text, sizeof(text), "%02x", at[i]);
        put(json, text);
    }
    put_byte(json, '"');
}
