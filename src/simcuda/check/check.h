// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CHECK_CHECK_H
#define AS_SIMCUDA_CHECK_CHECK_H

// The checker of ACTSWAP_SIM_CHECK=races, as the queue and the runtime see it.
//
// Two accesses of the same bytes, one of them a write, race when nothing that the program
// did orders them: two legal orders, with the same answers to its queries, would make them
// in opposite order. Whether the queue happened to do so this time does not matter.
//
// Thread-safety: with the queue's lock held, but for what says otherwise.

#include <stdbool.h>
#include <stddef.h>

#include "simcuda/check/clock.h"

enum sim_check { SIM_CHECK_OFF, SIM_CHECK_RACES, SIM_CHECK_FIRST };

enum sim_check sim_check(void); // any thread, without the lock

struct sim_entry;

// The entry is placed behind all that it was put after; on the lane of `tail`, if that
// goes. Nothing unless the checker is on, as in all below.
void sim_check_place(struct sim_entry *entry, const struct sim_entry *tail);

// It was submitted: what it reads and writes is compared.
void sim_check_entry(const struct sim_entry *entry);

// A host function begins.
void sim_check_begin(struct sim_entry *entry);

// --- Without the lock

// The line of the program that the thread is at, for a task; NULL: not known, or off. Not
// where the thread holds a lock that another may want while it holds Python's.
const char *sim_check_line(void);

// The text, in a copy that lives as long as the process while the checker is on.
const char *sim_check_text(const char *text);

// Device memory that the runtime gave out or took back, pinned memory that is no more.
void sim_check_allocated(const void *address, size_t bytes);
void sim_check_forget(const void *address, size_t bytes);

#endif
