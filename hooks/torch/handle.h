// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TORCH_HANDLE_H
#define AS_TORCH_HANDLE_H

// What autograd keeps in place of a saved tensor.
//
// A handle owns one interest in a page of the library, or the tensor itself where the
// library left it alone. It dies with the graph, used or not, and may be opened as often
// as the graph is walked. PyTorch does not compare versions of tensors that went through
// hooks, so the handle does.
//
// Thread-safety: everything here is called with the GIL held.

#include <Python.h>

struct as_library;

// 0, or -1 with an exception set. `library` must outlive every handle.
int as_handle_bind(const struct as_library *library);

// Connects the verbs when that has not happened. True when the library takes part.
int as_handle_attach(void);

// A new handle for `tensor`; NULL with an exception only when Python has no memory.
PyObject *as_handle_pack(PyObject *tensor);

// The tensor again, or NULL with an exception: changed in place since it was packed, or
// no device memory.
PyObject *as_handle_unpack(PyObject *handle);

// From now on each unpack on this thread appends to `list` the object that was packed, if
// the handle kept that, or None. NULL ends it. Takes over a reference to `list` and
// returns the one before.
PyObject *as_handle_record(PyObject *list);

// Appends it to that list for a tensor that did not come from a handle, or None.
void as_handle_opened(PyObject *tensor);

#endif
