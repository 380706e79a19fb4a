// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_TABLE_H
#define AS_CLI_TABLE_H

// A table of short texts: a column of labels, then a column for each run.

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { AS_TABLE_COLUMNS = 16, AS_TABLE_ROWS = 24, AS_TABLE_CELL_BYTES = 48 };

enum as_tone { AS_TONE_PLAIN, AS_TONE_GOOD, AS_TONE_BAD, AS_TONE_FAINT };

struct as_cell {
    char text[AS_TABLE_CELL_BYTES];
    enum as_tone tone;
};

struct as_row {
    const char *label; // borrowed
    struct as_cell cells[AS_TABLE_COLUMNS];
};

struct as_table {
    size_t columns;
    size_t rows;
    struct as_row row[AS_TABLE_ROWS]; // the first one is the heading
};

// How it may look, decided once from --ascii, NO_COLOR, the locale and the terminal.
struct as_look {
    bool colour;
    bool ascii;
};

struct as_look as_look_of(FILE *out, bool ascii);

// Adds a row; NULL when there is no room, which is our own mistake.
struct as_row *as_table_add(struct as_table *table, const char *label);

void as_table_print(const struct as_table *table, FILE *out, struct as_look look);

#endif
