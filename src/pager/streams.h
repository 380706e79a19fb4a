// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_STREAMS_H
#define AS_PAGER_STREAMS_H

// The compute streams that the framework named to us, each with the time it was last
// seen by a clock that counts sightings.
//
// Thread-safety: every function may be called from any thread.

#include <stddef.h>
#include <stdint.h>

struct as_streams;

struct as_streams *as_streams_create(void);
void as_streams_destroy(struct as_streams *streams);

uint64_t as_streams_now(struct as_streams *streams);

// 0 or -ENOMEM: then nothing may be let go early on this device any more, and
// as_streams_since() says so.
int as_streams_see(struct as_streams *streams, int device, void *stream);

// The streams of `device` seen at or after `since`: writes at most `count` and returns
// how many there are; SIZE_MAX when some are not known.
size_t as_streams_since(struct as_streams *streams, int device, uint64_t since,
                        void *found[], size_t count);

#endif
