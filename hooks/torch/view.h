// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TORCH_VIEW_H
#define AS_TORCH_VIEW_H

// How a tensor lies in its storage, enough to build the same tensor on another storage
// that has the same bytes.
//
// Thread-safety: everything here is called with the GIL held.

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>

struct as_view {
    PyObject *dtype, *device, *shape, *stride, *offset;
    bool conj, neg;
};

// Fills `view` from a strided tensor. False, with nothing taken and no exception set,
// when the tensor does not tell.
bool as_view_take(struct as_view *view, PyObject *tensor);

// A new tensor on `storage` (an UntypedStorage), or NULL with an exception set.
PyObject *as_view_build(const struct as_view *view, PyObject *storage);

// The bytes of its storage that the view covers, at most `storage_bytes`. Repeats
// (stride 0) count once.
size_t as_view_used_bytes(const struct as_view *view, size_t item_bytes,
                          size_t storage_bytes);

void as_view_finish(struct as_view *view);

#endif
