// SPDX-License-Identifier: Apache-2.0
#include "core/python.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/log.h"

// Python is reached by name: neither a header nor a NEEDED entry of it is ours.
struct python {
    int (*is_initialized)(void);
    int (*add_pending_call)(int (*)(void *), void *);
    void *(*compile)(const char *source, const char *name, int start);
    void *(*eval)(void *code, void *globals, void *locals);
    void *(*build_value)(const char *format, ...);
    void *(*get_builtins)(void);
    long (*as_long)(void *);
    void *(*dict_get)(void *dict, const char *key);
    void (*clear)(void);
    void (*release)(void *);
};

struct package {
    const char *folder;
    const char *name;
    atomic_int state; // enum state, read by every trigger
};

enum state { FREE, CLAIMED, IDLE, QUEUED, DONE };

enum { PY_FILE_INPUT = 257, PACKAGES = 2 };

static struct package packages[PACKAGES];

// Sets `found` when torch is being imported or is here already. `_initializing` is what
// importlib sets to False as the last thing of an import, whatever came of it, so the
// spec's class is exchanged for one that notices. Two packages may wait on one spec: the
// class is put back before the value is set, so that the one beneath notices as well,
// and first. What fails in here must not fail the user's import.
static const char program[] =
    "def start():\n"
    "    try:\n"
    "        importlib.import_module(package).activate()\n"
    "    except Exception as error:\n"
    "        sys.stderr.write(f'actswap: warning: python: cannot start {package}: '\n"
    "                         f'{type(error).__name__}: {error}\\n')\n"
    "\n"
    "def watch(spec):\n"
    "    kind = type(spec)\n"
    "    class Watched(kind):\n"
    "        def __setattr__(self, name, value):\n"
    "            if name != '_initializing' or value:\n"
    "                return super().__setattr__(name, value)\n"
    "            object.__setattr__(self, '__class__', kind)\n"
    "            setattr(self, name, value)\n"
    "            if 'torch' in sys.modules:\n"
    "                start()\n"
    "    Watched.__name__, Watched.__module__ = kind.__name__, kind.__module__\n"
    "    Watched.__qualname__ = kind.__qualname__\n"
    "    spec.__class__ = Watched\n"
    "\n"
    "import importlib, sys\n"
    "if folder not in sys.path:\n"
    "    sys.path.append(folder)\n"
    "found = 0\n"
    "torch = sys.modules.get('torch')\n"
    "if torch is not None:\n"
    "    found = 1\n"
    "    spec = getattr(torch, '__spec__', None)\n"
    "    if getattr(spec, '_initializing', False):\n"
    "        watch(spec)\n"
    "    else:\n"
    "        start()\n";

static void *find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static bool find_python(struct python *python)
{
    *python = (struct python){
        .is_initialized = find("Py_IsInitialized"),
        .add_pending_call = find("Py_AddPendingCall"),
        .compile = find("Py_CompileString"),
        .eval = find("PyEval_EvalCode"),
        .build_value = find("Py_BuildValue"),
        .get_builtins = find("PyEval_GetBuiltins"),
        .as_long = find("PyLong_AsLong"),
        .dict_get = find("PyDict_GetItemString"),
        .clear = find("PyErr_Clear"),
        .release = find("Py_DecRef"),
    };
    return python->is_initialized && python->add_pending_call && python->compile &&
           python->eval && python->build_value && python->get_builtins &&
           python->as_long && python->dict_get && python->clear && python->release;
}

// Runs the program with its two arguments; true when it found torch.
static bool run_program(const struct python *python, const struct package *package)
{
    void *code = python->compile(program, "<actswap>", PY_FILE_INPUT);
    void *globals =
        code ? python->build_value("{s:O,s:s,s:s,s:s}", "__builtins__",
                                   python->get_builtins(), "__name__", "actswap",
                                   "folder", package->folder, "package", package->name)
             : NULL;
    void *result = globals ? python->eval(code, globals, globals) : NULL;
    void *found = result ? python->dict_get(globals, "found") : NULL;
    const bool here = found && python->as_long(found) == 1;

    if (!result) {
        python->clear();
        as_log(AS_LOG_WARN, "python: cannot put %s on sys.path", package->folder);
    }
    if (result)
        python->release(result);
    if (globals)
        python->release(globals);
    if (code)
        python->release(code);
    return here;
}

// Runs on Python's main thread with the GIL held. Answers 0: anything else would raise.
static int inject(void *arg)
{
    struct package *package = arg;
    struct python python;
    const bool here = find_python(&python) && run_program(&python, package);

    atomic_store(&package->state, here ? DONE : IDLE);
    return 0;
}

static struct package *find_package(const char *folder, const char *name)
{
    for (size_t i = 0; i < PACKAGES; i++) {
        struct package *package = &packages[i];
        int expected = FREE;
        if (atomic_compare_exchange_strong(&package->state, &expected, CLAIMED)) {
            package->folder = folder;
            package->name = name;
            atomic_store(&package->state, IDLE);
            return package;
        }
        if (expected != CLAIMED && strcmp(package->name, name) == 0)
            return package;
    }
    return NULL;
}

int as_python_inject(const char *folder, const char *package)
{
    struct package *own = find_package(folder, package);
    if (!own)
        return -ENOSPC;

    int expected = IDLE;
    if (!atomic_compare_exchange_strong(&own->state, &expected, QUEUED))
        return 0;

    struct python python;
    if (!find_python(&python) || !python.is_initialized()) {
        atomic_store(&own->state, IDLE);
        return 0;
    }
    if (python.add_pending_call(inject, own)) {
        atomic_store(&own->state, IDLE);
        return -EAGAIN;
    }
    return 0;
}
