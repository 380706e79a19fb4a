// SPDX-License-Identifier: Apache-2.0
#include "track/native.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

enum { DEPTH = 128, OBJECTS = 2 };

#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)

// Of libunwind. Its header's names are macros for those of the machine.
static struct {
    int (*backtrace)(void **frames, int count);
    int (*get_context)(unw_context_t *context);
    int (*init)(unw_cursor_t *cursor, unw_context_t *context);
    int (*set)(unw_cursor_t *cursor, unw_regnum_t which, unw_word_t value);
    int (*name)(unw_cursor_t *cursor, char *text, size_t bytes, unw_word_t *offset);
} unwind;

// Where an object is mapped; nowhere: no frame lies inside.
struct range {
    uintptr_t first, end;
};

static struct range ours[OBJECTS]; // libactswap and the adapter
static struct range python;
static const char *glue_names;
static atomic_bool ready;

static bool is_in(struct range range, const void *address)
{
    return (uintptr_t)address >= range.first && (uintptr_t)address < range.end;
}

static bool is_ours(const void *address)
{
    for (size_t i = 0; i < OBJECTS; i++)
        if (is_in(ours[i], address))
            return true;
    return false;
}

struct search {
    const void *address;
    struct range range;
    bool is_program; // not a library
};

static int find_object(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    struct range range = {UINTPTR_MAX, 0};

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        const uintptr_t first = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        const uintptr_t end = first + info->dlpi_phdr[i].p_memsz;
        range.first = first < range.first ? first : range.first;
        range.end = end > range.end ? end : range.end;
    }
    if (!is_in(range, search->address))
        return 0;
    search->range = range;
    search->is_program = !info->dlpi_name || !*info->dlpi_name;
    return 1;
}

// The object that `address` lies in.
static struct search object_of(const void *address)
{
    struct search search = {.address = address};

    if (address)
        dl_iterate_phdr(find_object, &search);
    return search;
}

// Whether it is a library whose file lies in the folder of libactswap's or below it.
static bool is_beside_us(const void *address)
{
    Dl_info own, other;

    if (object_of(address).is_program || !dladdr((void *)as_native_begin, &own) ||
        !dladdr(address, &other) || !own.dli_fname || !other.dli_fname)
        return false;
    const char *slash = strrchr(own.dli_fname, '/');
    return slash && strncmp(own.dli_fname, other.dli_fname,
                            (size_t)(slash + 1 - own.dli_fname)) == 0;
}

static bool load(void)
{
    static const char *const files[] = {"libunwind.so.8", "libunwind.so.1"};
    void *library = NULL;

    for (size_t i = 0; !library && i < sizeof(files) / sizeof(*files); i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&unwind.backtrace = dlsym(library, NAME_OF(unw_backtrace));
#ifdef __x86_64__ // elsewhere getting the context is no call
    *(void **)&unwind.get_context = dlsym(library, NAME_OF(unw_tdep_getcontext));
#endif
    *(void **)&unwind.init = dlsym(library, NAME_OF(unw_init_local));
    *(void **)&unwind.set = dlsym(library, NAME_OF(unw_set_reg));
    *(void **)&unwind.name = dlsym(library, NAME_OF(unw_get_proc_name));
    return unwind.backtrace;
}

bool as_native_begin(const void *adapter, const char *glue)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    if (!atomic_load(&ready) && load()) {
        ours[0] = object_of((void *)as_native_begin).range;
        if (is_beside_us(adapter))
            ours[1] = object_of(adapter).range;
        glue_names = glue;
        python = object_of(dlsym(RTLD_DEFAULT, "PyEval_EvalCode")).range;
        atomic_store(&ready, true);
    }
    pthread_mutex_unlock(&lock);
    return atomic_load(&ready);
}

unsigned as_native_take(void *frames[AS_NATIVE_FRAMES], bool until_python)
{
    void *all[DEPTH];
    unsigned count = 0;

    if (!atomic_load(&ready))
        return 0;
    const int depth = unwind.backtrace(all, DEPTH);
    int at = 0;
    while (at < depth && (is_ours(all[at]) || is_in(python, all[at])))
        at++;
    for (; at < depth && count < AS_NATIVE_FRAMES; at++) {
        if (until_python && is_in(python, all[at]))
            break;
        frames[count++] = all[at];
    }
    return count;
}

// Where the arguments of a demangled C++ name begin, or its end: a plain one has none.
static char *arguments_of(char *name)
{
    char *end = name + strlen(name);
    int depth = 0;

    if (end - name > 6 && strcmp(end - 6, " const") == 0)
        end -= 6;
    if (end == name || end[-1] != ')')
        return end;
    while (end > name) {
        end--;
        depth += (*end == ')') - (*end == '(');
        if (!depth)
            break;
    }
    return end > name ? end : name + strlen(name);
}

// The C++ runtime's own reader of names, where the program has one. The text is the
// caller's to free.
static char *demangle(const char *name)
{
    char *(*read)(const char *, char *, size_t *, int *) = NULL;
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    char *plain = NULL;
    int err = 0;

    if (library) {
        *(void **)&read = dlsym(library, "__cxa_demangle");
        plain = read && strncmp(name, "_Z", 2) == 0 ? read(name, NULL, NULL, &err) : NULL;
        dlclose(library);
    }
    if (plain)
        *arguments_of(plain) = '\0';
    return plain ? plain : strdup(name);
}

// The name of a function that is not shown to other objects, from the object's file.
static bool find_local(void *address, char *name, size_t name_bytes)
{
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t offset;

    if (!unwind.get_context || !unwind.init || !unwind.set || !unwind.name)
        return false;
    memset(&context, 0, sizeof(context));
    unwind.get_context(&context);
    return unwind.init(&cursor, &context) == 0 &&
           unwind.set(&cursor, UNW_REG_IP, (unw_word_t)(uintptr_t)address) == 0 &&
           unwind.name(&cursor, name, name_bytes, &offset) == 0;
}

static bool is_glue(const char *name)
{
    for (const char *glue = glue_names; glue && *glue;) {
        const size_t length = strcspn(glue, "\n");

        if (length && strncmp(name, glue, length) == 0)
            return true;
        glue += length + (glue[length] == '\n');
    }
    return false;
}

bool as_native_text(void *frame, char *text, size_t text_bytes)
{
    void *const address = (char *)frame - 1; // in the call, not behind it
    char name[1024];
    Dl_info info;

    if (!dladdr(address, &info) || !info.dli_fname) {
        snprintf(text, text_bytes, "%p", frame);
        return true;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash ? slash + 1 : info.dli_fname;
    if (info.dli_sname) {
        snprintf(name, sizeof(name), "%s", info.dli_sname);
    } else if (!find_local(address, name, sizeof(name))) {
        snprintf(text, text_bytes, "%s+0x%zx", file,
                 (size_t)((char *)frame - (char *)info.dli_fbase));
        return true;
    }
    char *plain = demangle(name);
    const bool shown = !is_glue(plain ? plain : name);
    snprintf(text, text_bytes, "%s %s", file, plain ? plain : name);
    free(plain);
    return shown;
}
