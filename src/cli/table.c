// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <assert.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GAP = 3 };

static const char *const colours[] = {
    [AS_TONE_PLAIN] = "",
    [AS_TONE_GOOD] = "\033[32m",
    [AS_TONE_BAD] = "\033[31m",
    [AS_TONE_FAINT] = "\033[2m",
};

struct as_look as_look_of(FILE *out, bool ascii)
{
    const char *const no_colour = getenv("NO_COLOR");
    const char *const terminal = getenv("TERM");
    const char *const kind = setlocale(LC_CTYPE, "") ? nl_langinfo(CODESET) : "";
    return (struct as_look){
        .colour = isatty(fileno(out)) && !(no_colour && *no_colour) &&
                  !(terminal && !strcmp(terminal, "dumb")),
        .ascii = ascii || strcmp(kind, "UTF-8") != 0,
    };
}

struct as_row *as_table_add(struct as_table *table, const char *label)
{
    assert(table->rows < AS_TABLE_ROWS);
    struct as_row *const row = &table->row[table->rows++];
    row->label = label;
    return row;
}

static size_t column_width(const struct as_table *table, size_t column)
{
    size_t width = 0;
    for (size_t n = 0; n < table->rows; n++) {
        const size_t length = strlen(table->row[n].cells[column].text);
        width = length > width ? length : width;
    }
    return width;
}

static size_t label_width(const struct as_table *table)
{
    size_t width = 0;
    for (size_t n = 0; n < table->rows; n++) {
        const size_t length = strlen(table->row[n].label);
        width = length > width ? length : width;
    }
    return width;
}

static void print_rule(size_t length, FILE *out, struct as_look look)
{
    for (size_t n = 0; n < length; n++)
        (void)fputs(look.ascii ? "-" : "\u2500", out);
    (void)fputc('\n', out);
}

void as_table_print(const struct as_table *table, FILE *out, struct as_look look)
{
    const int label = (int)label_width(table);
    size_t total = (size_t)label;
    for (size_t c = 0; c < table->columns; c++)
        total += GAP + column_width(table, c);

    for (size_t r = 0; r < table->rows; r++) {
        const struct as_row *const row = &table->row[r];
        (void)fprintf(out, "%-*s", label, row->label);
        for (size_t c = 0; c < table->columns; c++) {
            const struct as_cell *const cell = &row->cells[c];
            const bool coloured = look.colour && cell->tone != AS_TONE_PLAIN;
            const int pad = c + 1 < table->columns
                                ? (int)column_width(table, c) - (int)strlen(cell->text)
                                : 0;
            (void)fprintf(out, "%*s%s%s%s%*s", GAP, "",
                          coloured ? colours[cell->tone] : "", cell->text,
                          coloured ? "\033[0m" : "", pad, "");
        }
        (void)fputc('\n', out);
        if (r == 0)
            print_rule(total, out, look);
    }
}
