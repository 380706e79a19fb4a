// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TORCH_STACK_H
#define AS_TORCH_STACK_H

// Which code saves a tensor. Frames are read where a tensor is saved, as there the thread
// holds the GIL; in an allocation it does not. A stack is told to the library once and is
// a number from then on: later it costs a walk over its frames, unless ACTSWAP_STACKS wants
// none of Python's.
//
// Thread-safety: everything here is called with the GIL held.

#include <Python.h>
#include <stdint.h>

struct as_library;

// Frames of the packages of these two modules are left out: they say nothing of a script.
void as_stack_bind(const struct as_library *library, PyObject *torch, PyObject *ours);

// The number of the running stack; 0: it has none, or nobody wants to know.
uint32_t as_stack_now(void);

#endif
