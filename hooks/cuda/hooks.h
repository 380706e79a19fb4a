// SPDX-License-Identifier: Apache-2.0
#ifndef AS_HOOKS_CUDA_HOOKS_H
#define AS_HOOKS_CUDA_HOOKS_H

// The interposed entry points: this table makes the look-up of the real functions, and
// scripts/check-symbols compares it with what the library exports.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>

#define AS_HOOKS(X)                                                                      \
    X(cudaMalloc)                                                                        \
    X(cudaFree)                                                                          \
    X(cudaMallocAsync)                                                                   \
    X(cudaMallocAsync_ptsz)                                                              \
    X(cudaFreeAsync)                                                                     \
    X(cudaFreeAsync_ptsz)                                                                \
    X(cudaStreamCreate)                                                                  \
    X(cudaStreamCreateWithFlags)                                                         \
    X(cudaStreamCreateWithPriority)                                                      \
    X(cudaStreamDestroy)                                                                 \
    X(cudaMemGetInfo)                                                                    \
    X(cudaGetDeviceProperties)                                                           \
    X(cudaGetDeviceProperties_v2)                                                        \
    X(cudaGetDriverEntryPoint)                                                           \
    X(cudaGetDriverEntryPoint_ptsz)                                                      \
    X(cudaGetDriverEntryPointByVersion)                                                  \
    X(cudaGetDriverEntryPointByVersion_ptsz)                                             \
    X(cuGetProcAddress)                                                                  \
    X(cuGetProcAddress_v2)                                                               \
    X(cuDeviceTotalMem_v2)                                                               \
    X(cuMemGetInfo_v2)                                                                   \
    X(cuMemAlloc_v2)                                                                     \
    X(cuMemFree_v2)                                                                      \
    X(cuMemCreate)                                                                       \
    X(cuMemRelease)

#define AS_HOOK_ID(name) AS_HOOK_##name,
enum as_hook { AS_HOOKS(AS_HOOK_ID) AS_HOOK_COUNT };
#undef AS_HOOK_ID

// The function behind ours, for a call that comes from `caller`: with two runtimes in a
// process each caller gets its own. NULL: there is none.
void *as_hook_real(enum as_hook hook, const void *caller);

// Counts how deep this thread is in interposed calls. True at the outermost: what the
// driver calls from inside an interposed call is part of that call.
bool as_hook_enter(void);
void as_hook_leave(void);

#endif
