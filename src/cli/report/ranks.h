// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_RANKS_H
#define AS_CLI_REPORT_RANKS_H

// The reports given to `actswap report`, sorted into runs and ranks.
//
// Reports are of one run when they carry the same run id and settings and lie in one
// folder, or, from disks of several machines, when their ranks differ. A folder of
// `actswap compare` so becomes a run for each policy.

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AS_RANK_CURVE = 96, AS_RUN_NAME_BYTES = 48 };

// One process: what there is to tell in a line, and all it said where that is needed.
struct as_rank {
    char *file; // owned
    json_t *report; // owned; NULL: its figures are below, and no more was asked for
    json_t *oom; // owned; what was written beside it when memory ran out, or NULL
    uint64_t rank, world, pid;
    bool complete;
    char ended[16];
    // AS_NOT_KNOWN where the report does not say.
    uint64_t peak_bytes, reserved_bytes, total_bytes;
    uint64_t step_ns; // median, the first step left out
    uint64_t steps;
    // The timeline's total, or else the steps' peaks, by the highest of each stretch.
    uint64_t curve[AS_RANK_CURVE];
    size_t curve_count;
    bool curve_of_steps;
};

struct as_run {
    char policy[AS_RUN_NAME_BYTES];
    char name[AS_RUN_NAME_BYTES]; // the policy or, of two alike, its folder
    char *key, *folder; // owned
    struct as_rank *ranks; // owned, by rank
    size_t count;
    uint64_t world;
    size_t highest; // index of the highest peak
    size_t slowest; // index; meaningful if has_slowest
    bool has_slowest;
    size_t shown; // index of the rank that is told in full: the highest, or as asked
};

struct as_runs {
    struct as_run *runs;
    size_t count;
    size_t files;
    size_t keep; // so many reports of a run in full, those of the highest peaks; 0: all
    uint64_t wanted_rank; // AS_NOT_KNOWN: the highest peak
};

// Reads a file, a folder's reports, or those of a folder's folders. 0, or AS_EXIT_FAILED
// or AS_EXIT_USAGE after one line on stderr.
int as_runs_read(struct as_runs *runs, const char *path);

// Sorts, names, finds outliers. Call it after the last file. 0, or AS_EXIT_USAGE after
// one line: the wanted rank is not there.
int as_runs_settle(struct as_runs *runs);

void as_runs_finish(struct as_runs *runs);

// "2, 5 to 7" of the ranks of the world that left no report. Returns how many.
size_t as_run_missing(const struct as_run *run, char *text, size_t bytes);

#endif
