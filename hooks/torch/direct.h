// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TORCH_DIRECT_H
#define AS_TORCH_DIRECT_H

// What a plain dense CUDA tensor says of itself, asked in C: a tenth of what the same
// questions take through Python's attributes.
//
// PyTorch's libraries export a C interface for tensors (torch/csrc/inductor/aoti_torch/c/
// shim.h) and a few functions of C++ that take one and cannot throw. Where a tensor lies
// behind its Python object, and its set of dispatch keys in that, is searched and has to
// be the one place that says what Python says, of tensors of several kinds. The keys of a
// plain CUDA tensor are those of the first one whose every answer agrees with Python's.
// What has other keys (sparse, nested, quantized, conjugate, a wrapper) or another class,
// and everything where something is missing or disagrees, is for Python to ask.
//
// Thread-safety: everything here is called with the GIL held.

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>

struct as_direct {
    long long version, output;
    PyObject *node; // the type of grad_fn, or NULL
    bool leaf, requires_grad, view;
    int device;
    void *address; // of the storage
    size_t bytes, used_bytes; // likewise
    void *stream; // the current one of the device
};

// `kinds`: tensors on the CPU and of no device, to search with.
void as_direct_bind(PyObject *kinds);

// False: Python has to be asked; no exception is set. Else `said` has a new reference.
bool as_direct_ask(PyObject *tensor, struct as_direct *said);

// Asks no more. True: it did.
bool as_direct_stop(void);

// Like as_framework_in_backward(); only after as_direct_ask() was true.
bool as_direct_in_backward(void);

#endif
