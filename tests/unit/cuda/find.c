// SPDX-License-Identifier: Apache-2.0
#include "cuda/runtime.h"

#include <dlfcn.h>
#include <stdio.h>

#include <criterion/criterion.h>

// FOLDER has two libraries with the SONAMEs libcudart.so.12 and .13 (runtime12.so,
// runtime13.so) and one linked against each (user12.so, user13.so).

static void *load(const char *kind, int major, int mode)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s%d.so", FOLDER, kind, major);
    void *handle = dlopen(path, RTLD_NOW | mode);
    cr_assert(handle, "%s", dlerror());
    return handle;
}

// Loads a runtime with its user, and returns code of the user's.
static const void *load_user(int major, int mode)
{
    load("runtime", major, mode);
    return dlsym(load("user", major, mode), "user_calls");
}

static int major_of(const void *function)
{
    cr_assert(function, "there is a runtime");
    return ((int (*)(void))function)();
}

static int found(const void *caller)
{
    return major_of(as_cuda_find("cudaMajorOfTest", caller));
}

Test(cuda_find, without_a_runtime_there_is_nothing)
{
    cr_expect_null(as_cuda_find("cudaMajorOfTest", NULL));
    cr_expect_eq(as_cuda_event_query(NULL), 801, "not supported");
}

Test(cuda_find, nothing_is_loaded_for_the_sake_of_it)
{
    as_cuda_find("cudaMajorOfTest", NULL);

    cr_expect_null(dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD));
}

Test(cuda_find, a_runtime_in_a_local_scope_is_found_by_its_soname)
{
    const void *caller = load_user(13, RTLD_LOCAL);

    cr_expect_null(dlsym(RTLD_DEFAULT, "cudaMajorOfTest"));
    cr_expect_eq(found(caller), 13);
    cr_expect_eq(found(NULL), 13);
}

Test(cuda_find, of_two_in_local_scopes_each_caller_gets_its_own)
{
    const void *caller12 = load_user(12, RTLD_LOCAL);
    const void *caller13 = load_user(13, RTLD_LOCAL);

    cr_expect_eq(found(caller12), 12);
    cr_expect_eq(found(caller13), 13);
}

Test(cuda_find, of_two_in_the_global_scope_too)
{
    const void *caller12 = load_user(12, RTLD_GLOBAL);
    const void *caller13 = load_user(13, RTLD_GLOBAL);

    cr_expect_eq(major_of(dlsym(RTLD_DEFAULT, "cudaMajorOfTest")), 12, "the first wins");
    cr_expect_eq(found(caller12), 12);
    cr_expect_eq(found(caller13), 13);
}

Test(cuda_find, the_answer_is_never_our_own_export)
{
    load_user(13, RTLD_LOCAL);
    cr_assert_eq(major_of(dlsym(RTLD_DEFAULT, "cudaOwnExport")), 0);

    cr_expect_null(as_cuda_find("cudaOwnExport", NULL));
}

Test(cuda_find, only_cuda_names_are_looked_up)
{
    cr_expect_null(as_cuda_find("malloc", NULL));
}

__attribute__((visibility("default"))) int cudaOwnExport(void);

int cudaOwnExport(void)
{
    return 0;
}
