// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_PAUSE_H
#define AS_PAGER_PAUSE_H

// While a thread waits for a disk, or for another thread that does, the framework's other
// threads go on: the verbs pause() and resume() stand around each such wait.
//
// Thread-safety: the pager's lock is not held, and between both no other verb is called.

#include <stdbool.h>

struct as_pager;

struct as_pause {
    const struct actswap_verbs *verbs; // NULL: it has no such verbs
    void *context, *paused;
};

struct as_pause as_pause_begin(struct as_pager *pager);
void as_pause_end(const struct as_pause *pause);

#endif
