// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CHECK_REPORT_H
#define AS_SIMCUDA_CHECK_REPORT_H

// What the checker says: two lines for each pair of places, the first time.
//
// Thread-safety: none; the queue's lock covers it.

#include "simcuda/check/shadow.h"

// Who makes accesses: an operator, a copy or the host, at a line of the program. The texts
// live as long as the process.
struct sim_site {
    const char *name;
    const char *place; // "train.py:31", or NULL
    const void *stream; // its handle, or NULL: the default stream's
    int device; // -1: the host
};

// Its number.
unsigned sim_site_intern(const struct sim_site *site);

// A copy of the text, the same one each time.
const char *sim_text_intern(const char *text);

struct sim_report {
    unsigned site;
    bool write;
    size_t bytes; // of the access
    const struct sim_found *found;
};

void sim_report_say(const struct sim_report *report);

// The first races in words, each in one line that stays; NULL: no more. Any thread, without
// the lock. libactswap finds it by name.
const char *sim_race_said(unsigned which);

// How many accesses clashed, and how many of them were said or would have been: each pair
// of places once.
unsigned long sim_report_clashes(void);
unsigned long sim_report_pairs(void);
// Reads of what nothing has written: no races.
unsigned long sim_report_unwritten(void);

#endif
