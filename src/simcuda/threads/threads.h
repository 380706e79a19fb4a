// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_THREADS_THREADS_H
#define AS_SIMCUDA_THREADS_THREADS_H

// simthreads.so: sees threads of the program hand over to each other, by interposing
// mutexes, conditions, semaphores, barriers, creation and join, and what else a thread
// may wait with. Preloaded where races are checked; does nothing until somebody watches.
//
// What is not seen: hand-overs by atomic variables alone. Where a thread yields or sleeps
// it may be looking at one, which is told.
//
// Thread-safety: any thread.

// Called by the thread that does so; none of them may wait for the program, nor call what
// is interposed and expect to be called.
struct sim_threads_watcher {
    void (*gave)(const void *object); // before it lets go of it
    void (*took)(const void *object); // after it got it
    void (*polled)(void);
    void *(*forked)(void); // before it creates a thread, which then calls the next:
    void (*began)(void *forked); // unless it was NULL
    void (*failed)(void *forked); // there is no thread after all
};

// Once a process; a child after fork() is not watched.
void sim_threads_watch(const struct sim_threads_watcher *watcher);

// What the library around the address calls is not the program's. NULL is fine.
void sim_threads_exclude(const void *address);

#endif
