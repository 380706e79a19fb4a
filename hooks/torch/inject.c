// SPDX-License-Identifier: Apache-2.0

// PyTorch's libraries register their kernels from inside `import torch`: the moment at
// which the adapter can get into the process, and none of a process without PyTorch.

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/python.h"
#include "cuda/runtime.h"

#include "c10.h"

typedef void **register_fn(void *image);

__attribute__((visibility("default"))) void **__cudaRegisterFatBinary(void *image);

static char folder[PATH_MAX];

// The adapter lies beside this library, wherever that was loaded from.
static void find_folder(void)
{
    Dl_info own;
    if (!dladdr(folder, &own) || !own.dli_fname)
        return;

    const char *end = strrchr(own.dli_fname, '/');
    const int parent_bytes = end ? (int)(end - own.dli_fname) : 1;
    const char *parent = end ? own.dli_fname : ".";
    char path[PATH_MAX];
    const int written = snprintf(path, sizeof(path), "%.*s/python", parent_bytes, parent);
    if (written < 0 || (size_t)written >= sizeof(path) || !realpath(path, folder)) {
        folder[0] = '\0';
        as_log(AS_LOG_WARN, "inject: no folder %s: PyTorch runs unwatched", path);
    }
}

void **__cudaRegisterFatBinary(void *image)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    register_fn *real =
        (register_fn *)as_cuda_find(__func__, __builtin_return_address(0));
    void **handle = real ? real(image) : NULL;

    as_c10_prepare();
    pthread_once(&once, find_folder);
    if (folder[0] != '\0')
        as_python_inject(folder, "actswap_torch");
    return handle;
}
