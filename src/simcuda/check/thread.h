// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CHECK_THREAD_H
#define AS_SIMCUDA_CHECK_THREAD_H

// What each thread of the program knows: which work it was told is over, and what other
// threads had done when they handed over to it.
//
// Hand-overs are seen by simthreads.so (threads/threads.h). Where that is not loaded, all
// threads count as one: what one was told, all know from then on.
//
// Thread-safety: with the queue's lock held.

#include <stdbool.h>
#include <stdint.h>

#include "simcuda/check/clock.h"

// Once, before all else, while the checker is on: looks for simthreads.so.
void sim_thread_start(void);

// Hand-overs that the library around the address makes are ours, not the program's.
void sim_thread_exclude(const void *address);

// Of the calling thread; good until it learns more.
const struct sim_clock *sim_thread_known(void);

void sim_thread_tell(const struct sim_clock *clock);
void sim_thread_tell_all(const struct sim_clock *clock);

// Between 1 and -1 what the calling thread waits for it has not been told.
void sim_thread_pause(int by);
bool sim_thread_is_paused(void);

// The calling thread is about to run a host function that comes after `past`, and knows
// nothing else. Nothing where threads count as one.
void sim_thread_enter(const struct sim_clock *past);
bool sim_threads_are_apart(void);

// The calling thread does something: a place of its own in the order, with which it comes
// before all that it submits later. The epochs of all threads' grow together.
struct sim_step {
    unsigned lane;
    uint64_t epoch;
};

struct sim_step sim_thread_step(void);
uint64_t sim_thread_steps(void); // the last epoch

// Whether every thread that is awake knows it, so that nothing can race with it any more;
// whether any does.
bool sim_threads_all_know(unsigned lane, uint64_t epoch);
bool sim_threads_one_knows(unsigned lane, uint64_t epoch);

#endif
