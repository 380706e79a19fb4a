// SPDX-License-Identifier: Apache-2.0
#include "handle.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "direct.h"
#include "framework.h"
#include "library.h"
#include "stack.h"
#include "verbs.h"
#include "view.h"

struct handle {
    PyObject base;
    struct actswap_page *page; // NULL: `tensor` is the saved tensor, or an alias of it
    PyObject *tensor; // follows the version; beside a page it owns no memory
    struct as_view view; // of a page
    int device;
    const void *address; // without a page, of what the library was asked about; or NULL
    bool is_itself; // `tensor` is the very object that was saved

    long long version; // -1: not known
    long long output; // of `node`
    PyObject *node; // the type of grad_fn: the node itself would be a cycle
};

static const char in_backward[] = "tensors saved while a backward ran";

static const struct as_library *library;
static PyObject *handle_type;
static __thread PyObject *record; // a list, or NULL

static void destroy(PyObject *self)
{
    struct handle *handle = (struct handle *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (handle->page)
        library->drop(handle->page);
    Py_CLEAR(handle->tensor);
    Py_CLEAR(handle->node);
    as_view_finish(&handle->view);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

int as_handle_bind(const struct as_library *bound)
{
    static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)destroy}, {0, NULL}};
    static PyType_Spec spec = {
        .name = "actswap_torch._pack.Handle",
        .basicsize = sizeof(struct handle),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };
    library = bound;
    handle_type = PyType_FromSpec(&spec);
    return handle_type ? 0 : -1;
}

static struct handle *create(void)
{
    PyTypeObject *type = (PyTypeObject *)handle_type;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return (struct handle *)allocate(type, 0);
}

int as_handle_attach(void)
{
    static int attached; // 1, or the last answer
    if (attached != 1 && (attached == 0 || attached == -ENODEV)) {
        const int error = library->attach(&as_verbs, NULL);
        attached = error ? error : 1;
    }
    return attached == 1;
}

static void note_version(struct handle *handle, PyObject *tensor)
{
    bool failed = false;
    const long long version =
        as_framework_number(tensor, as_framework.name._version, &failed);
    handle->version = failed ? -1 : version;

    PyObject *node = PyObject_GetAttr(tensor, as_framework.name.grad_fn);
    if (node && node != Py_None) {
        handle->node = (PyObject *)Py_TYPE(node);
        Py_INCREF(handle->node);
        handle->output =
            as_framework_number(tensor, as_framework.name.output_nr, &failed);
    }
    Py_XDECREF(node);
    PyErr_Clear();
}

// A parameter is kept as the object that it is: its class and attributes are read by
// backwards of users. Being a leaf it makes no cycle with the graph.
static bool is_itself(PyObject *tensor)
{
    bool failed = false;
    if (!as_framework_true(tensor, as_framework.name.is_leaf, &failed) || failed)
        return false;
    return (PyObject *)Py_TYPE(tensor) != as_framework.tensor ||
           as_framework_true(tensor, as_framework.name.requires_grad, &failed);
}

// The same for what answered in C.
static bool is_itself_by(const struct as_direct *said, PyObject *tensor)
{
    return said->leaf &&
           ((PyObject *)Py_TYPE(tensor) != as_framework.tensor || said->requires_grad);
}

static bool is_on_device(PyObject *tensor)
{
    bool failed = false;
    return as_framework_true(tensor, as_framework.name.is_cuda, &failed) && !failed;
}

// Wrappers of function transforms pass here and fail when asked for their storage.
static bool is_plain(PyObject *tensor)
{
    bool failed = false;
    PyObject *type = (PyObject *)Py_TYPE(tensor);
    if (type != as_framework.tensor && type != as_framework.parameter)
        return false;

    PyObject *layout = PyObject_GetAttr(tensor, as_framework.name.layout);
    const bool strided = layout == as_framework.strided;
    Py_XDECREF(layout);
    PyErr_Clear();
    return strided && !as_framework_true(tensor, as_framework.name.is_nested, &failed) &&
           !as_framework_true(tensor, as_framework.name.is_quantized, &failed) && !failed;
}

// Why the library is not asked about a tensor on the device, or NULL.
static const char *find_obstacle(const struct handle *handle, PyObject *tensor)
{
    if (!is_plain(tensor))
        return "saved tensors that are no plain strided ones";
    if (handle->version < 0)
        return "saved tensors without a version";
    if (as_framework_in_backward())
        return in_backward;
    return NULL;
}

