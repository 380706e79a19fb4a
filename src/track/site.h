// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_SITE_H
#define AS_TRACK_SITE_H

// Which code saves tensors: call stacks, each kept once and known by a small index, 0 being
// none. There are at most AS_PLACES of them, as of blocks (place.h): further ones all are
// AS_PLACE_FURTHER.
//
// Thread-safety: every function may be called from any thread.

#include <stdint.h>

#include "track/place.h"

// Keeps the frames of a stack, outermost first, each "file.py:12 function", divided by
// newlines. Returns its index, the one that the same frames got before. NULL: a stack that
// the caller has no room for.
uint32_t as_site_keep(const char *frames);

// The same for native frames (native.h), innermost first, which the stack `outer` called;
// 0: nothing did. They get their names when they are asked for.
uint32_t as_site_keep_native(uint32_t outer, void *const frames[], unsigned count);

// The frames, as as_site_keep() takes them, or NULL. Stays as it is for good.
const char *as_site_text(uint32_t site);

#endif
