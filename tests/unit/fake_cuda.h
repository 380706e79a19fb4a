// SPDX-License-Identifier: Apache-2.0
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

// src/cuda/runtime.h over a device that a test controls: each stream has a pace, so that
// an order between two streams that nobody asked for can be broken at will.
//
// An eager stream runs its work as it comes, and whatever that must wait for; a lazy one
// runs when somebody waits for it. One device's memory is as good as another's: memory
// is the host's.

#include <stdbool.h>
#include <stddef.h>

enum fake_pace { FAKE_EAGER, FAKE_LAZY };

// A compute stream of the framework's.
void *fake_stream(enum fake_pace pace);

// The pace of a stream from now on. NULL: the legacy one, which is eager.
void fake_pace(void *stream, enum fake_pace pace);

// The pace of the nth stream that as_cuda_stream_create() will make (0: the out lane of
// the first device, 1: its in lane). Eager when not said.
void fake_lane_pace(int nth, enum fake_pace pace);

// Work of a kernel: fills memory, or reads it into the host's `sink`, when it runs.
void fake_fill(void *stream, void *address, int value, size_t bytes);
void fake_read(void *stream, const void *address, void *sink, size_t bytes);

// Runs everything that is left, lazy streams last.
void fake_finish(void);

// The `nth` call (1: the next) of that function answers 2 and does nothing.
void fake_fail(const char *function, int nth);
int fake_calls(const char *function);

// Begins or ends a capture of the stream's. While there is one, calls that would spoil it
// are counted: a thread that is not relaxed pins memory or asks an event, a captured
// stream is waited for or asked, an edge crosses the border of the capture.
void fake_capture(void *stream, bool capturing);
int fake_spoilt(void);

// What the device has left. 0: it does not say.
void fake_free_bytes(size_t bytes);

// What as_cuda_shares_memory() answers.
void fake_shares_memory(bool answer);

// What as_cuda_skips_bytes() answers.
void fake_skips_bytes(bool answer);

// Called at the start of each CUDA call, where another thread might come in between.
void fake_watch(void (*watch)(const char *function));

#endif
