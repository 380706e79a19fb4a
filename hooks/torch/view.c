// SPDX-License-Identifier: Apache-2.0
#include "view.h"

#include "framework.h"

bool as_view_take(struct as_view *view, PyObject *tensor)
{
    bool failed = false;
    *view = (struct as_view){
        .dtype = PyObject_GetAttr(tensor, as_framework.name.dtype),
        .device = PyObject_GetAttr(tensor, as_framework.name.device),
        .shape = PyObject_GetAttr(tensor, as_framework.name.shape),
        .stride = PyObject_CallMethodObjArgs(tensor, as_framework.name.stride, NULL),
        .offset =
            PyObject_CallMethodObjArgs(tensor, as_framework.name.storage_offset, NULL),
        .conj = as_framework_call_true(tensor, as_framework.name.is_conj, &failed),
        .neg = as_framework_call_true(tensor, as_framework.name.is_neg, &failed),
    };
    if (view->dtype && view->device && view->shape && view->stride && view->offset &&
        !failed && PyTuple_Check(view->shape) && PyTuple_Check(view->stride))
        return true;

    PyErr_Clear();
    as_view_finish(view);
    return false;
}

void as_view_finish(struct as_view *view)
{
    Py_CLEAR(view->dtype);
    Py_CLEAR(view->device);
    Py_CLEAR(view->shape);
    Py_CLEAR(view->stride);
    Py_CLEAR(view->offset);
}

size_t as_view_used_bytes(const struct as_view *view, size_t item_bytes,
                          size_t storage_bytes)
{
    size_t bytes = item_bytes;
    for (Py_ssize_t i = 0; i < PyTuple_Size(view->shape); i++) {
        const size_t extent = PyLong_AsSize_t(PyTuple_GetItem(view->shape, i));
        const long long stride = PyLong_AsLongLong(PyTuple_GetItem(view->stride, i));
        if (stride == 0 && extent > 0)
            continue;
        if (__builtin_mul_overflow(bytes, extent, &bytes))
            bytes = storage_bytes;
    }
    PyErr_Clear(); // symbolic sizes: counted as they come
    return bytes < storage_bytes ? bytes : storage_bytes;
}

static PyObject *empty_like(const struct as_view *view)
{
    PyObject *keywords =
        Py_BuildValue("{s:O,s:O}", "dtype", view->dtype, "device", view->device);
    PyObject *tensor =
        keywords ? PyObject_Call(as_framework.new_tensor, as_framework.zero, keywords)
                 : NULL;

    Py_XDECREF(keywords);
    return tensor;
}

// Takes over `tensor`.
static PyObject *apply(PyObject *function, PyObject *tensor)
{
    PyObject *result = PyObject_CallFunctionObjArgs(function, tensor, NULL);
    Py_DECREF(tensor);
    return result;
}

PyObject *as_view_build(const struct as_view *view, PyObject *storage)
{
    PyObject *tensor = empty_like(view);
    PyObject *set =
        tensor ? PyObject_CallMethodObjArgs(tensor, as_framework.name.set_, storage,
                                            view->offset, view->shape, view->stride, NULL)
               : NULL;
    if (!set) {
        Py_XDECREF(tensor);
        return NULL;
    }
    Py_DECREF(set);
    if (view->conj)
        tensor = apply(as_framework.conj, tensor);
    if (tensor && view->neg)
        tensor = apply(as_framework.neg, tensor);
    return tensor;
}
