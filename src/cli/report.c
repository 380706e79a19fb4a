// SPDX-License-Identifier: Apache-2.0
#include "cli/error.h"
#include "cli/field.h"
#include "cli/launch.h"
#include "cli/options.h"
#include "cli/report/merged.h"
#include "cli/report/page.h"
#include "cli/report/ranks.h"
#include "cli/report/text.h"
#include "cli/report/words.h"
#include "cli/results.h"
#include "cli/sides.h"
#include "cli/verbs.h"
#include "core/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOP_OF_TEXT = 5 };

struct wish {
    struct as_options options;
    size_t top; // SIZE_MAX: as many as there are
    bool top_given;
};

static int check(struct wish *wish, uint64_t *rank)
{
    const struct as_options *const options = &wish->options;
    if (!options->program[0])
        return as_error(AS_EXIT_USAGE, "no report given: actswap report DIR");
    if (options->text + options->json + (options->html != NULL) > 1)
        return as_error(AS_EXIT_USAGE, "--text, --json and --html: one at a time");
    if (options->open && !options->html)
        return as_error(AS_EXIT_USAGE, "--open shows a page: add --html FILE");
    if (options->open && !strcmp(options->html, "-"))
        return as_error(AS_EXIT_USAGE, "--open needs a file: --html FILE");
    if (options->rank && as_text_number(options->rank, rank))
        return as_error(AS_EXIT_USAGE, "--rank %s is not a number from 0", options->rank);
    uint64_t top = SIZE_MAX;
    if (options->top && (as_text_number(options->top, &top) || !top))
        return as_error(AS_EXIT_USAGE, "--top %s is not a number from 1", options->top);
    wish->top = (size_t)top;
    wish->top_given = options->top != NULL;
    return 0;
}

static int cannot_write(const char *what)
{
    return as_error(AS_EXIT_FAILED, "cannot write %s: %s; name another file", what,
                    strerror(errno));
}

static int print_json(const struct as_runs *runs)
{
    const int err = as_report_merged(runs, stdout);
    if (err || fflush(stdout)) {
        errno = err ? -err : errno;
        return cannot_write("the JSON");
    }
    return 0;
}

static void print_sides(const struct as_runs *runs, struct as_look look)
{
    struct as_result *const results = calloc(runs->count, sizeof(*results));
    size_t count = 0;
    as_words program;
    for (; results && count < runs->count && count < AS_TABLE_COLUMNS; count++) {
        const struct as_run *const run = &runs->runs[count];
        const struct as_rank *const rank = &run->ranks[run->shown];
        as_result_take(&results[count], rank->report, rank->file);
        (void)snprintf(results[count].name, sizeof(results[count].name), "%s", run->name);
    }
    const struct as_run *const first = &runs->runs[0];
    if (count) {
        as_sides_print(results, count,
                       as_words_program(first->ranks[first->shown].report, program),
                       stdout, look);
        (void)putchar('\n');
    }
    for (size_t n = 0; n < count; n++)
        as_result_finish(&results[n]);
    free(results);
}

static void print_next(const struct wish *wish)
{
    (void)printf("  %-16s actswap report", "as a page");
    for (char *const *arg = wish->options.program; *arg; arg++)
        as_launch_print_word(*arg, stdout);
    (void)puts(" --html report.html");
}

static int print_text(const struct wish *wish, const struct as_runs *runs)
{
    const struct as_look look = as_look_of(stdout, wish->options.ascii);
    if (runs->count > 1)
        print_sides(runs, look);
    as_report_text(&runs->runs[0], stdout, look,
                   wish->top_given ? wish->top : TOP_OF_TEXT);
    print_next(wish);
    return fflush(stdout) ? cannot_write("the text") : 0;
}

static int open_page(const char *path)
{
    static char opener[] = "/usr/bin/xdg-open";
    char *const program[] = {opener, (char *)path, NULL};
    int status = 0;
    if (access(opener, X_OK))
        return as_error(AS_EXIT_FAILED, "--open: no %s here; the page is %s", opener,
                        path);
    const int err = as_launch_wait(opener, program, NULL, NULL, &status);
    return err || !status ? err
                          : as_error(AS_EXIT_FAILED, "--open: %s failed; the page is %s",
                                     opener, path);
}

// A slip of the hand must not cost a report.
static bool is_something_else(const char *path)
{
    static const char begin[] = "<!doctype html>";
    char text[sizeof(begin)] = "";
    struct stat status;
    if (stat(path, &status) || !S_ISREG(status.st_mode) || !status.st_size)
        return false;
    FILE *const file = fopen(path, "re");
    const size_t got = file ? fread(text, 1, strlen(begin), file) : 0;
    if (file)
        (void)fclose(file);
    return got != strlen(begin) || strcmp(text, begin) != 0;
}

static int write_page(const struct wish *wish, const struct as_runs *runs)
{
    const char *const path = wish->options.html;
    const bool is_stdout = !strcmp(path, "-");
    if (!is_stdout && is_something_else(path))
        return as_error(AS_EXIT_USAGE, "%s exists and is no page: name another file",
                        path);
    FILE *const file = is_stdout ? stdout : fopen(path, "we");
    if (!file)
        return cannot_write(path);
    as_report_page(runs, file, wish->top);
    int failed = fflush(file) || ferror(file);
    if (!is_stdout)
        failed = fclose(file) || failed;
    if (failed)
        return cannot_write(path);
    if (!is_stdout)
        (void)printf("%s\n", path);
    return wish->options.open ? open_page(path) : 0;
}

int as_verb_report(int argc, char **argv)
{
    struct wish wish = {.top = SIZE_MAX};
    struct as_runs runs = {.wanted_rank = AS_NOT_KNOWN};
    int err = as_options_parse(&wish.options, "report", argc, argv);
    if (!err)
        err = check(&wish, &runs.wanted_rank);
    runs.keep = wish.options.json ? 0 : wish.options.html ? AS_PAGE_RANKS : 1;
    for (char *const *path = wish.options.program; !err && *path; path++)
        err = as_runs_read(&runs, *path);
    if (!err)
        err = as_runs_settle(&runs);
    if (!err && wish.options.json)
        err = print_json(&runs);
    else if (!err && wish.options.html)
        err = write_page(&wish, &runs);
    else if (!err)
        err = print_text(&wish, &runs);
    as_runs_finish(&runs);
    return err;
}
