// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_ORDER_ENTRY_H
#define AS_SIMCUDA_ORDER_ENTRY_H

// The graph of entries, and who runs them: one at a time, a thread that waits for one or
// else the queue's own. What the edges are is decided in stream.c; here it is only kept
// that nothing runs before its edges allow, nor, under `late`, before somebody wants it,
// nor, by a seed, before it is chosen (schedule.h) or wanted. Host functions alone are
// wanted by the queue itself after a while: the program may be waiting for what they say.
//
// Thread-safety: one lock for the whole queue, taken by the caller where a function
// says so.

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "simcuda/order/queue.h"

struct sim_edge;

struct sim_entry {
    unsigned references; // the queue, its stream's tail, events, waiting threads
    bool wanted;
    bool done;
    unsigned missing; // entries before it that are not done
    uint64_t number; // in order of submission
    struct sim_when when; // final once it is enqueued
    struct sim_edge *in, *out;
    struct sim_entry *next; // of the ready, the idle or the wanted list
    struct sim_entry *older, *newer; // of those that are not done
    unsigned lane; // the stream's number
    const void *stream; // its handle as the program has it, for messages
    int device;
    bool replayed; // a graph's node
    struct sim_stamp *stamp; // the checker's; NULL: it is off
    struct timespec due; // a host function: it runs by then, wanted or not
    uint64_t told; // the last step of the program's when a host function began
    bool open; // the schedule's
    struct sim_entry *open_before, *open_after;
    struct sim_task task;
};

void sim_queue_lock(void);
void sim_queue_unlock(void);

// True in what an entry runs.
bool sim_queue_inside(void);

// The entry that the calling thread runs, or NULL.
const struct sim_entry *sim_entry_running(void);

// All below: with the lock held.

// Referenced once, for the caller. NULL: no memory.
struct sim_entry *sim_entry_create(const struct sim_task *task);

// `entry`, not yet in the queue, comes after `before`, which may be NULL. false: no memory.
bool sim_entry_after(struct sim_entry *entry, struct sim_entry *before);

// Takes back an entry that is not in the queue.
void sim_entry_abandon(struct sim_entry *entry);

// Hands the entry to the queue.
void sim_entry_enqueue(struct sim_entry *entry);

// What a submission ends with: under `early`, and when the queue is full, waits (and lets
// go of the lock meanwhile). By a seed some work may run.
void sim_entry_throttle(struct sim_entry *entry);

// By a seed some work may run, without the lock meanwhile.
void sim_queue_stir(void);

// Lets it run, with everything that it comes after. Then somebody must wait, with the
// lock still held: that is what has it run.
void sim_entry_want(struct sim_entry *entry);

// Wants it and waits until it is done, without the lock meanwhile.
void sim_entry_await(struct sim_entry *entry);

// How many entries were submitted since.
uint64_t sim_entry_age(const struct sim_entry *entry);

// With the checker on: the entry that is not done at that place of the checker's order, or
// NULL.
const struct sim_entry *sim_entry_pending_at(unsigned lane, uint64_t epoch);

struct sim_entry *sim_entry_hold(struct sim_entry *entry);
void sim_entry_release(struct sim_entry *entry); // NULL is fine

#endif
