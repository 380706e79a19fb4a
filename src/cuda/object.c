// SPDX-License-Identifier: Apache-2.0
#include "cuda/object.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// What one walk over the loaded objects looks for. The walk runs under the dynamic
// linker's lock, so that it only reads and copies.
struct search {
    const void *code; // the object that holds this, or NULL for any
    const char *prefix;
    char name[AS_OBJECT_NAME]; // what was found, or ""
};

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

// glibc relocates the pointer in place, except for the kernel's vdso.
static const char *strings_of(const struct dl_phdr_info *info, const ElfW(Dyn) * dynamic)
{
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag != DT_STRTAB)
            continue;
        uintptr_t at = dynamic->d_un.d_ptr;
        return (const char *)(at < info->dlpi_addr ? at + info->dlpi_addr : at);
    }
    return NULL;
}

// The first entry of kind `tag` that begins with `prefix`.
static const char *entry_of(const struct dl_phdr_info *info, ElfW(Sxword) tag,
                            const char *prefix)
{
    const ElfW(Dyn) *dynamic = dynamic_of(info);
    const char *strings = dynamic ? strings_of(info, dynamic) : NULL;
    if (!strings)
        return NULL;
    for (; dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == tag && begins(strings + dynamic->d_un.d_val, prefix))
            return strings + dynamic->d_un.d_val;
    return NULL;
}

static bool holds(const struct dl_phdr_info *info, const void *code)
{
    uintptr_t at = (uintptr_t)code;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && at >= start && at < start + part->p_memsz)
            return true;
    }
    return false;
}

static int finish(struct search *search, const char *name)
{
    if (snprintf(search->name, AS_OBJECT_NAME, "%s", name) >= AS_OBJECT_NAME)
        search->name[0] = '\0';
    return 1;
}

static bool look(int (*match)(struct dl_phdr_info *, size_t, void *),
                 struct search *search, char name[AS_OBJECT_NAME])
{
    dl_iterate_phdr(match, search);
    memcpy(name, search->name, AS_OBJECT_NAME);
    return name[0];
}

static int match_name(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    struct search *search = context;
    if (!info->dlpi_name[0])
        return 0; // the program itself
    const char *soname = entry_of(info, DT_SONAME, search->prefix);
    if (soname || begins(base_name(info->dlpi_name), search->prefix))
        return finish(search, info->dlpi_name);
    return 0;
}

static int match_needed(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    struct search *search = context;
    if (!holds(info, search->code))
        return 0;
    const char *needed = entry_of(info, DT_NEEDED, search->prefix);
    return needed ? finish(search, needed) : 1;
}

static int match_soname(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    struct search *search = context;
    if (!holds(info, search->code))
        return 0;
    const char *soname = entry_of(info, DT_SONAME, "");
    return soname ? finish(search, soname) : 1;
}

bool as_object_find(const char *prefix, char name[AS_OBJECT_NAME])
{
    struct search search = {.prefix = prefix};
    return look(match_name, &search, name);
}

bool as_object_needs(const void *code, const char *prefix, char name[AS_OBJECT_NAME])
{
    struct search search = {.code = code, .prefix = prefix};
    return look(match_needed, &search, name);
}

bool as_object_soname(const void *code, char name[AS_OBJECT_NAME])
{
    struct search search = {.code = code};
    return look(match_soname, &search, name);
}

bool as_object_same(const void *code, const void *other)
{
    Dl_info a, b;
    return dladdr(code, &a) && dladdr(other, &b) && a.dli_fbase == b.dli_fbase;
}
