// SPDX-License-Identifier: Apache-2.0
//
// What a hook adds to a call that it only passes on: nanoseconds of the same call through
// the hook and straight at the runtime. Run with libactswap and the simulated runtime
// preloaded, in that order; its path is the argument.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cuda_runtime_api.h>

enum { CALLS = 2000000, ROUNDS = 9 };

typedef cudaError_t create_fn(cudaStream_t *stream, unsigned flags);

static uint64_t used_ns(void)
{
    struct timespec used = {0};

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

// Refused for its missing argument, so that the runtime's own part is short.
static double call_ns(create_fn *create)
{
    const uint64_t start = used_ns();

    for (int i = 0; i < CALLS; i++) {
        if (create(NULL, 0) == cudaSuccess)
            return -1;
    }
    return (double)(used_ns() - start) / CALLS;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

int main(int count, char **arguments)
{
    void *runtime = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    void *found = runtime ? dlsym(runtime, "cudaStreamCreateWithFlags") : NULL;
    create_fn *direct, *hooked;
    double straight = 1e9, through = 1e9;

    *(void **)&direct = found;
    *(void **)&hooked = dlsym(RTLD_DEFAULT, "cudaStreamCreateWithFlags");
    if (!direct || !hooked || direct == hooked) {
        (void)fprintf(stderr, "bench-hook: nothing hooks %s\n",
                      count > 1 ? arguments[1] : "nothing");
        return 1;
    }
    for (int i = 0; i < ROUNDS; i++) { // all noise adds: the least counts
        straight = least(straight, call_ns(direct));
        through = least(through, call_ns(hooked));
    }
    printf("hook: %.1f ns through it, %.1f ns straight, adds %.1f ns\n", through,
           straight, through - straight);
    return 0;
}
