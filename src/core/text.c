// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/settings.h"

int as_text_bool(const char *text, bool *value)
{
    static const char *const yes[] = {"1", "true", "on", "yes"};
    static const char *const no[] = {"0", "false", "off", "no"};

    for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++) {
        if (strcasecmp(text, yes[i]) == 0) {
            *value = true;
            return 0;
        }
        if (strcasecmp(text, no[i]) == 0) {
            *value = false;
            return 0;
        }
    }
    return -EINVAL;
}

// Reads digits at *text and moves it behind them.
static int read_digits(const char **text, uint64_t *value)
{
    if (!isdigit((unsigned char)**text))
        return -EINVAL;

    *value = 0;
    for (; isdigit((unsigned char)**text); (*text)++) {
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(**text - '0'), value))
            return -ERANGE;
    }
    return 0;
}

int as_text_number(const char *text, uint64_t *value)
{
    const int err = read_digits(&text, value);
    if (err)
        return err;
    return *text ? -EINVAL : 0;
}

static uint64_t unit_bytes(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"KB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"TB", 1000000000000},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
    };

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        if (strcasecmp(unit, units[i].name) == 0)
            return units[i].bytes;
    }
    return 0;
}

// Reads ".5" at *text, if it is there, as parts of `scale`.
static int read_fraction(const char **text, uint64_t *parts, uint64_t *scale)
{
    *parts = 0;
    *scale = 1;
    if (**text != '.')
        return 0;

    const char *start = ++*text;
    const int err = read_digits(text, parts);
    if (err)
        return err;
    if (*text - start > 9)
        return -ERANGE;
    for (; start < *text; start++)
        *scale *= 10;
    return 0;
}

int as_text_bytes(const char *text, uint64_t *bytes)
{
    uint64_t whole, parts, scale;
    int err = read_digits(&text, &whole);
    if (!err)
        err = read_fraction(&text, &parts, &scale);
    if (err)
        return err;

    const uint64_t unit = unit_bytes(text);
    if (!unit || (scale > 1 && unit == 1))
        return -EINVAL;
    // 9 digits times 2^40 stay below 2^70: more than 64 bits hold.
    const uint64_t rest = (uint64_t)((unsigned __int128)parts * unit / scale);
    uint64_t all;
    if (__builtin_mul_overflow(whole, unit, &all) ||
        __builtin_add_overflow(all, rest, &all))
        return -ERANGE;
    *bytes = all;
    return 0;
}

int as_text_percent(const char *text, unsigned *percent)
{
    uint64_t value;
    const int err = read_digits(&text, &value);
    if (err)
        return err;
    if (strcmp(text, "%") != 0)
        return -EINVAL;
    if (value < 1 || value > 100)
        return -ERANGE;
    *percent = (unsigned)value;
    return 0;
}

char *as_text_amount(uint64_t bytes, char text[AS_TEXT_AMOUNT])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    unsigned unit = 0;

    if (bytes < 1024) {
        snprintf(text, AS_TEXT_AMOUNT, "%u B", (unsigned)bytes);
        return text;
    }
    while (unit < 3 && bytes >> (10 * (unit + 2)))
        unit++;
    // Tenths, rounded; without floating point, which printf may allocate for.
    const uint64_t one = UINT64_C(1) << (10 * (unit + 1));
    const uint64_t tenths = bytes / one * 10 + (bytes % one * 10 + one / 2) / one;
    snprintf(text, AS_TEXT_AMOUNT, "%llu.%u %s", (unsigned long long)(tenths / 10),
             (unsigned)(tenths % 10), units[unit]);
    return text;
}

char *as_text_time(uint64_t ns, char text[AS_TEXT_AMOUNT])
{
    static const struct {
        uint64_t below_ns, unit_ns;
        int digits;
        const char *name;
    } units[] = {
        {1000000, 1000, 0, "us"},
        {10000000, 1000000, 1, "ms"},
        {1000000000, 1000000, 0, "ms"},
        {UINT64_C(120000000000), 1000000000, 2, "s"},
        {UINT64_MAX, UINT64_C(60000000000), 0, "min"},
    };
    unsigned which = 0;

    while (ns >= units[which].below_ns && units[which].below_ns != UINT64_MAX)
        which++;
    const unsigned scale = (const unsigned[]){1, 10, 100}[units[which].digits];
    const uint64_t step = units[which].unit_ns / scale;
    const uint64_t value = ns / step + (ns % step >= step / 2 + step % 2);
    if (units[which].digits)
        snprintf(text, AS_TEXT_AMOUNT, "%llu.%0*u %s",
                 (unsigned long long)(value / scale), units[which].digits,
                 (unsigned)(value % scale), units[which].name);
    else
        snprintf(text, AS_TEXT_AMOUNT, "%llu %s", (unsigned long long)value,
                 units[which].name);
    return text;
}

enum { DISTANCE_MAX = 64 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned as_text_distance(const char *a, const char *b)
{
    const size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length >= DISTANCE_MAX || b_length >= DISTANCE_MAX)
        return UINT_MAX;

    // Three rows of the usual table: a swap looks two rows back.
    unsigned rows[3][DISTANCE_MAX];
    for (unsigned j = 0; j <= b_length; j++)
        rows[0][j] = j;

    for (unsigned i = 1; i <= a_length; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];

        row[0] = i;
        for (unsigned j = 1; j <= b_length; j++) {
            const int c = tolower((unsigned char)a[i - 1]);
            const int d = tolower((unsigned char)b[j - 1]);

            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (c != d));
            if (i > 1 && j > 1 && c == tolower((unsigned char)b[j - 2]) &&
                d == tolower((unsigned char)a[i - 2]))
                row[j] = least(row[j], above2[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

// "rec" means recompute and "4090" rtx4090; "l40s-48gb" says more than l40s.
static bool is_part(const char *name, const char *known)
{
    const size_t length = strlen(name), known_length = strlen(known);

    if (known_length < length)
        return strncasecmp(name, known, known_length) == 0 &&
               !isalnum((unsigned char)name[known_length]);
    return length >= 3 && (strncasecmp(name, known, length) == 0 ||
                           strcasecmp(name, known + known_length - length) == 0);
}

const char *as_settings_nearest(const char *name, const char *const names[])
{
    const size_t length = strlen(name);
    const char *nearest = NULL;
    unsigned best = UINT_MAX;

    for (; *names; names++) {
        const unsigned distance =
            is_part(name, *names) ? 0 : as_text_distance(name, *names);

        if (distance <= (length + 2) / 3 && distance < best) {
            best = distance;
            nearest = *names;
        }
    }
    return nearest;
}

int as_settings_bytes(const char *text, uint64_t *bytes)
{
    return as_text_bytes(text, bytes);
}
