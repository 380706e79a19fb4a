// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CUDA_THREAD_H
#define AS_CUDA_THREAD_H

// What a thread is set to while it makes calls of ours: its device, and that captures of
// the user's do not mind them.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>

// What a thread was set to.
struct as_before {
    int device, mode; // -1: as it is
};

// Makes `device` current and the thread free of captures' guard, so that a capture of the
// user's is not spoilt by calls of ours on other streams; remembers in *before what was,
// to be given to as_device_leave(). No context is made on another device: whoever has
// memory there has one. A cudaError_t.
int as_device_enter(int device, struct as_before *before);
void as_device_leave(const struct as_before *before);

// The second half alone.
void as_guard_enter(struct as_before *before);
void as_guard_leave(const struct as_before *before);

// An error counts as a capture: another thread's strict one makes the question illegal.
bool as_stream_captured(void *stream);

#endif
