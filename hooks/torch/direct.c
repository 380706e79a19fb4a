// SPDX-License-Identifier: Apache-2.0
#include "direct.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "framework.h"

enum {
    WORDS = 24, // of a tensor that are searched: no version had fewer
    TYPES = 64, // of elements, by PyTorch's number
    NODES = 256, // types of nodes that are remembered
};

// A reference to a tensor in C++, which is what the functions take.
struct reference {
    const uint64_t *words;
};

static struct {
    long long (*version)(const void *tensor);
    bool (*is_leaf)(const void *tensor);
    bool (*is_view)(const void *tensor);
    long long (*output)(const void *tensor);
    void *const *(*node)(const void *tensor);
    bool (*requires_grad)(const void *words);
    int (*task)(void);
    int (*dimensions)(const void *tensor, int64_t *count);
    int (*sizes)(const void *tensor, int64_t **sizes);
    int (*strides)(const void *tensor, int64_t **strides);
    int (*offset)(const void *tensor, int64_t *offset);
    int (*type)(const void *tensor, int32_t *type);
    int (*bytes)(const void *tensor, int64_t *bytes);
    int (*data)(const void *tensor, void **data);
    int (*device)(const void *tensor, int32_t *device);
    int (*stream)(int32_t device, void **stream);
} torch;

static const struct {
    const char *library, *symbol;
    void *place;
} functions[] = {
    {"libtorch_cpu.so", "_ZNK2at10TensorBase8_versionEv", &torch.version},
    {"libtorch_cpu.so", "_ZNK2at10TensorBase7is_leafEv", &torch.is_leaf},
    {"libtorch_cpu.so", "_ZNK2at10TensorBase7is_viewEv", &torch.is_view},
    {"libtorch_cpu.so", "_ZNK2at10TensorBase9output_nrEv", &torch.output},
    {"libtorch_cpu.so", "_ZNK2at10TensorBase7grad_fnEv", &torch.node},
    {"libtorch_cpu.so", "_ZN5torch8autograd25get_current_graph_task_idEv", &torch.task},
    {"libtorch_cpu.so", "aoti_torch_get_dim", &torch.dimensions},
    {"libtorch_cpu.so", "aoti_torch_get_sizes", &torch.sizes},
    {"libtorch_cpu.so", "aoti_torch_get_strides", &torch.strides},
    {"libtorch_cpu.so", "aoti_torch_get_storage_offset", &torch.offset},
    {"libtorch_cpu.so", "aoti_torch_get_dtype", &torch.type},
    {"libtorch_cpu.so", "aoti_torch_get_storage_size", &torch.bytes},
    {"libtorch_cpu.so", "aoti_torch_get_data_ptr", &torch.data},
    {"libtorch_cpu.so", "aoti_torch_get_device_index", &torch.device},
    {"libtorch_cuda.so", "aoti_torch_get_current_cuda_stream", &torch.stream},
    {"libc10.so", "_ZNK3c1010TensorImpl13requires_gradEv", &torch.requires_grad},
};

static enum { OFF, UNPROVEN, PROVEN } state; // UNPROVEN: on the CPU alone
static size_t keys_at; // the word of a tensor that has its dispatch keys
static uint64_t plain_keys; // of a plain dense CUDA tensor, once PROVEN
static size_t item_bytes[TYPES]; // 0: not known yet
static struct {
    const void *table; // of a node's virtual functions
    PyObject *type;
} nodes[NODES];

// --- Where things are

static bool find_functions(void)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *library = dlopen(functions[i].library, RTLD_LAZY | RTLD_NOLOAD);
        void *found = library ? dlsym(library, functions[i].symbol) : NULL;
        if (library)
            dlclose(library); // it stays loaded
        if (!found)
            return false;
        memcpy(functions[i].place, &found, sizeof(found));
    }
    return true;
}

// Behind the head of the object, where newer versions of PyTorch have it.
static const struct reference *reference_of(PyObject *tensor)
{
    return (const struct reference *)((const char *)tensor + sizeof(PyObject));
}

static bool is_there(PyObject *tensor)
{
    bool failed = false;
    PyObject *data = PyObject_GetAttr(tensor, as_framework.name._cdata);
    const void *words = data ? PyLong_AsVoidPtr(data) : NULL;
    Py_XDECREF(data);
    failed = PyErr_Occurred();
    PyErr_Clear();
    return !failed && words && reference_of(tensor)->words == words;
}

