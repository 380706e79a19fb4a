// SPDX-License-Identifier: Apache-2.0
#include "framework.h"

struct as_framework as_framework;

#define INTERN(n)                                                                        \
    as_framework.name.n = PyUnicode_InternFromString(#n);                                \
    if (!as_framework.name.n)                                                            \
        return -1;

static int intern_names(void)
{
    AS_TORCH_NAMES(INTERN)
    return 0;
}

// "a.b.c" of `object`, a new reference.
static PyObject *find(PyObject *object, const char *path)
{
    PyObject *names = PyUnicode_FromString(path);
    PyObject *parts = names ? PyObject_CallMethod(names, "split", "s", ".") : NULL;
    PyObject *found = parts ? object : NULL;

    Py_XINCREF(found);
    for (Py_ssize_t i = 0; found && i < PyList_Size(parts); i++) {
        PyObject *next = PyObject_GetAttr(found, PyList_GetItem(parts, i));
        Py_DECREF(found);
        found = next;
    }
    Py_XDECREF(parts);
    Py_XDECREF(names);
    return found;
}

static void take_label(PyObject *torch)
{
    PyObject *version = PyObject_GetAttrString(torch, "__version__");
    PyObject *text = version ? PyObject_Str(version) : NULL;
    PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;

    snprintf(as_framework.label, sizeof(as_framework.label), "torch %s",
             bytes ? PyBytes_AsString(bytes) : "of unknown version");
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    Py_XDECREF(version);
    PyErr_Clear();
}

int as_framework_bind(PyObject *torch, PyObject *helpers)
{
    const struct {
        PyObject **place;
        const char *path;
    } objects[] = {
        {&as_framework.tensor, "Tensor"},
        {&as_framework.parameter, "nn.Parameter"},
        {&as_framework.strided, "strided"},
        {&as_framework.storage, "UntypedStorage"},
        {&as_framework.new_tensor, "empty"},
        {&as_framework.conj, "_conj"},
        {&as_framework.neg, "_neg_view"},
        {&as_framework.raw_stream, "_C._cuda_getCurrentRawStream"},
        {&as_framework.backward_id, "_C._current_graph_task_id"},
        {&as_framework.device_type, "device"},
    };
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        *objects[i].place = find(torch, objects[i].path);
        if (!*objects[i].place)
            return -1;
    }
    take_label(torch);
    as_framework.use_count = find(torch, "_C._storage_Use_Count");
    PyErr_Clear();
    as_framework.dispatch_keys = find(torch, "_C._dispatch_keys");
    PyErr_Clear();
    as_framework.zero = Py_BuildValue("(i)", 0);
    as_framework.nothing = PyObject_CallFunction(as_framework.new_tensor, "i", 0);
    Py_INCREF(helpers);
    as_framework.helpers = helpers;
    if (!as_framework.zero || !as_framework.nothing)
        return -1;
    return intern_names();
}

static long long take_number(PyObject *value, bool *failed)
{
    const long long number = value ? PyLong_AsLongLong(value) : -1;
    Py_XDECREF(value);
    if (number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        *failed = true;
    }
    return number;
}

static bool take_truth(PyObject *value, bool *failed)
{
    const int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    if (truth < 0) {
        PyErr_Clear();
        *failed = true;
    }
    return truth == 1;
}

long long as_framework_number(PyObject *object, PyObject *attribute, bool *failed)
{
    return take_number(PyObject_GetAttr(object, attribute), failed);
}

long long as_framework_call_number(PyObject *object, PyObject *method, bool *failed)
{
    return take_number(PyObject_CallMethodObjArgs(object, method, NULL), failed);
}

bool as_framework_true(PyObject *object, PyObject *attribute, bool *failed)
{
    return take_truth(PyObject_GetAttr(object, attribute), failed);
}

bool as_framework_call_true(PyObject *object, PyObject *method, bool *failed)
{
    return take_truth(PyObject_CallMethodObjArgs(object, method, NULL), failed);
}

static void *take_pointer(PyObject *value, bool *failed)
{
    void *pointer = value ? PyLong_AsVoidPtr(value) : NULL;
    Py_XDECREF(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        *failed = true;
    }
    return pointer;
}

void *as_framework_pointer(PyObject *object, PyObject *method, bool *failed)
{
    return take_pointer(PyObject_CallMethodObjArgs(object, method, NULL), failed);
}

void *as_framework_stream(int device, bool *failed)
{
    return take_pointer(PyObject_CallFunction(as_framework.raw_stream, "i", device),
                        failed);
}

bool as_framework_in_backward(void)
{
    bool failed = false;
    const long long id =
        take_number(PyObject_CallObject(as_framework.backward_id, NULL), &failed);
    return !failed && id != -1;
}

long long as_framework_uses(PyObject *storage)
{
    bool failed = false;
    PyObject *data = as_framework.use_count
                         ? PyObject_GetAttr(storage, as_framework.name._cdata)
                         : NULL;
    PyObject *uses =
        data ? PyObject_CallFunctionObjArgs(as_framework.use_count, data, NULL) : NULL;

    Py_XDECREF(data);
    return take_number(uses, &failed);
}

PyObject *as_framework_device(int device)
{
    return PyObject_CallFunction(as_framework.device_type, "si", "cuda", device);
}
