// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "core/log.h"
#include "core/path.h"
#include "core/settings.h"
#include "core/text.h"

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/actswap-unit-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

static char *in_folder(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static size_t read_file(const char *path, char *text, size_t text_bytes)
{
    FILE *file = fopen(path, "r");
    const size_t bytes = file ? fread(text, 1, text_bytes - 1, file) : 0;

    text[bytes] = '\0';
    if (file)
        fclose(file);
    return bytes;
}

TestSuite(path, .init = make_folder, .fini = remove_folder);
TestSuite(log, .init = make_folder, .fini = remove_folder);

// A finished file with `text` in it that wants the name `path`. What as_path_place says.
static int place(const char *text, char path[256])
{
    char made[300];

    snprintf(made, sizeof(made), "%s.made", path);
    FILE *file = fopen(made, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
    return as_path_place(made, path, 256);
}

Test(path, a_file_that_exists_is_never_replaced)
{
    char first[256], second[256], third[256], text[16];

    snprintf(first, sizeof(first), "%s", in_folder("a.b/rank0.json"));
    memcpy(second, first, sizeof(first));
    memcpy(third, first, sizeof(first));
    cr_assert_eq(as_path_make_folders(first), 0);

    cr_assert_eq(place("one", first), 0);
    cr_assert_eq(place("two", second), 0);
    cr_assert_eq(place("three", third), 0);
    cr_expect_str_eq(second, in_folder("a.b/rank0.2.json"));
    cr_expect_str_eq(third, in_folder("a.b/rank0.3.json"));
    read_file(first, text, sizeof(text));
    cr_expect_str_eq(text, "one");
    read_file(third, text, sizeof(text));
    cr_expect_str_eq(text, "three");
    cr_expect_neq(access(in_folder("a.b/rank0.json.made"), F_OK), 0);
}

Test(path, a_name_without_ending_gets_its_number_behind)
{
    char first[256], second[256];

    snprintf(first, sizeof(first), "%s", in_folder("report"));
    memcpy(second, first, sizeof(first));
    cr_assert_eq(place("one", first), 0);
    cr_assert_eq(place("two", second), 0);
    cr_expect_str_eq(second, in_folder("report.2"));
}

Test(path, a_file_in_the_way_of_a_folder_is_an_error)
{
    char path[256];

    snprintf(path, sizeof(path), "%s", in_folder("x"));
    cr_assert_eq(place("", path), 0);
    cr_expect_eq(as_path_make_folders(in_folder("x/y/rank0.json")), -ENOTDIR);
}

static void run_id_is(const char *expected)
{
    struct as_settings settings = {0};
    char id[128];

    as_path_run_id(&settings, id, sizeof(id));
    cr_expect_str_eq(id, expected);
}

Test(path, the_run_id_comes_from_the_launcher)
{
    setenv("TORCHELASTIC_RUN_ID", "elastic", 1);
    run_id_is("elastic");
    setenv("SLURM_JOB_ID", "77", 1);
    run_id_is("77.0");
    setenv("SLURM_STEP_ID", "2", 1);
    run_id_is("77.2");
}

Test(path, ranks_of_one_agent_share_a_run_id)
{
    struct as_settings settings = {0};
    char mine[128], theirs[128] = "";
    int ends[2];

    setenv("RANK", "0", 1);
    setenv("TORCHELASTIC_RUN_ID", "none", 1);
    cr_assert_eq(pipe(ends), 0);
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            char id[128] = "";

            as_path_run_id(&settings, id, sizeof(id));
            _exit(write(ends[1], id, sizeof(id)) == sizeof(id) ? 0 : 1);
        }
    }
    cr_assert_eq(read(ends[0], mine, sizeof(mine)), (ssize_t)sizeof(mine));
    cr_assert_eq(read(ends[0], theirs, sizeof(theirs)), (ssize_t)sizeof(theirs));
    cr_expect_str_eq(mine, theirs);
    cr_expect_neq(strchr(mine, '-'), NULL);
}

Test(log, lines_are_prefixed_and_below_the_level_nothing_is_said)
{
    char text[512];

    cr_assert_eq(as_log_open(in_folder("log")), 0);
    as_log_set_level(AS_LOG_INFO);
    errno = EXDEV;
    as_log(AS_LOG_ERROR, "part: %s", "one");
    as_log(AS_LOG_WARN, "two");
    as_log(AS_LOG_INFO, "three");
    as_log(AS_LOG_DEBUG, "four");
    as_log_print("plain\n");

    cr_expect_eq(errno, EXDEV);
    read_file(in_folder("log"), text, sizeof(text));
    cr_expect_str_eq(text, "actswap: error: part: one\nactswap: warning: two\n"
                           "actswap: three\nplain\n");
}

Test(log, the_sixteenth_of_a_kind_is_the_last)
{
    char text[4096];
    int lines = 0;

    cr_assert_eq(as_log_open(in_folder("log")), 0);
    for (int i = 1; i <= 100; i++)
        as_log(AS_LOG_WARN, "number %d", i);
    as_log(AS_LOG_WARN, "another");

    read_file(in_folder("log"), text, sizeof(text));
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    cr_expect_eq(lines, 17);
    cr_expect_not_null(strstr(text, "number 16 (further ones are counted)\n"));
    cr_expect_null(strstr(text, "number 17"));
    cr_expect_not_null(strstr(text, "warning: another\n"));
}

Test(log, a_line_that_is_too_long_is_cut_and_ended)
{
    char text[4096], word[3000];

    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    cr_assert_eq(as_log_open(in_folder("log")), 0);
    as_log(AS_LOG_WARN, "%s", word);

    const size_t bytes = read_file(in_folder("log"), text, sizeof(text));
    cr_assert_gt(bytes, 100);
    cr_expect_lt(bytes, 1025);
    cr_expect_eq(text[bytes - 1], '\n');
}

Test(text, amounts)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {536870912, "512.0 MiB"},
        {UINT64_C(84930396160), "79.1 GiB"},
        {UINT64_MAX, "16777216.0 TiB"},
    };
    char text[AS_TEXT_AMOUNT];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        cr_expect_str_eq(as_text_amount(cases[i].bytes, text), cases[i].text);
}

Test(text, times)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {
        {0, "0 us"},
        {499, "0 us"},
        {500, "1 us"},
        {412000, "412 us"},
        {3140000, "3.1 ms"},
        {9950000, "10.0 ms"},
        {412000000, "412 ms"},
        {1000000000, "1.00 s"},
        {1845000000, "1.85 s"},
        {UINT64_C(119994999999), "119.99 s"},
        {UINT64_C(1860000000000), "31 min"},
        {UINT64_MAX, "307445735 min"},
    };
    char text[AS_TEXT_AMOUNT];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        cr_expect_str_eq(as_text_time(cases[i].ns, text), cases[i].text);
}
