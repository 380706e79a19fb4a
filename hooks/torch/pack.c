// SPDX-License-Identifier: Apache-2.0

// The extension module actswap_torch._pack: the library's interface for the Python side
// of the adapter, and the two functions that autograd calls for each saved tensor.
// Nothing is decided here.

#include <Python.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "direct.h"
#include "framework.h"
#include "handle.h"
#include "library.h"
#include "number.h"
#include "stack.h"

static struct as_library library;

// bind(torch, helpers) -> None; raises RuntimeError.
static PyObject *module_bind(PyObject *module, PyObject *arguments)
{
    PyObject *torch, *helpers;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO:bind", &torch, &helpers))
        return NULL;

    const int error = as_library_bind(&library);
    if (error == -EPROTO)
        return PyErr_Format(PyExc_RuntimeError,
                            "the loaded library speaks interface %d, this adapter %d",
                            library.abi_version(), ACTSWAP_ABI_VERSION);
    if (error)
        return PyErr_Format(PyExc_RuntimeError, "no actswap library is preloaded");
    if (as_framework_bind(torch, helpers) || as_handle_bind(&library))
        return NULL;
    as_stack_bind(&library, torch, helpers);
    PyObject *kinds = PyObject_CallMethod(helpers, "kinds", NULL);
    as_direct_bind(kinds);
    Py_XDECREF(kinds);
    PyErr_Clear();
    if (!as_number_bind())
        library.note("autograd's count of nodes was not found: a backward through "
                     "recomputed blocks may round otherwise");
    Py_RETURN_NONE;
}

static PyObject *module_detach(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    library.detach();
    Py_RETURN_NONE;
}

static PyObject *module_unpack(PyObject *module, PyObject *handle)
{
    (void)module;
    return as_handle_unpack(handle);
}

// record(list or None) -> what was recorded to before.
static PyObject *module_record(PyObject *module, PyObject *list)
{
    (void)module;
    if (list != Py_None && !PyList_Check(list))
        return PyErr_Format(PyExc_TypeError, "record() takes a list or None");
    if (list == Py_None)
        list = NULL;
    Py_XINCREF(list);
    PyObject *before = as_handle_record(list);
    if (before)
        return before;
    Py_RETURN_NONE;
}

// opened(tensor or None) -> None: handed back a tensor of a block that was run again.
static PyObject *module_opened(PyObject *module, PyObject *tensor)
{
    (void)module;
    as_handle_opened(tensor);
    Py_RETURN_NONE;
}

// block(edge, number, device) -> verdict, keep when the library says an error.
static PyObject *module_block(PyObject *module, PyObject *arguments)
{
    int edge, device;
    unsigned long long number;
    bool failed = false;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "iKi:block", &edge, &number, &device))
        return NULL;

    int verdict = ACTSWAP_KEEP;
    void *stream = as_framework_stream(device, &failed);
    if (!failed && as_handle_attach())
        verdict = library.block((enum actswap_edge)edge, number, stream);
    return PyLong_FromLong(verdict < 0 ? ACTSWAP_KEEP : verdict);
}

// tried(number, faults, repairs, saved bytes, boundary bytes, values) -> None
static PyObject *module_tried(PyObject *module, PyObject *arguments)
{
    unsigned long long number, saved, boundary;
    unsigned faults, repairs;
    int values;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KIIKKp:tried", &number, &faults, &repairs, &saved,
                          &boundary, &values))
        return NULL;
    const struct actswap_trial trial = {
        .size = sizeof(trial),
        .faults = faults,
        .repairs = repairs,
        .saved_bytes = saved,
        .boundary_bytes = boundary,
        .values = values,
    };
    library.tried(number, &trial);
    Py_RETURN_NONE;
}

// skipped(number, fault) -> None
static PyObject *module_skipped(PyObject *module, PyObject *arguments)
{
    unsigned long long number;
    int fault;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Ki:skipped", &number, &fault))
        return NULL;
    library.skipped(number, (enum actswap_fault)fault);
    Py_RETURN_NONE;
}

// renewed(number) -> None
static PyObject *module_renewed(PyObject *module, PyObject *number)
{
    const unsigned long long block = PyLong_AsUnsignedLongLong(number);
    (void)module;
    if (PyErr_Occurred())
        return NULL;
    library.renewed(block);
    Py_RETURN_NONE;
}

// in_python() -> whether tensors were asked in C, which is over.
static PyObject *module_in_python(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(as_direct_stop());
}

static PyObject *module_values(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(library.values());
}

static PyObject *cross(enum actswap_edge edge, PyObject *number)
{
    const unsigned long long part = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred())
        return NULL;
    library.part(edge, part);
    Py_RETURN_NONE;
}

