// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_NOTES_H
#define AS_TRACK_NOTES_H

// Counts of things worth telling, by phrase. At most AS_NOTES kinds; further kinds are
// counted together as "other notes".
//
// Thread-safety: every function may be called from any thread, once `lock` is
// initialised.

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { AS_NOTES = 64 };

struct as_note {
    const char *what;
    uint64_t count;
};

struct as_notes {
    pthread_mutex_t lock;
    struct as_note entries[AS_NOTES];
};

// `what` must live as long as the notes. Returns its count so far.
uint64_t as_notes_add(struct as_notes *notes, const char *what);

// Entry `index` in order of first appearance, or what = NULL behind the last one.
struct as_note as_notes_read(struct as_notes *notes, size_t index);

#endif
