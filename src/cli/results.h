// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_RESULTS_H
#define AS_CLI_RESULTS_H

// What one run left behind, read from its report (schema actswap.report/1).

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AS_RESULT_CATEGORIES = 12, AS_RESULT_NAME_BYTES = 48 };

enum as_outcome {
    AS_OUTCOME_NONE, // no readable report
    AS_OUTCOME_OK, // ended by itself
    AS_OUTCOME_OOM, // the device's memory did not suffice
    AS_OUTCOME_FAILED, // ended with an error, a signal, without a word, or still runs
};

struct as_result_category {
    char name[AS_RESULT_NAME_BYTES];
    uint64_t bytes;
};

struct as_result {
    char name[AS_RESULT_NAME_BYTES]; // the policy
    char report[PATH_MAX];
    enum as_outcome outcome;
    int exit_status; // as of waitpid(), where we ran it
    char device[AS_RESULT_NAME_BYTES];
    char compute[AS_RESULT_NAME_BYTES]; // "" on a real device
    bool simulated;
    uint64_t step_ns; // the median; AS_NOT_KNOWN
    uint64_t device_bytes;
    bool pretends; // to have fewer than it has
    bool is_off; // no policy
    uint64_t budget_bytes, over_bytes, spare_bytes; // 0: no budget
    uint64_t steps;
    uint64_t after_forward_bytes, peak_bytes, reserved_bytes;
    uint64_t released_bytes, out_bytes, in_bytes, pinned_bytes;
    uint64_t blocks, blocks_recomputed; // found, and run again in backward
    struct as_result_category categories[AS_RESULT_CATEGORIES];
    size_t category_count;
    uint64_t peak_step; // from 0
    char peak_phase[AS_RESULT_NAME_BYTES];
    // One text a step: the losses' bits, and the digest of the gradients; NULL: not known.
    // Both lists are empty when no step had any.
    char **losses, **digests;
    size_t loss_count, digest_count;
    char **warnings; // sentences
    size_t warning_count;
    char **blocks_said; // of blocks that are run again, and behind the first why not
    size_t blocks_said_count;
};

// What the report says that was read from `path`, into a result of zeroes.
void as_result_take(struct as_result *result, json_t *root, const char *path);

// Reads one report. 0 or -EINVAL, after one line on stderr that names the file.
int as_result_read(struct as_result *result, const char *path);

void as_result_finish(struct as_result *result);

// The first step at which two runs' texts differ, counted from 1; 0: they agree.
size_t as_result_first_difference(char *const a[], size_t a_count, char *const b[],
                                  size_t b_count);

#endif
