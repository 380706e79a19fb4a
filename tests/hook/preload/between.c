// SPDX-License-Identifier: Apache-2.0
//
// Another interposer, as a profiler's or a quota's: passes some calls on to whoever comes
// next, and says at the end how many it saw of each.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

typedef void *stream;

#define PASS(name, parameters, ...)                                                      \
    static unsigned seen_##name;                                                         \
    __attribute__((visibility("default"))) int name parameters;                          \
    int name parameters                                                                  \
    {                                                                                    \
        int(*next) parameters = (int(*) parameters)dlsym(RTLD_NEXT, #name);              \
                                                                                         \
        seen_##name++;                                                                   \
        return next ? next(__VA_ARGS__) : 3;                                             \
    }

PASS(cudaMalloc, (void **at, size_t bytes), at, bytes)
PASS(cudaFree, (void *at), at)
PASS(cudaMallocAsync, (void **at, size_t bytes, stream on), at, bytes, on)
PASS(cudaFreeAsync, (void *at, stream on), at, on)
PASS(cudaHostAlloc, (void **at, size_t bytes, unsigned flags), at, bytes, flags)
PASS(cudaMemGetInfo, (size_t * left, size_t *total), left, total)
PASS(cuMemAlloc_v2, (unsigned long long *at, size_t bytes), at, bytes)
PASS(cuMemFree_v2, (unsigned long long at), at)

__attribute__((destructor)) static void say(void)
{
    fprintf(stderr,
            "between: %u cudaMalloc, %u cudaFree, %u cudaMallocAsync, %u cudaFreeAsync, "
            "%u cudaHostAlloc, %u cudaMemGetInfo, %u cuMemAlloc, %u cuMemFree\n",
            seen_cudaMalloc, seen_cudaFree, seen_cudaMallocAsync, seen_cudaFreeAsync,
            seen_cudaHostAlloc, seen_cudaMemGetInfo, seen_cuMemAlloc_v2,
            seen_cuMemFree_v2);
}
