// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_GRADIENTS_H
#define AS_TRACK_GRADIENTS_H

// The digest of one step's gradients, copied out piece by piece.
//
// Thread-safety: one call at a time; a second one meanwhile is refused.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct as_gradients;

struct as_gradients *as_gradients_create(void);
void as_gradients_destroy(struct as_gradients *gradients);

// Adds the bytes after the work on `stream`, which is waited for. 0, -EBUSY (a capture
// is in progress, or another thread is at it) or -EIO.
int as_gradients_add(struct as_gradients *gradients, const void *address, size_t bytes,
                     void *stream);

// Ends a step: false if nothing was added since the last one.
bool as_gradients_take(struct as_gradients *gradients, uint64_t *digest);

#endif