static uint64_t keys_in_python(PyObject *tensor)
{
    PyObject *keys =
        PyObject_CallFunctionObjArgs(as_framework.dispatch_keys, tensor, NULL);
    PyObject *raw = keys ? PyObject_CallMethod(keys, "raw_repr", NULL) : NULL;
    const uint64_t value = raw ? PyLong_AsUnsignedLongLong(raw) : 0;
    Py_XDECREF(raw);
    Py_XDECREF(keys);
    PyErr_Clear();
    return value;
}

static bool find_keys(PyObject *kinds)
{
    unsigned fitting = 0;
    for (size_t at = 0; at < WORDS; at++) {
        bool fits = true;
        for (Py_ssize_t i = 0; fits && i < PyList_Size(kinds); i++) {
            PyObject *tensor = PyList_GetItem(kinds, i);
            fits = reference_of(tensor)->words[at] == keys_in_python(tensor);
        }
        if (fits)
            keys_at = at;
        fitting += fits;
    }
    return fitting == 1;
}

// --- Questions

static size_t item_bytes_of(PyObject *tensor, int32_t type)
{
    bool failed = false;
    if (type < 0 || type >= TYPES)
        return 0;
    if (!item_bytes[type])
        item_bytes[type] =
            (size_t)as_framework_number(tensor, as_framework.name.itemsize, &failed);
    return failed ? 0 : item_bytes[type];
}

static bool ask_storage(PyObject *tensor, struct as_direct *said)
{
    const struct reference *reference = reference_of(tensor);
    int64_t count, offset, bytes, *sizes, *strides;
    int32_t type;
    void *data;
    if (torch.dimensions(reference, &count) || torch.sizes(reference, &sizes) ||
        torch.strides(reference, &strides) || torch.offset(reference, &offset) ||
        torch.type(reference, &type) || torch.bytes(reference, &bytes))
        return false;
    const size_t item = item_bytes_of(tensor, type);
    if (!item || bytes <= 0)
        return false;
    size_t used = item;
    for (int64_t i = 0; i < count; i++) {
        if (sizes[i] <= 0)
            return false; // nothing in it: it does not tell its address
        if (strides[i] && __builtin_mul_overflow(used, (size_t)sizes[i], &used))
            used = (size_t)bytes;
    }
    if (torch.data(reference, &data) || !data)
        return false;
    said->address = (char *)data - (size_t)offset * item;
    said->bytes = (size_t)bytes;
    said->used_bytes = used < said->bytes ? used : said->bytes;
    return true;
}

static PyObject *type_in_python(PyObject *tensor)
{
    PyObject *node = PyObject_GetAttr(tensor, as_framework.name.grad_fn);
    PyObject *type = node && node != Py_None ? (PyObject *)Py_TYPE(node) : NULL;
    Py_XINCREF(type);
    Py_XDECREF(node);
    PyErr_Clear();
    return type;
}

// Nodes of C++ have a type in Python by their class; those of Python's functions share a
// class and have types of their own, which are made at run time. A view's node may be made
// anew when it is asked for, which may fail.
static PyObject *node_type(PyObject *tensor, bool view)
{
    if (view)
        return type_in_python(tensor);
    void *const node = *torch.node(reference_of(tensor));
    if (!node)
        return NULL;
    const void *table = *(const void *const *)node;
    const size_t slot = ((uintptr_t)table >> 3) % NODES;
    if (nodes[slot].table != table) {
        PyObject *type = type_in_python(tensor);
        if (!type || PyType_GetFlags((PyTypeObject *)type) & Py_TPFLAGS_HEAPTYPE)
            return type;
        nodes[slot].table = table;
        nodes[slot].type = type; // static: the reference costs nothing
    }
    Py_INCREF(nodes[slot].type);
    return nodes[slot].type;
}

static bool ask(PyObject *tensor, struct as_direct *said)
{
    const struct reference *reference = reference_of(tensor);
    *said = (struct as_direct){
        .version = torch.version(reference),
        .output = torch.output(reference),
        .leaf = torch.is_leaf(reference),
        .view = torch.is_view(reference),
        .requires_grad = torch.requires_grad(reference->words),
    };
    int32_t device;
    if (!ask_storage(tensor, said) || torch.device(reference, &device))
        return false;
    said->device = device;
    said->node = node_type(tensor, said->view);
    return true;
}

// --- Proof

