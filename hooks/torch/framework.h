// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TORCH_FRAMEWORK_H
#define AS_TORCH_FRAMEWORK_H

// What the adapter's C side uses of PyTorch: objects looked up once and names interned
// once. Only Python's stable ABI is used, so that one build serves every version.
//
// Thread-safety: everything here is called with the GIL held.

#include <Python.h>
#include <stdbool.h>

// Attributes and methods of tensors and storages, interned.
#define AS_TORCH_NAMES(name)                                                             \
    name(_base) name(_cdata) name(_version) name(conj) name(data) name(data_ptr)         \
        name(detach) name(device) name(dtype) name(get_device) name(grad) name(grad_fn)  \
            name(is_cuda) name(is_conj) name(is_leaf) name(is_neg) name(is_nested)       \
                name(is_quantized) name(itemsize) name(layout) name(nbytes)              \
                    name(output_nr) name(requires_grad) name(set_) name(shape)           \
                        name(storage_offset) name(stride) name(untyped_storage)

struct as_framework {
    PyObject *tensor; // the types torch.Tensor
    PyObject *parameter; // and torch.nn.Parameter
    PyObject *strided; // torch.strided
    PyObject *storage; // torch.UntypedStorage
    PyObject *nothing; // an empty tensor on the CPU, shared
    PyObject *new_tensor; // torch.empty
    PyObject *conj, *neg; // torch._conj and torch._neg_view
    PyObject *raw_stream; // device -> the current cudaStream_t as a number
    PyObject *backward_id; // -> -1 outside any backward
    PyObject *device_type; // torch.device
    PyObject *dispatch_keys; // of a tensor; NULL where PyTorch does not say
    PyObject *use_count; // of a storage's _cdata; NULL where PyTorch does not say
    PyObject *zero; // (0,)
    PyObject *helpers; // our Python module with the slow paths
    char label[64]; // "torch 2.15.0", for the report
#define AS_TORCH_FIELD(n) PyObject *n;
    struct {
        AS_TORCH_NAMES(AS_TORCH_FIELD)
    } name;
#undef AS_TORCH_FIELD
};

extern struct as_framework as_framework;

// Looks everything up in the imported torch. 0, or -1 with a Python exception set.
int as_framework_bind(PyObject *torch, PyObject *helpers);

// Attribute or method result as a C value. `failed` is set, never cleared, and the
// Python exception is swallowed, when it cannot be had.
long long as_framework_number(PyObject *object, PyObject *attribute, bool *failed);
long long as_framework_call_number(PyObject *object, PyObject *method, bool *failed);
bool as_framework_true(PyObject *object, PyObject *attribute, bool *failed);
bool as_framework_call_true(PyObject *object, PyObject *method, bool *failed);
void *as_framework_pointer(PyObject *object, PyObject *method, bool *failed);

// The cudaStream_t on which work of this thread for `device` runs now.
void *as_framework_stream(int device, bool *failed);

// True while this thread runs a backward.
bool as_framework_in_backward(void);

// How many hold the memory of a storage in C++, its Python object among them; -1: not
// known.
long long as_framework_uses(PyObject *storage);

// A new reference to torch.device("cuda", device), or NULL with an exception.
PyObject *as_framework_device(int device);

#endif
