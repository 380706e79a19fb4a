// SPDX-License-Identifier: Apache-2.0
#ifndef AS_REPORT_REPORT_H
#define AS_REPORT_REPORT_H

// What a run has to tell, as a file (schema actswap.report/1, docs/report.md) and as a
// few lines for people. No allocation but for the timeline, which is left out when there is
// no memory.
//
// Thread-safety: every function may be called from any thread with facts of its own.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/runtime.h"

struct as_ledger;
struct as_notes;
struct as_oom;
struct as_pager_totals;
struct as_plan;
struct as_settings;
struct as_steps;

// Where the figures of memory come from.
enum as_source {
    AS_SOURCE_NONE, // nothing has been seen, or it proved wrong
    AS_SOURCE_ALLOCATOR, // the framework's allocator tells of each tensor
    AS_SOURCE_DRIVER, // cudaMalloc and kin alone
};

// What the driver gave to others than the framework's allocator.
struct as_outside {
    uint64_t context_bytes; // of the driver itself, when the device was first asked
    uint64_t comm_bytes; // highest
    uint64_t other_bytes; // highest when a step ended, comm left out
};

struct as_facts {
    const struct as_settings *settings;
    struct as_ledger *ledger; // tensors
    struct as_ledger *segments; // memory taken from the driver
    struct as_ledger
        *others; // the same, not on a device: enum actswap_memory in its place
    struct as_steps *steps;
    struct as_plan *plan; // or NULL
    struct as_notes *notes, *warnings;
    const struct as_pager_totals *pager;

    const char *run_id;
    const char *framework; // "torch 2.15.0", or NULL
    const char *path; // of the report, or NULL
    int rank, world;

    char device[128]; // its name, "" when not known
    uint64_t device_bytes;
    uint64_t card_bytes; // its own size, more than the one above where that is pretended
    uint64_t budget_bytes; // 0: none, or a share of what is not known yet
    bool simulated;
    const char *compute; // of the simulated device
    struct as_missed missed; // what it did not compute
    struct as_races races; // what its checker found
    const char *(*race_said)(unsigned which); // the first of them, then NULL; or NULL
    struct as_times times; // its clock
    enum as_source source;
    struct as_outside outside;
    unsigned moments; // 1 << enum actswap_moment: those that were ever marked

    const struct as_oom *oom; // the last out of memory, or NULL

    bool complete;
    const char *ended; // "exit", "oom", "running"
};

// Writes the file under a name that did not exist: `path` is changed to it. 0 or a
// negative errno; then nothing is left behind.
int as_report_create(char *path, size_t path_bytes, const struct as_facts *facts);

// Writes it anew: beside its name, and renamed when it is whole, so that a reader, or who
// comes after a kill or a full disk, finds the old one or the new one. 0 or a negative
// errno; then the old one is left.
int as_report_write(const char *path, const struct as_facts *facts);

// Writes the summary into `text`, always terminated; "" when there is nothing to tell.
void as_report_summary(const struct as_facts *facts, char *text, size_t text_bytes);

#endif
