// SPDX-License-Identifier: Apache-2.0
//
// A file that is said to be a report: read, shown as text, as a page, merged and compared.
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/report/merged.h"
#include "cli/report/page.h"
#include "cli/report/ranks.h"
#include "cli/report/text.h"
#include "cli/results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static FILE *nowhere;
static int file;
static char path[64];

// What is wrong with a file is said on standard error, each time.
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    nowhere = fopen("/dev/null", "we");
    file = memfd_create("report.json", MFD_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    return !nowhere || file < 0;
}

static void compare(const struct as_runs *runs)
{
    const struct as_rank *const rank = &runs->runs[0].ranks[runs->runs[0].shown];
    struct as_result result = {0};

    as_result_take(&result, rank->report, rank->file);
    as_result_finish(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct as_runs runs = {.wanted_rank = UINT64_MAX, .keep = AS_PAGE_RANKS};
    const struct as_look look = {0};

    if (ftruncate(file, 0) || pwrite(file, data, bytes, 0) != (ssize_t)bytes)
        abort();
    if (as_runs_read(&runs, path) == 0 && as_runs_settle(&runs) == 0) {
        as_report_text(&runs.runs[0], nowhere, look, 5);
        as_report_page(&runs, nowhere, SIZE_MAX);
        assert(as_report_merged(&runs, nowhere) == 0);
        compare(&runs);
    }
    as_runs_finish(&runs);
    return 0;
}