// enter(number) and leave(number) -> None
static PyObject *module_enter(PyObject *module, PyObject *number)
{
    (void)module;
    return cross(ACTSWAP_ENTER, number);
}

static PyObject *module_leave(PyObject *module, PyObject *number)
{
    (void)module;
    return cross(ACTSWAP_EXIT, number);
}

// block_name(number, name) -> None
static PyObject *module_block_name(PyObject *module, PyObject *arguments)
{
    unsigned long long number;
    const char *name;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Ks:block_name", &number, &name))
        return NULL;
    library.block_name(number, name);
    Py_RETURN_NONE;
}

static PyObject *module_mark(PyObject *module, PyObject *moment)
{
    const long value = PyLong_AsLong(moment);
    (void)module;
    if (value == -1 && PyErr_Occurred())
        return NULL;
    if (as_handle_attach())
        library.mark((enum actswap_moment)value);
    Py_RETURN_NONE;
}

static PyObject *module_enough(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(as_handle_attach() && library.enough());
}

// True, with device and address, for a CUDA tensor that has a storage of its own kind.
static bool locate(PyObject *tensor, int *device, void **address)
{
    bool failed = false;
    if (!as_framework_true(tensor, as_framework.name.is_cuda, &failed) || failed)
        return false;
    *device =
        (int)as_framework_call_number(tensor, as_framework.name.get_device, &failed);
    *address = as_framework_pointer(tensor, as_framework.name.data_ptr, &failed);
    return !failed && *address;
}

typedef int name_fn(int device, const void *address, enum actswap_category category);

// Sparse tensors and wrappers of others have no memory of their own, but parts that do. The
// indices of a sparse gradient are the input's.
static bool name_parts(PyObject *tensor, name_fn *name, enum actswap_category category)
{
    bool named = false;
    int device;
    void *address;
    PyObject *parts = PyObject_CallMethod(as_framework.helpers, "parts", "O", tensor);

    if (category == ACTSWAP_GRADIENT)
        name = library.suggest;

    for (Py_ssize_t i = 0; parts && i < PyList_Size(parts); i++)
        if (locate(PyList_GetItem(parts, i), &device, &address))
            named |= name(device, address, category) == 0;
    Py_XDECREF(parts);
    PyErr_Clear();
    return named;
}

static bool name_tensor(PyObject *tensor, name_fn *name, enum actswap_category category)
{
    bool failed = false;
    int device;
    void *address;
    if (!as_framework_true(tensor, as_framework.name.is_cuda, &failed) || failed)
        return false;
    if (locate(tensor, &device, &address))
        return name(device, address, category) == 0;
    return name_parts(tensor, name, category);
}

static int say_held(int device, const void *address, enum actswap_category category)
{
    (void)category;
    return library.held(device, address);
}

static PyObject *name_list(PyObject *arguments, const char *format, name_fn *name)
{
    PyObject *list;
    int category = ACTSWAP_UNKNOWN;
    if (!PyArg_ParseTuple(arguments, format, &PyList_Type, &list, &category))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++)
        name_tensor(PyList_GetItem(list, i), name, (enum actswap_category)category);
    Py_RETURN_NONE;
}

// tag(tensors, category), suggest(tensors, category), held(tensors): lists of tensors.
static PyObject *module_tag(PyObject *module, PyObject *arguments)
{
    (void)module;
    return name_list(arguments, "O!i:tag", library.tag);
}

static PyObject *module_suggest(PyObject *module, PyObject *arguments)
{
    (void)module;
    return name_list(arguments, "O!i:suggest", library.suggest);
}

static PyObject *module_held(PyObject *module, PyObject *arguments)
{
    (void)module;
    return name_list(arguments, "O!:held", say_held);
}

static PyObject *module_looked(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    library.looked();
    Py_RETURN_NONE;
}

// expect(category, bytes) -> None
static PyObject *module_expect(PyObject *module, PyObject *arguments)
{
    int category;
    unsigned long long bytes;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "iK:expect", &category, &bytes))
        return NULL;
    library.expect((enum actswap_category)category, bytes);
    Py_RETURN_NONE;
}

// unnamed(moment) -> bytes made after it that have no name.
static PyObject *module_unnamed(PyObject *module, PyObject *moment)
{
    const long value = PyLong_AsLong(moment);
    (void)module;
    if (value == -1 && PyErr_Occurred())
        return NULL;
    return PyLong_FromUnsignedLongLong(library.unnamed((enum actswap_moment)value));
}