// Views of a parameter are one, also where it lies in a flat buffer; other results of
// differentiable work are activations. Of the rest, its age tells.
static enum actswap_category role_of(const struct handle *handle, PyObject *tensor)
{
    if (!handle->node)
        return ACTSWAP_UNKNOWN;
    PyObject *base = PyObject_GetAttr(tensor, as_framework.name._base);
    const bool of_parameter = base && (PyObject *)Py_TYPE(base) == as_framework.parameter;

    Py_XDECREF(base);
    PyErr_Clear();
    return of_parameter ? ACTSWAP_PARAMETER : ACTSWAP_ACTIVATION;
}

// What the library is not asked about, such as what a block that is run again saves.
static void name_in_place(PyObject *tensor)
{
    bool failed = false;
    const int device =
        (int)as_framework_call_number(tensor, as_framework.name.get_device, &failed);
    const void *address =
        as_framework_pointer(tensor, as_framework.name.data_ptr, &failed);

    if (!failed && address)
        library->tag(device, address, ACTSWAP_ACTIVATION);
}

// Fills in what the library is told, which holds a new reference to the storage.
static bool describe(PyObject *tensor, const struct as_view *view,
                     struct actswap_saved *saved)
{
    bool failed = false;
    PyObject *storage =
        PyObject_CallMethodObjArgs(tensor, as_framework.name.untyped_storage, NULL);
    if (!storage) {
        PyErr_Clear();
        return false;
    }
    const size_t item =
        (size_t)as_framework_number(tensor, as_framework.name.itemsize, &failed);
    *saved = (struct actswap_saved){
        .size = sizeof(*saved),
        .device =
            (int)as_framework_call_number(tensor, as_framework.name.get_device, &failed),
        .address = as_framework_pointer(storage, as_framework.name.data_ptr, &failed),
        .bytes =
            (size_t)as_framework_call_number(storage, as_framework.name.nbytes, &failed),
        .ref = storage,
    };
    saved->used_bytes = as_view_used_bytes(view, item, saved->bytes);
    saved->stream = as_framework_stream(saved->device, &failed);
    if (failed)
        Py_DECREF(storage);
    return !failed;
}

// Offers the tensor to the library; true when it has it now.
static bool hand_over(struct handle *handle, PyObject *tensor)
{
    struct actswap_saved saved;
    if (!is_on_device(tensor) || !as_handle_attach())
        return false;
    const char *obstacle = find_obstacle(handle, tensor);
    if (obstacle) {
        library->note(obstacle);
        name_in_place(tensor);
    }
    if (obstacle || !as_view_take(&handle->view, tensor))
        return false;
    if (!describe(tensor, &handle->view, &saved)) {
        as_view_finish(&handle->view);
        return false;
    }

    saved.version = (uint64_t)handle->version;
    saved.category = role_of(handle, tensor);
    saved.stack = as_stack_now();
    if (library->save(&saved, &handle->page) == 0) {
        handle->device = saved.device;
        return true;
    }
    handle->page = NULL;
    handle->device = saved.device;
    handle->address = saved.address;
    Py_DECREF((PyObject *)saved.ref);
    as_view_finish(&handle->view);
    return false;
}

// Fills in what the library is told, which holds a new reference to the storage.
static bool describe_by(const struct as_direct *said, PyObject *tensor,
                        struct actswap_saved *saved)
{
    *saved = (struct actswap_saved){
        .size = sizeof(*saved),
        .device = said->device,
        .address = said->address,
        .bytes = said->bytes,
        .used_bytes = said->used_bytes,
        .stream = said->stream,
        .version = (uint64_t)said->version,
        .ref =
            PyObject_CallMethodObjArgs(tensor, as_framework.name.untyped_storage, NULL),
    };
    PyErr_Clear();
    return saved->ref;
}

// The same as hand_over() for what answered in C: a tensor that stays is asked nothing
// more.
static bool hand_over_by(struct handle *handle, const struct as_direct *said,
                         PyObject *tensor)
{
    struct actswap_saved saved;
    if (!as_handle_attach())
        return false;
    if (as_direct_in_backward()) {
        library->note(in_backward);
        library->tag(said->device, said->address, ACTSWAP_ACTIVATION);
        return false;
    }
    if (!describe_by(said, tensor, &saved))
        return false;
    saved.category = said->view     ? role_of(handle, tensor)
                     : handle->node ? ACTSWAP_ACTIVATION
                                    : ACTSWAP_UNKNOWN;
    saved.stack = as_stack_now();
    handle->device = saved.device;
    if (library->save(&saved, &handle->page)) {
        handle->page = NULL;
        handle->address = saved.address;
        Py_DECREF((PyObject *)saved.ref);
        return false;
    }
    if (as_view_take(&handle->view, tensor))
        return true;
    library->drop(handle->page); // what goes back on the device is the alias
    handle->page = NULL;
    return false;
}

