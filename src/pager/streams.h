// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_STREAMS_H
#define AS_PAGER_STREAMS_H

// The streams of the process, as far as they are known: those that the runtime makes, told
// by its hooks, until they end; and those that the framework names, such as the legacy
// stream, each with the time it was last named by a clock that counts namings.
//
// A stream that ends may leave work behind. An event stands for it from then on.
//
// Thread-safety: every function may be called from any thread. No lock is held over a
// CUDA call, but the end of a stream waits for visits to be over.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct as_streams;

struct as_streams *as_streams_create(void);
void as_streams_destroy(struct as_streams *streams);

// When one cannot be written down, nothing may be let go early any more, and
// as_streams_visit() and as_streams_since() say so.
void as_streams_made(struct as_streams *streams, int device, void *stream);

// Comes before the stream is destroyed. Makes CUDA calls.
void as_streams_ending(struct as_streams *streams, void *stream);

// True if the stream was made and has not ended.
bool as_streams_knows(struct as_streams *streams, int device, const void *stream);

// How many streams have ended, and whether one that was made or named has not since there
// were `ends`.
uint64_t as_streams_ends(struct as_streams *streams);
bool as_streams_lives(struct as_streams *streams, int device, const void *stream,
                      uint64_t ends);

uint64_t as_streams_now(struct as_streams *streams);

// 0 or -ENOMEM, as above.
int as_streams_see(struct as_streams *streams, int device, void *stream);

// The streams of `device` named at or after `since`: writes at most `count` and returns
// how many there are; SIZE_MAX when some are not known.
size_t as_streams_since(struct as_streams *streams, int device, uint64_t since,
                        void *found[], size_t count);

// What is called for each stream, and for each event that stands for one that ended. An
// error ends the visit.
struct as_streams_visitor {
    int (*stream)(void *stream, void *context);
    int (*event)(void *event, void *context);
    void *context;
};

// Visits all that may have work of `device` in flight: its legacy stream, the streams that
// were made there, those that were named at or after `since`, and the ends of others. No
// stream ends meanwhile. -ENOMEM: some are not known. Makes CUDA calls.
int as_streams_visit(struct as_streams *streams, int device, uint64_t since,
                     const struct as_streams_visitor *visitor);

#endif
