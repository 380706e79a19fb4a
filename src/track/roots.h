// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_ROOTS_H
#define AS_TRACK_ROOTS_H

// Reads losses without making the program wait: the bits are copied to a pinned slot in
// the order of the stream, and picked up when the copy's event has happened.
//
// Thread-safety: every function may be called from any thread.

#include <stddef.h>

struct as_roots;
struct as_steps;

// Makes no CUDA call before the first root.
struct as_roots *as_roots_create(struct as_steps *steps);

// Gives back what the device has lent, unless the runtime is gone already.
void as_roots_destroy(struct as_roots *roots);

// 0, or why this one cannot be read: -EINVAL (too large), -EBUSY (a capture is in
// progress), -ENOSPC (too many at once or in a step), -EIO (the device refused).
int as_roots_add(struct as_roots *roots, int device, const void *address, size_t bytes,
                 void *stream);

// Picks up what has arrived. Returns how many have not.
size_t as_roots_collect(struct as_roots *roots);

// The same when nothing comes later: asks again for up to a second. The device may be
// stuck, so nobody waits for it longer.
void as_roots_collect_last(struct as_roots *roots);

#endif
