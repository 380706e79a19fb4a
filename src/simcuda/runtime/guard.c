// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <fnmatch.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/runtime/device.h"
#include "simcuda/runtime/guard.h"
#include "simcuda/simcuda.h"

// NVIDIA's libraries by file name or SONAME. One that slipped in would be called in
// place of ours, or take the simulated device's addresses for its own.
static const char *const closed[] = {
    "libcuda.so*",   "libcudart.so*",    "libcublas*.so*",   "libcudnn*.so*",
    "libcufft*.so*", "libcufile*.so*",   "libcupti.so*",     "libcusolver*.so*",
    "libnccl.so*",   "libcusparse*.so*", "libnvJitLink.so*", "libnvrtc*.so*",
    "libnvblas.so*", "libnvshmem*.so*",  "libcurand.so*",    NULL,
};

struct search {
    char folder[PATH_MAX]; // our own, where the same SONAMEs are right
    char found[PATH_MAX];
};

static bool is_closed(const char *name)
{
    for (size_t i = 0; closed[i]; i++)
        if (!fnmatch(closed[i], name, 0))
            return true;
    return false;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

// A package's private copy of this very runtime, under the file name that auditwheel
// gives: "libcudart.3eda8113.so.13". It is never called, as ours comes first in every
// search and has all its names and versions.
static bool is_private_copy(const char *path)
{
    const char *name = last_part(path);
    char major[16];
    const char *so = strstr(name, ".so.");
    const size_t prefix = strlen("libcudart") + 1, digits = 8;

    snprintf(major, sizeof(major), ".so.%d", CUDART_VERSION / 1000);
    return !fnmatch("libcudart[.-]*", name, 0) && so && so == name + prefix + digits &&
           strspn(name + prefix, "0123456789abcdef") == digits && !strcmp(so, major);
}

static bool is_ours(const struct search *search, const char *path)
{
    const size_t length = strlen(search->folder);

    return length && !strncmp(path, search->folder, length) && path[length] == '/';
}

static void search_maps(struct search *search)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[PATH_MAX + 128];

    if (!maps)
        return;
    while (!search->found[0] && fgets(line, sizeof(line), maps)) {
        const char *path = strchr(line, '/');

        line[strcspn(line, "\n")] = '\0';
        if (path && is_closed(last_part(path)) && !is_ours(search, path))
            snprintf(search->found, sizeof(search->found), "%s", path);
    }
    fclose(maps);
}

static const char *soname_of(const struct dl_phdr_info *object)
{
    const ElfW(Dyn) *dynamic = NULL;
    const char *strings = NULL;
    ElfW(Xword) soname = 0;

    for (size_t i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_STRTAB)
            strings = (const char *)dynamic->d_un.d_ptr;
        else if (dynamic->d_tag == DT_SONAME)
            soname = dynamic->d_un.d_val;
    }
    // The kernel's own object keeps addresses of its file: not relocated, and no name.
    if (!soname || (uintptr_t)strings < object->dlpi_addr)
        return NULL;
    return strings + soname;
}

// A copy under another file name still has its SONAME.
static int search_object(struct dl_phdr_info *object, size_t bytes, void *arg)
{
    struct search *search = arg;
    char path[PATH_MAX];

    (void)bytes;
    if (!object->dlpi_name[0])
        return 0;

    const char *soname = soname_of(object);

    if (!soname || !is_closed(soname) || !realpath(object->dlpi_name, path) ||
        is_ours(search, path) || is_private_copy(path))
        return 0;
    snprintf(search->found, sizeof(search->found), "%s", path);
    return 1;
}

int sim_guard(char *message, size_t bytes)
{
    struct search *search = calloc(1, sizeof(*search));

    if (!search) {
        snprintf(message, bytes, "no memory to look for NVIDIA's libraries");
        return 1;
    }
    if (!sim_own_folder(search->folder, sizeof(search->folder)))
        search->folder[0] = '\0';
    search_maps(search);
    if (!search->found[0])
        dl_iterate_phdr(search_object, search);

    const int foreign = search->found[0] != '\0';

    if (foreign)
        snprintf(message, bytes,
                 "NVIDIA's %s is in this process beside the simulated "
                 "device; start it with actswap rehearse and without LD_LIBRARY_PATH",
                 search->found);
    else if (bytes)
        message[0] = '\0';
    free(search);
    return foreign;
}

// How many objects have ever been loaded, at the last look. 0: nobody wants to know.
static atomic_ullong loaded;

static int take_count(struct dl_phdr_info *object, size_t bytes, void *count)
{
    (void)bytes;
    *(unsigned long long *)count = object->dlpi_adds;
    return 1;
}

static unsigned long long count_loaded(void)
{
    unsigned long long count = 0;

    dl_iterate_phdr(take_count, &count);
    return count;
}

void sim_guard_stay(void)
{
    loaded = count_loaded();
}

void sim_guard_look(void)
{
    char message[PATH_MAX + 256];

    if (!loaded)
        return;

    const unsigned long long now = count_loaded();

    if (now == loaded)
        return;
    loaded = now;
    if (sim_guard(message, sizeof(message)))
        sim_fail("%s", message);
}