// An alias whose data is nothing keeps the version counter alive and no memory.
static void follow_only(struct handle *handle)
{
    if (PyObject_SetAttr(handle->tensor, as_framework.name.data, as_framework.nothing)) {
        PyErr_Clear();
        Py_CLEAR(handle->tensor);
        handle->version = -1;
    }
}

PyObject *as_handle_pack(PyObject *tensor)
{
    struct as_direct said;
    struct handle *handle = create();
    if (!handle)
        return NULL;

    const bool direct = as_direct_ask(tensor, &said);
    if (direct) {
        handle->version = said.version;
        handle->output = said.output;
        handle->node = said.node;
        handle->is_itself = is_itself_by(&said, tensor);
    } else {
        note_version(handle, tensor);
        handle->is_itself = is_itself(tensor);
    }
    if (handle->is_itself) {
        Py_INCREF(tensor);
        handle->tensor = tensor;
        return (PyObject *)handle;
    }
    handle->tensor = PyObject_CallMethodObjArgs(tensor, as_framework.name.detach, NULL);
    if (!handle->tensor) {
        PyErr_Clear(); // a strange subclass: the tensor itself, at the price of a cycle
        Py_INCREF(tensor);
        handle->tensor = tensor;
        return (PyObject *)handle;
    }
    if (direct ? hand_over_by(handle, &said, tensor) : hand_over(handle, tensor))
        follow_only(handle);
    return (PyObject *)handle;
}

// Raises what PyTorch would have raised.
static int check_version(const struct handle *handle)
{
    bool failed = false;
    if (handle->version < 0)
        return 0;
    const long long now =
        as_framework_number(handle->tensor, as_framework.name._version, &failed);
    if (failed || now == handle->version)
        return 0;

    PyObject *node = handle->node ? handle->node : Py_None;
    PyObject *text = handle->page
                         ? PyObject_CallMethod(as_framework.helpers, "modified",
                                               "OOOLLOL", handle->view.dtype,
                                               handle->view.device, handle->view.shape,
                                               now, handle->version, node, handle->output)
                         : PyObject_CallMethod(as_framework.helpers, "modified_tensor",
                                               "OLLOL", handle->tensor, now,
                                               handle->version, node, handle->output);
    if (text)
        PyErr_SetObject(PyExc_RuntimeError, text);
    Py_XDECREF(text);
    return -1;
}

static PyObject *build_back(const struct handle *handle)
{
    bool failed = false;
    struct actswap_resident resident = {.size = sizeof(resident)};
    void *stream = as_framework_stream(handle->device, &failed);
    const int error = library->need(handle->page, stream, &resident);
    if (error) {
        if (!as_verbs_raise())
            PyErr_Format(PyExc_RuntimeError,
                         "actswap: cannot bring a saved tensor back: %s",
                         strerror(-error));
        return NULL;
    }

    PyObject *storage = resident.ref;
    Py_INCREF(storage);
    PyObject *tensor = as_view_build(&handle->view, storage);
    Py_DECREF(storage);
    return tensor;
}

// Others run while a disk is read, and may drop it.
static PyObject *bring_back(const struct handle *handle)
{
    Py_INCREF((PyObject *)handle);
    PyObject *tensor = build_back(handle);
    Py_DECREF((PyObject *)handle);
    return tensor;
}

PyObject *as_handle_record(PyObject *list)
{
    PyObject *before = record;
    record = list;
    return before;
}

void as_handle_opened(PyObject *tensor)
{
    if (record && PyList_Append(record, tensor))
        PyErr_Clear();
}

PyObject *as_handle_unpack(PyObject *object)
{
    const struct handle *handle = (const struct handle *)object;
    if ((PyObject *)Py_TYPE(object) != handle_type) {
        PyErr_SetString(PyExc_TypeError, "actswap: this is no saved tensor of ours");
        return NULL;
    }
    as_handle_opened(handle->is_itself ? handle->tensor : Py_None);
    if (check_version(handle))
        return NULL;
    if (handle->page)
        return bring_back(handle);
    if (handle->address)
        library->used(handle->device, handle->address);
    Py_INCREF(handle->tensor);
    return handle->tensor;
}
