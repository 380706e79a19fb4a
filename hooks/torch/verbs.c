// SPDX-License-Identifier: Apache-2.0
#include "verbs.h"

#include "framework.h"

// PyTorch's own words for "out of memory", kept until the library has said that it
// gives up.
static __thread struct {
    PyObject *type, *value, *trace;
} failure;

static void forget_failure(void)
{
    Py_CLEAR(failure.type);
    Py_CLEAR(failure.value);
    Py_CLEAR(failure.trace);
}

bool as_verbs_raise(void)
{
    if (!failure.type)
        return false;
    PyErr_Restore(failure.type, failure.value, failure.trace);
    failure.type = failure.value = failure.trace = NULL;
    return true;
}

// UntypedStorage and not torch.empty: that one writes to the memory when the user has
// asked for deterministic algorithms.
static PyObject *new_storage(int device, size_t bytes)
{
    PyObject *name = as_framework_device(device);
    PyObject *arguments = Py_BuildValue("(n)", (Py_ssize_t)bytes);
    PyObject *keywords = name ? Py_BuildValue("{s:O}", "device", name) : NULL;
    PyObject *storage = arguments && keywords
                            ? PyObject_Call(as_framework.storage, arguments, keywords)
                            : NULL;

    Py_XDECREF(keywords);
    Py_XDECREF(arguments);
    Py_XDECREF(name);
    return storage;
}

static PyObject *new_storage_on(int device, size_t bytes, void *stream)
{
    bool failed = false;
    if (as_framework_stream(device, &failed) == stream && !failed)
        return new_storage(device, bytes);
    return PyObject_CallMethod(as_framework.helpers, "allocate_on", "inK", device,
                               (Py_ssize_t)bytes, (unsigned long long)(uintptr_t)stream);
}

static void *allocate(void *context, int device, size_t bytes, void *stream,
                      void **address)
{
    bool failed = false;
    PyObject *storage = new_storage_on(device, bytes, stream);

    (void)context;
    forget_failure();
    if (!storage) {
        PyErr_Fetch(&failure.type, &failure.value, &failure.trace);
        return NULL;
    }
    *address = as_framework_pointer(storage, as_framework.name.data_ptr, &failed);
    if (failed) {
        Py_DECREF(storage);
        return NULL;
    }
    return storage;
}

// A graph may be freed while an exception is on its way.
static void release(void *context, void *ref)
{
    PyObject *type, *value, *trace;

    (void)context;
    PyErr_Fetch(&type, &value, &trace);
    Py_DECREF((PyObject *)ref);
    PyErr_Restore(type, value, trace);
}

// Tensors hold the storage in C++, in newer versions its Python object as well (tried on
// 2.15); others hold that object alone.
static size_t holders(void *context, void *ref)
{
    PyObject *type, *value, *trace;
    const Py_ssize_t objects = Py_REFCNT((PyObject *)ref) - 1;

    (void)context;
    if (objects > 0)
        return (size_t)objects;
    PyErr_Fetch(&type, &value, &trace);
    const long long uses = as_framework_uses((PyObject *)ref);
    PyErr_Restore(type, value, trace);
    return uses > 1 ? (size_t)uses - 1 : 0;
}

static void *pause_thread(void *context)
{
    (void)context;
    return PyEval_SaveThread();
}

static void resume_thread(void *context, void *paused)
{
    (void)context;
    PyEval_RestoreThread(paused);
}

const struct actswap_verbs as_verbs = {
    .size = sizeof(as_verbs),
    .allocate = allocate,
    .release = release,
    .holders = holders,
    .framework = as_framework.label,
    .glue = "torch::autograd::PySavedVariableHooks::\n"
            "torch::autograd::SavedVariable::\n"
            "c10::impl::",
    .pause = pause_thread,
    .resume = resume_thread,
};