// see_gradient(parameter) -> None: its gradient has been accumulated. Never raises.
static PyObject *module_see_gradient(PyObject *module, PyObject *parameter)
{
    PyObject *gradient = PyObject_GetAttr(parameter, as_framework.name.grad);
    (void)module;
    if (gradient && gradient != Py_None)
        name_tensor(gradient, library.tag, ACTSWAP_GRADIENT);
    Py_XDECREF(gradient);
    PyErr_Clear();
    Py_RETURN_NONE;
}

typedef int bits_fn(int device, const void *address, size_t bytes, void *stream);

static PyObject *pass_bits(PyObject *tensor, bits_fn *pass)
{
    bool failed = false;
    int device;
    void *address;
    if (!locate(tensor, &device, &address))
        Py_RETURN_FALSE;

    const size_t bytes =
        (size_t)as_framework_number(tensor, as_framework.name.nbytes, &failed);
    void *stream = as_framework_stream(device, &failed);
    if (failed)
        Py_RETURN_FALSE;
    return PyBool_FromLong(pass(device, address, bytes, stream) == 0);
}

// root(loss) and gradient(grad) -> bool: dense tensors, whose bits are taken.
static PyObject *module_root(PyObject *module, PyObject *tensor)
{
    (void)module;
    return pass_bits(tensor, library.root);
}

static PyObject *module_gradient(PyObject *module, PyObject *tensor)
{
    (void)module;
    return pass_bits(tensor, library.gradient);
}

// number() -> of the next node; put_back(number) -> None
static PyObject *module_number(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(as_number_next());
}

static PyObject *module_put_back(PyObject *module, PyObject *number)
{
    const unsigned long long value = PyLong_AsUnsignedLongLong(number);
    (void)module;
    if (PyErr_Occurred())
        return NULL;
    as_number_put_back(value);
    Py_RETURN_NONE;
}

// note(text) -> None. The text is kept for ever: pass constants.
static PyObject *module_note(PyObject *module, PyObject *text)
{
    (void)module;
    PyObject *bytes = PyUnicode_AsUTF8String(text);
    if (!bytes)
        return NULL;
    library.note(PyBytes_AsString(bytes));
    Py_RETURN_NONE;
}

// stats() -> dict of struct actswap_stats.
static PyObject *module_stats(PyObject *module, PyObject *unused)
{
    PyObject *categories = PyDict_New();
    struct actswap_stats stats = {.size = sizeof(stats)};
    (void)module;
    (void)unused;
    library.stats(&stats);
    for (int i = 0; categories && i < ACTSWAP_CATEGORIES; i++) {
        PyObject *bytes = PyLong_FromUnsignedLongLong(stats.live_by_category[i]);
        const char *name = library.category_name((enum actswap_category)i);

        if (!bytes || PyDict_SetItemString(categories, name, bytes))
            PyErr_Clear();
        Py_XDECREF(bytes);
    }
    return Py_BuildValue(
        "{s:N,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "live_by_category", categories,
        "live_bytes", (unsigned long long)stats.live_bytes, "peak_bytes",
        (unsigned long long)stats.peak_bytes, "reserved_bytes",
        (unsigned long long)stats.reserved_bytes, "after_forward_bytes",
        (unsigned long long)stats.after_forward_bytes, "out_bytes",
        (unsigned long long)stats.out_bytes, "in_bytes",
        (unsigned long long)stats.in_bytes, "released_bytes",
        (unsigned long long)stats.released_bytes, "pinned_bytes",
        (unsigned long long)stats.pinned_bytes, "steps", (unsigned long long)stats.steps,
        "pages", (unsigned long long)stats.pages);
}

static PyObject *call_pack(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    PyObject *tensor;
    (void)self;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "O:pack", &tensor))
        return NULL;
    return as_handle_pack(tensor);
}

// An object and not a function: PyTorch's checkpoint reads attributes of a pack hook to
// tell its own from a user's, of which it warns.
static PyObject *create_pack(void)
{
    static PyType_Slot slots[] = {{Py_tp_call, (void *)call_pack}, {0, NULL}};
    static PyType_Spec spec = {
        .name = "actswap_torch._pack.Pack",
        .basicsize = sizeof(PyObject),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };
    PyObject *type = PyType_FromSpec(&spec);
    if (!type || PyObject_SetAttrString(type, "_checkpoint_internal", Py_True) ||
        PyObject_SetAttrString(type, "_user_hooks", Py_None))
        return NULL;
    PyObject *pack = PyObject_CallObject(type, NULL);
    Py_DECREF(type);
    return pack;
}

