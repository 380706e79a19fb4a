// SPDX-License-Identifier: Apache-2.0
//
// Calls every interposed function of the runtime and prints what each said, and then what
// libactswap saw of it. Linked to the runtime as a framework's library is.
#include "calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include <cuda_runtime_api.h>

#include <actswap/actswap.h>

enum { MIB = 1 << 20 };

static void said(const char *call, int result)
{
    printf("%s %d%s\n", call, result, errno == EXDEV ? "" : ", errno changed");
    errno = EXDEV;
}

static void seen(const char *when)
{
    int (*stats_of)(struct actswap_stats *) =
        (int (*)(struct actswap_stats *))dlsym(RTLD_DEFAULT, "actswap_stats");
    struct actswap_stats stats = {.size = sizeof(stats)};

    if (!stats_of)
        printf("seen %s: no library\n", when);
    else if (stats_of(&stats))
        printf("seen %s: left alone\n", when);
    else
        printf("seen %s: live %llu, peak %llu\n", when,
               (unsigned long long)stats.live_bytes,
               (unsigned long long)stats.peak_bytes);
    errno = EXDEV;
}

static void call_streams(void)
{
    cudaStream_t a = NULL, b = NULL, c = NULL;

    said("cudaStreamCreate", cudaStreamCreate(&a));
    said("cudaStreamCreateWithFlags",
         cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    said("cudaStreamCreateWithPriority",
         cudaStreamCreateWithPriority(&c, cudaStreamDefault, 0));
    said("cudaStreamCreateWithFlags of none", cudaStreamCreateWithFlags(&b, 77));
    said("cudaGetLastError", cudaGetLastError());
    said("cudaStreamDestroy", cudaStreamDestroy(a));
    said("cudaStreamDestroy", cudaStreamDestroy(b));
    said("cudaStreamDestroy", cudaStreamDestroy(c));
    said("cudaStreamDestroy of none", cudaStreamDestroy(c));
    said("cudaGetLastError", cudaGetLastError());
}

void hook_calls(void)
{
    void *a = NULL, *b = NULL, *c = NULL, *none = NULL;
    int elsewhere;

    errno = EXDEV;
    said("cudaMalloc", cudaMalloc(&a, MIB));
    said("cudaMalloc", cudaMalloc(&b, 4 * MIB));
    said("cudaMallocAsync", cudaMallocAsync(&c, 2 * MIB, NULL));
    seen("with three");
    said("cudaMalloc of too much", cudaMalloc(&none, (size_t)1 << 60));
    said("cudaGetLastError", cudaGetLastError());
    said("cudaFree of nothing", cudaFree(NULL));
    said("cudaFree of what is not a device's", cudaFree(&elsewhere));
    said("cudaGetLastError", cudaGetLastError());
    said("cudaFree", cudaFree(b));
    said("cudaFree of what is free", cudaFree(b));
    said("cudaGetLastError", cudaGetLastError());
    said("cudaFreeAsync", cudaFreeAsync(c, NULL));
    seen("with one");
    said("cudaFree", cudaFree(a));
    seen("at the end");
    call_streams();
    fflush(stdout);
}
