// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_NATIVE_H
#define AS_TRACK_NATIVE_H

// Native call stacks, by libunwind. It is loaded by as_native_begin() and never linked: it
// defines the unwinder's names as well, which are the C++ runtime's in any other program.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>

enum { AS_NATIVE_FRAMES = 24 };

// Makes ready. Frames that lie in libactswap itself are left out of every stack, and those
// of `adapter`'s object, an address in code, if its file lies beside or below libactswap's.
// `glue` is that of struct actswap_verbs and must outlive every call. False: there is no
// libunwind.
bool as_native_begin(const void *adapter, const char *glue);

// The addresses of this thread's frames, the innermost first, and how many. What calls
// libactswap by way of a Python interpreter begins behind that one; `until_python` ends the
// stack at the next one, whose frames tell more. 0 before as_native_begin().
unsigned as_native_take(void *frames[AS_NATIVE_FRAMES], bool until_python);

// "libmodel.so layer_forward" of an address that a frame returns to, C++ names without their
// arguments; "libmodel.so+0x1f30" where the object names nothing there. False: it is glue.
bool as_native_text(void *frame, char *text, size_t text_bytes);

#endif