static PyMethodDef methods[] = {
    {"bind", module_bind, METH_VARARGS, NULL},
    {"detach", module_detach, METH_NOARGS, NULL},
    {"unpack", module_unpack, METH_O, NULL},
    {"record", module_record, METH_O, NULL},
    {"opened", module_opened, METH_O, NULL},
    {"block", module_block, METH_VARARGS, NULL},
    {"tried", module_tried, METH_VARARGS, NULL},
    {"skipped", module_skipped, METH_VARARGS, NULL},
    {"renewed", module_renewed, METH_O, NULL},
    {"in_python", module_in_python, METH_NOARGS, NULL},
    {"values", module_values, METH_NOARGS, NULL},
    {"enter", module_enter, METH_O, NULL},
    {"leave", module_leave, METH_O, NULL},
    {"block_name", module_block_name, METH_VARARGS, NULL},
    {"mark", module_mark, METH_O, NULL},
    {"enough", module_enough, METH_NOARGS, NULL},
    {"tag", module_tag, METH_VARARGS, NULL},
    {"suggest", module_suggest, METH_VARARGS, NULL},
    {"held", module_held, METH_VARARGS, NULL},
    {"looked", module_looked, METH_NOARGS, NULL},
    {"expect", module_expect, METH_VARARGS, NULL},
    {"unnamed", module_unnamed, METH_O, NULL},
    {"see_gradient", module_see_gradient, METH_O, NULL},
    {"root", module_root, METH_O, NULL},
    {"gradient", module_gradient, METH_O, NULL},
    {"number", module_number, METH_NOARGS, NULL},
    {"put_back", module_put_back, METH_O, NULL},
    {"note", module_note, METH_O, NULL},
    {"stats", module_stats, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static const struct {
    const char *name;
    long value;
} constants[] = {
    {"ENTER", ACTSWAP_ENTER},
    {"EXIT", ACTSWAP_EXIT},
    {"KEEP", ACTSWAP_KEEP},
    {"OFFLOAD", ACTSWAP_OFFLOAD},
    {"RECOMPUTE", ACTSWAP_RECOMPUTE},
    {"RECOMPUTE_ON", ACTSWAP_RECOMPUTE_ON},
    {"TRIAL", ACTSWAP_TRIAL},
    {"FAULT_ERROR", ACTSWAP_FAULT_ERROR},
    {"FAULT_COUNT", ACTSWAP_FAULT_COUNT},
    {"FAULT_KIND", ACTSWAP_FAULT_KIND},
    {"FAULT_VALUES", ACTSWAP_FAULT_VALUES},
    {"FAULT_RANDOM", ACTSWAP_FAULT_RANDOM},
    {"FAULT_STATE", ACTSWAP_FAULT_STATE},
    {"FAULT_INPUT", ACTSWAP_FAULT_INPUT},
    {"FAULT_PARAMETER", ACTSWAP_FAULT_PARAMETER},
    {"FAULT_BUFFER", ACTSWAP_FAULT_BUFFER},
    {"FAULT_CHECKPOINT", ACTSWAP_FAULT_CHECKPOINT},
    {"FAULT_HOOKS", ACTSWAP_FAULT_HOOKS},
    {"FAULT_SAVES", ACTSWAP_FAULT_SAVES},
    {"FAULT_FORWARD", ACTSWAP_FAULT_FORWARD},
    {"FAULT_CAPTURE", ACTSWAP_FAULT_CAPTURE},
    {"FAULT_SAMPLE", ACTSWAP_FAULT_SAMPLE},
    {"REPAIR_RANDOM", ACTSWAP_REPAIR_RANDOM},
    {"REPAIR_STATE", ACTSWAP_REPAIR_STATE},
    {"REPAIR_BUFFERS", ACTSWAP_REPAIR_BUFFERS},
    {"FORWARD", ACTSWAP_FORWARD},
    {"BACKWARD", ACTSWAP_BACKWARD},
    {"BACKWARD_END", ACTSWAP_BACKWARD_END},
    {"OPTIMIZER", ACTSWAP_OPTIMIZER},
    {"STEP", ACTSWAP_STEP},
    {"AGAIN", ACTSWAP_AGAIN},
    {"AGAIN_END", ACTSWAP_AGAIN_END},
    {"PARAMETER", ACTSWAP_PARAMETER},
    {"GRADIENT", ACTSWAP_GRADIENT},
    {"OPTIMIZER_STATE", ACTSWAP_OPTIMIZER_STATE},
    {"INPUT", ACTSWAP_INPUT},
};

PyMODINIT_FUNC PyInit__pack(void);

PyMODINIT_FUNC PyInit__pack(void)
{
    static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT,
        .m_name = "actswap_torch._pack",
        .m_size = -1,
        .m_methods = methods,
    };
    PyObject *module = PyModule_Create(&definition);
    PyObject *pack = module ? create_pack() : NULL;
    if (!pack || PyModule_AddObject(module, "pack", pack))
        return NULL;
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value))
            return NULL;
    return module;
}