static bool agrees_on_storage(PyObject *tensor, const struct as_direct *said)
{
    bool failed = false;
    PyObject *storage =
        PyObject_CallMethodObjArgs(tensor, as_framework.name.untyped_storage, NULL);
    const bool agrees =
        storage &&
        said->address ==
            as_framework_pointer(storage, as_framework.name.data_ptr, &failed) &&
        said->bytes ==
            (size_t)as_framework_call_number(storage, as_framework.name.nbytes, &failed);
    Py_XDECREF(storage);
    PyErr_Clear();
    return agrees && !failed;
}

static bool agrees(PyObject *tensor)
{
    struct as_direct said;
    bool failed = false;
    if (!ask(tensor, &said))
        return false;
    PyObject *type = type_in_python(tensor);
    PyObject *base = PyObject_GetAttr(tensor, as_framework.name._base);
    const bool same =
        said.node == type && base && said.view == (base != Py_None) &&
        said.version ==
            as_framework_number(tensor, as_framework.name._version, &failed) &&
        said.output ==
            as_framework_number(tensor, as_framework.name.output_nr, &failed) &&
        said.leaf == as_framework_true(tensor, as_framework.name.is_leaf, &failed) &&
        said.requires_grad ==
            as_framework_true(tensor, as_framework.name.requires_grad, &failed) &&
        agrees_on_storage(tensor, &said);
    Py_XDECREF(said.node);
    Py_XDECREF(base);
    Py_XDECREF(type);
    PyErr_Clear();
    return same && !failed;
}

void as_direct_bind(PyObject *kinds)
{
    bool sound =
        as_framework.dispatch_keys && kinds && PyList_Check(kinds) && find_functions();
    const Py_ssize_t count = sound ? PyList_Size(kinds) : 0;
    for (Py_ssize_t i = 0; sound && i < count; i++)
        sound = is_there(PyList_GetItem(kinds, i));
    sound = sound && count && find_keys(kinds);
    const uint64_t keys = sound ? keys_in_python(PyList_GetItem(kinds, 0)) : 0;
    for (Py_ssize_t i = 0; sound && i < count; i++) {
        PyObject *tensor = PyList_GetItem(kinds, i);
        sound = keys_in_python(tensor) != keys || agrees(tensor);
    }
    state = sound && torch.task() == -1 ? UNPROVEN : OFF;
}

static bool is_plain_cuda(PyObject *tensor)
{
    bool failed = false;
    PyObject *layout = PyObject_GetAttr(tensor, as_framework.name.layout);
    const bool strided = layout == as_framework.strided;
    Py_XDECREF(layout);
    PyErr_Clear();
    return strided && as_framework_true(tensor, as_framework.name.is_cuda, &failed) &&
           !as_framework_true(tensor, as_framework.name.is_nested, &failed) &&
           !as_framework_true(tensor, as_framework.name.is_quantized, &failed) &&
           !as_framework_call_true(tensor, as_framework.name.is_conj, &failed) &&
           !as_framework_call_true(tensor, as_framework.name.is_neg, &failed) && !failed;
}

// With the first plain CUDA tensor.
static void prove(PyObject *tensor)
{
    bool failed = false;
    void *stream;
    const int device =
        (int)as_framework_call_number(tensor, as_framework.name.get_device, &failed);
    const uint64_t keys = reference_of(tensor)->words[keys_at];
    struct as_direct said = {0};
    const bool sound = !failed && keys && keys == keys_in_python(tensor) &&
                       agrees(tensor) && ask(tensor, &said) && said.device == device &&
                       !torch.stream(device, &stream) &&
                       stream == as_framework_stream(device, &failed) && !failed;
    Py_XDECREF(said.node);
    plain_keys = keys;
    state = sound ? PROVEN : OFF;
}

bool as_direct_ask(PyObject *tensor, struct as_direct *said)
{
    PyObject *const type = (PyObject *)Py_TYPE(tensor);
    if (state == OFF || (type != as_framework.tensor && type != as_framework.parameter))
        return false;
    if (state == UNPROVEN && is_plain_cuda(tensor))
        prove(tensor);
    if (state != PROVEN || reference_of(tensor)->words[keys_at] != plain_keys ||
        !ask(tensor, said))
        return false;
    if (!torch.stream(said->device, &said->stream))
        return true;
    Py_CLEAR(said->node);
    return false;
}

bool as_direct_stop(void)
{
    const bool was = state == PROVEN;
    state = OFF;
    return was;
}

bool as_direct_in_backward(void)
{
    return torch.task() != -1;
}
