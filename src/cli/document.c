// SPDX-License-Identifier: Apache-2.0
#include "cli/document.h"

#include "cli/error.h"
#include "cli/field.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char schema_name[] = "actswap.report/";

// It begins as a report, and nothing but space is behind where it stopped being JSON.
static bool is_cut_off(FILE *file, const json_error_t *where)
{
    int next = ' ';

    rewind(file);
    if (getc(file) != '{' || fseek(file, where->position, SEEK_SET))
        return false;
    while (next == ' ' || (next >= '\t' && next <= '\r'))
        next = getc(file);
    return next == EOF;
}

// Why it is no JSON, in words that help.
static void explain_text(const char *path, FILE *file, const json_error_t *where)
{
    struct stat status;
    if (!fstat(fileno(file), &status) && S_ISDIR(status.st_mode)) {
        (void)as_error(AS_EXIT_USAGE, "%s is a folder, not a report", path);
    } else if (!fseek(file, 0, SEEK_END) && ftell(file) == 0) {
        (void)as_error(AS_EXIT_USAGE,
                       "the report %s is empty: its run ended before it wrote, or the "
                       "disk is full; leave the file out",
                       path);
    } else if (json_error_code(where) == json_error_premature_end_of_input ||
               is_cut_off(file, where)) {
        (void)as_error(AS_EXIT_USAGE,
                       "the report %s is cut off at line %d, column %d: copy it again, "
                       "or leave it out",
                       path, where->line, where->column);
    } else {
        (void)as_error(AS_EXIT_USAGE,
                       "cannot read the report %s: line %d, column %d: %s; is it the "
                       "file that a run wrote?",
                       path, where->line, where->column, where->text);
    }
}

// 0, or one of another schema was explained.
static int check_schema(const char *path, json_t *root)
{
    const char *const schema = as_field_text(root, "schema");
    if (schema && !strcmp(schema, AS_DOCUMENT_SCHEMA))
        return 0;
    if (!schema || strncmp(schema, schema_name, strlen(schema_name)) != 0) {
        return as_error(AS_EXIT_USAGE,
                        "%s is not a report of actswap: its schema is %s, "
                        "not " AS_DOCUMENT_SCHEMA,
                        path, schema ? schema : "missing");
    }
    const char *const writer = as_field_text(root, "run.actswap");
    return as_error(AS_EXIT_USAGE,
                    "%s is of schema %s, this actswap (" AS_VERSION
                    ") reads " AS_DOCUMENT_SCHEMA
                    ": read it with the version that wrote it%s%s",
                    path, schema, writer ? ", " : "", writer ? writer : "");
}

json_t *as_document_read(const char *path)
{
    FILE *const file = fopen(path, "re");
    if (!file) {
        (void)as_error(AS_EXIT_USAGE, "cannot read the report %s: %s", path,
                       strerror(errno));
        return NULL;
    }
    json_error_t where;
    json_t *root = json_loadf(file, 0, &where);
    if (!root)
        explain_text(path, file, &where);
    (void)fclose(file);
    if (root && check_schema(path, root)) {
        json_decref(root);
        return NULL;
    }
    return root;
}
