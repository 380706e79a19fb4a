// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_WORDS_H
#define AS_CLI_REPORT_WORDS_H

// The sentences that the text and the page have in common. Each writes into `text`, always
// terminated, "" where the report has nothing to say, and returns it.

#include "cli/report/ranks.h"

enum { AS_WORDS = 512 };

typedef char as_words[AS_WORDS];

// "41.8 GiB", or "not known".
const char *as_words_bytes(uint64_t bytes, as_words text);

// "1.84 s", "412 ms", "31 us", or "not known".
const char *as_words_time(uint64_t ns, as_words text);

// "24%" of the whole, "" where either is not known.
const char *as_words_share(uint64_t part, uint64_t whole, as_words text);

// "train.py" of `python train.py --x`.
const char *as_words_program(json_t *report, as_words text);

// "NVIDIA H100 80GB HBM3, pretending 40.0 GiB"
const char *as_words_device(json_t *report, as_words text);

// "measured", or "simulated (shapes), not measured".
const char *as_words_basis(json_t *report, as_words text);

// "ended normally after 50 steps", "out of memory in step 3, forward", ...
const char *as_words_ended(const struct as_rank *rank, as_words text);

// "step 7, backward, 412 ms in" of the peak.
const char *as_words_peak_place(json_t *report, as_words text);

// "44.0 GiB: kept, 3.1 GiB to spare", or "44.0 GiB: exceeded by 1.2 GiB, first in step 7,
// backward, in layers.3".
const char *as_words_budget(json_t *report, as_words text);

// "out 4.0 GiB, in 4.0 GiB, at most 1.0 GiB there" of what went on to a disk, or "".
const char *as_words_disk(json_t *report, as_words text);

// "step 3, forward, in blocks.2" of an out of memory.
const char *as_words_oom_place(json_t *oom, as_words text);

// "activation 46.1 GiB, parameter 15.0 GiB" of a list by category, the largest first.
const char *as_words_shares(json_t *list, as_words text);

// How what was in use adds up to what the driver gave.
const char *as_words_reconcile(json_t *report, as_words text);

// Whether doing without activations is worth a thought.
const char *as_words_advice(json_t *report, as_words text);

// "83% of activation bytes wait longer than the 31 ms that a round trip takes". Waits of a
// simulation are in its own time, which no round trip of a card can be held against.
const char *as_words_idle(json_t *report, as_words text);

// "L40S 48GB as it is, 3.4 GiB to spare; RTX 4090 24GB is 12.0 GiB short (simulated)": the
// smallest card that the run has room on, and the largest that it has not.
const char *as_words_fits(json_t *report, as_words text);

// What cannot be shown because the report does not have it: "memory over time, sites".
const char *as_words_lacking(json_t *report, as_words text);

// "rank 3 has the highest peak, 41.8 GiB; rank 5 the slowest step, 1.86 s".
const char *as_words_outliers(const struct as_run *run, as_words text);

// A frame list from the outermost to the innermost as one line, the innermost first:
// "model.py:118 Block.forward < train.py:42 step".
const char *as_words_stack(json_t *report, json_t *site, as_words text);

#endif
