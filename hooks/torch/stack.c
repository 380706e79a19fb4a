// SPDX-License-Identifier: Apache-2.0
#include "stack.h"

#include <Python.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

enum { FRAMES = 48, SHOWN = 12, SLOTS = 16384, KEPT_MOST = SLOTS / 2 };

// Public in CPython since 3.9 and 3.11, but not of its stable interface: looked up, so
// that one build serves all. Without them there are no stacks.
static PyFrameObject *(*frame_back)(PyFrameObject *frame);
static int (*frame_lasti)(PyFrameObject *frame);

static const struct as_library *library;
static bool wanted;
static char inside[2][4096]; // folders

// Code objects in here are kept: an address that came back would be another one's.
static struct slot {
    uint64_t key; // of a stack, 0: free
    uint32_t stack;
} slots[SLOTS];
static unsigned kept;

// One stack, the innermost frame first.
struct walk {
    PyCodeObject *codes[FRAMES];
    int lines[FRAMES];
    unsigned count;
    uint64_t key;
};

static bool copy_text(PyObject *object, const char *attribute, char *text, size_t bytes)
{
    PyObject *value = PyObject_GetAttrString(object, attribute);
    PyObject *encoded = value ? PyUnicode_AsUTF8String(value) : NULL;
    const char *chars = encoded ? PyBytes_AsString(encoded) : NULL;

    if (chars)
        snprintf(text, bytes, "%s", chars);
    Py_XDECREF(encoded);
    Py_XDECREF(value);
    PyErr_Clear();
    return chars;
}

// The folder of a module, with the slash; "" when it has none.
static void take_folder(PyObject *module, char *folder, size_t bytes)
{
    char *slash =
        copy_text(module, "__file__", folder, bytes) ? strrchr(folder, '/') : NULL;

    folder[slash ? slash + 1 - folder : 0] = '\0';
}

void as_stack_bind(const struct as_library *bound, PyObject *torch, PyObject *ours)
{
    const char *setting = getenv("ACTSWAP_STACKS"); // NOLINT(concurrency-mt-unsafe)

    library = bound;
    take_folder(torch, inside[0], sizeof(inside[0]));
    take_folder(ours, inside[1], sizeof(inside[1]));
    wanted = !setting || (strcmp(setting, "none") != 0 && strcmp(setting, "native") != 0);
    *(void **)&frame_back = dlsym(RTLD_DEFAULT, "PyFrame_GetBack");
    *(void **)&frame_lasti = dlsym(RTLD_DEFAULT, "PyFrame_GetLasti");
}

static uint64_t mix(uint64_t key, uint64_t value)
{
    key = (key ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return key ^ (key >> 29);
}

// Where in its code a frame is: the instruction, as a line costs more to find out.
static int position(PyFrameObject *frame)
{
    return frame_lasti ? frame_lasti(frame) : PyFrame_GetLineNumber(frame);
}

// The key of the running stack; with `walk`, also what to show of it.
static uint64_t look(struct walk *walk)
{
    PyFrameObject *frame = PyEval_GetFrame();
    uint64_t key = 1;

    Py_XINCREF((PyObject *)frame);
    for (unsigned i = 0; frame && i < FRAMES; i++) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyFrameObject *back = frame_back(frame);

        key = mix(mix(key, (uintptr_t)code), (uint64_t)position(frame));
        if (walk) {
            walk->codes[i] = code; // the reference as well, for good
            walk->lines[i] = PyFrame_GetLineNumber(frame);
            walk->count = i + 1;
        } else {
            Py_DECREF((PyObject *)code);
        }
        Py_DECREF((PyObject *)frame);
        frame = back;
    }
    Py_XDECREF((PyObject *)frame);
    return key ? key : 1;
}

static bool is_inside(const char *file)
{
    for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++)
        if (*inside[i] && strncmp(file, inside[i], strlen(inside[i])) == 0)
            return true;
    return strncmp(file, "<frozen", strlen("<frozen")) == 0;
}

// "model.py:118 Block.forward"; false: not to be shown.
static bool describe(const struct walk *walk, unsigned i, char *text, size_t bytes)
{
    PyObject *code = (PyObject *)walk->codes[i];
    char file[4096], name[128];

    if (!copy_text(code, "co_filename", file, sizeof(file)) || is_inside(file))
        return false;
    if (!copy_text(code, "co_qualname", name, sizeof(name)) &&
        !copy_text(code, "co_name", name, sizeof(name)))
        return false;
    const char *base = strrchr(file, '/');
    snprintf(text, bytes, "%.100s:%d %s", base ? base + 1 : file, walk->lines[i], name);
    return true;
}

static uint32_t keep(const struct walk *walk)
{
    char frames[SHOWN][256], text[SHOWN * 257];
    unsigned shown = 0;
    size_t used = 0;

    for (unsigned i = 0; i < walk->count && shown < SHOWN; i++)
        shown += describe(walk, i, frames[shown], sizeof(frames[shown]));
    if (!shown)
        return 0;
    for (unsigned i = shown; i-- > 0;)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
                                 used ? "\n" : "", frames[i]);
    return library->stack(text);
}

uint32_t as_stack_now(void)
{
    if (!wanted || !frame_back)
        return 0;
    const uint64_t key = look(NULL);
    unsigned slot = (unsigned)(key % SLOTS);

    for (; slots[slot].key; slot = (slot + 1) % SLOTS)
        if (slots[slot].key == key)
            return slots[slot].stack;
    if (kept == KEPT_MOST)
        return library->stack(NULL);

    struct walk walk = {.count = 0};
    look(&walk);
    kept++;
    slots[slot] = (struct slot){key, keep(&walk)};
    return slots[slot].stack;
}
