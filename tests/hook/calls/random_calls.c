// SPDX-License-Identifier: Apache-2.0
//
// Random programs over every way to take memory and give it back, right and wrong: two
// devices, both interfaces, several threads, and captures. Prints a digest of all that the
// calls said, which must be the same with the library and without it. With it, after each
// call (with several threads, after each program) its books must be those of a model that
// knows nothing but what the calls returned, and what the device has in use must be that,
// too.
//
//     random_calls SEED PROGRAMS THREADS     exit 0: right, 1: the books differ
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <actswap/actswap.h>

#include "program.h"

// --- A capture, in which nothing can be taken

static void capture(struct program *program)
{
    const struct thing *stream = any(program, STREAM);
    cudaGraph_t graph = NULL;
    void *address = NULL;

    // What is captured on a blocking stream ends by any work on the legacy one.
    if (!stream || (!program->alone && !(stream->flags & cudaStreamNonBlocking)) ||
        DO(program,
           cudaStreamBeginCapture(stream->address, cudaStreamCaptureModeThreadLocal)))
        return;
    if (chance(program, 2))
        DO(program, cudaMallocAsync(&address, 4096, stream->address));
    if (chance(program, 2))
        DO(program, cudaMalloc(&address, 4096));
    DO(program, cudaStreamEndCapture(stream->address, &graph));
    if (graph)
        cudaGraphDestroy(graph);
}

// --- Books

static int (*stats_of)(struct actswap_stats *);

static bool is_right(const struct program *all, const char *after)
{
    struct actswap_stats stats = {.size = sizeof(stats)};
    bool right = true;

    if (stats_of && stats_of(&stats))
        return fprintf(stderr, "random_calls: no figures\n"), false;
    for (int i = 0; stats_of && i < KINDS; i++)
        if (stats.taken_by_kind[i] != all->taken[i])
            right = fprintf(stderr, "%s: kind %d: %llu, not %llu\n", after, i,
                            (unsigned long long)stats.taken_by_kind[i],
                            (unsigned long long)all->taken[i]) < 0;
    const int before = now_device();
    for (int i = 0; i < DEVICES; i++) { // what was freed in a stream's order goes now
        cudaSetDevice(i);
        cudaDeviceSynchronize();
    }
    for (int i = 0; i < DEVICES; i++) {
        static size_t empty[DEVICES];
        size_t left, total;

        cudaSetDevice(i);
        cudaMemGetInfo(&left, &total);
        if (!empty[i])
            empty[i] = left;
        if ((int64_t)(empty[i] - left) != all->used[i])
            right = fprintf(stderr, "%s: device %d: %lld in use, not %lld\n", after, i,
                            (long long)(empty[i] - left), (long long)all->used[i]) < 0;
    }
    cudaSetDevice(before);
    return right;
}

// Of physical memory alone, where more of one thing is needed for an unlikely course.
static void one_physical_call(struct program *program)
{
    struct thing *room = any(program, NOTHING);

    switch (chance(program, room ? 7 : 4)) {
    case 0:
        release(program);
        break;
    case 1:
        unmap(program);
        break;
    case 2:
    case 3:
        map(program);
        break;
    case 4:
        create(program, room);
        break;
    case 5:
        reserve(program, room);
        break;
    default:
        retain(program, room);
    }
}

static void one_call(struct program *program)
{
    struct thing *room = any(program, NOTHING);

    switch (chance(program, room ? 20 : 10)) {
    case 0:
    case 1:
    case 2:
        give(program);
        break;
    case 3:
    case 4:
        give_host(program);
        break;
    case 5:
        unmake(program);
        break;
    case 6:
        map(program);
        break;
    case 7:
        release(program);
        break;
    case 8:
        unmap(program);
        break;
    case 9:
        capture(program);
        break;
    case 10:
    case 11:
        take_plain(program, room);
        break;
    case 12:
        take_rows(program, room);
        break;
    case 13:
    case 14:
        take_ordered(program, room);
        break;
    case 15:
        chance(program, 2) ? take_host(program, room) : take_registered(program, room);
        break;
    case 16:
        make(program, room);
        break;
    case 17:
        create(program, room);
        break;
    case 18:
        chance(program, 2) ? reserve(program, room) : retain(program, room);
        break;
    default:
        DO(program, cudaSetDevice((int)chance(program, DEVICES + 1)));
    }
}

static void give_all(struct program *program)
{
    for (int i = 0; i < THINGS; i++) {
        struct thing *thing = &program->things[i];
        const CUdeviceptr address = (CUdeviceptr)thing->address;

        if (thing->what == MEMORY)
            DO(program, cudaFree(thing->address));
        if (thing->what == HOST)
            DO(program, cudaFreeHost(thing->address));
        if (thing->what == REGISTERED)
            DO(program, cudaHostUnregister(thing->address));
        if (thing->what == REGISTERED)
            free(thing->address);
        if (thing->what == MEMORY || thing->what == HOST || thing->what == REGISTERED)
            let_go(program, thing);
        if (thing->what == STREAM)
            DO(program, cudaStreamDestroy(thing->address));
        if (thing->what == POOL)
            DO(program, cudaMemPoolDestroy(thing->address));
        if (thing->what == HANDLE && !DO(program, cuMemRelease(thing->handle)))
            unuse(program, thing->piece);
        if (thing->what == RESERVED && thing->piece) {
            DO(program, cuMemUnmap(address, thing->piece->bytes));
            unuse(program, thing->piece);
        }
        if (thing->what == RESERVED)
            DO(program, cuMemAddressFree(address, 4 * PAGE));
        thing->what = NOTHING;
    }
}

// --- Threads

struct worker {
    struct program program;
    unsigned programs;
    int status;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct program *program = &worker->program;

    for (unsigned n = 0; n < worker->programs && !worker->status; n++) {
        for (int i = 0; i < CALLS && !worker->status; i++) {
            n % 4 ? one_call(program) : one_physical_call(program);
            worker->status = program->alone && !is_right(program, program->last);
        }
        give_all(program);
        worker->status |= program->alone && !is_right(program, program->last);
    }
    return NULL;
}

// Who asks the driver for a function gets the version that was asked for, as the program
// sees it: the library's where that is hooked, else the driver's own.
static bool is_routed(void)
{
    static const struct {
        const char *asked, *symbol;
        int version;
        cuuint64_t flags;
    } routes[] = {
        {"cuMemAlloc", "cuMemAlloc", 2000, 0},
        {"cuMemAlloc", "cuMemAlloc_v2", 3020, 0},
        {"cuMemAllocAsync", "cuMemAllocAsync", 12000, 0},
        {"cuMemAllocAsync", "cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM},
        {"cuMemAllocAsync", "cuMemAllocAsync_ptsz", 12000,
         CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM},
        {"cuMemAllocAsync", NULL, 11010, 0},
        {"cuMemPoolCreate", "cuMemPoolCreate", 12000, 0},
    };

    for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
        CUdriverProcAddressQueryResult status = 77;
        void *found = NOT_GIVEN;
        const int result = cuGetProcAddress(routes[i].asked, &found, routes[i].version,
                                            routes[i].flags, &status);
        void *wanted = routes[i].symbol ? dlsym(RTLD_DEFAULT, routes[i].symbol) : NULL;

        if (found != wanted || (result == 0) != (wanted != NULL) ||
            status != (wanted ? CU_GET_PROC_ADDRESS_SUCCESS
                              : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT))
            return fprintf(stderr, "%s of %d: another function, or %d, %d\n",
                           routes[i].asked, routes[i].version, result, status) < 0;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    const uint32_t seed = argc > 3 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    const int count = argc > 3 ? atoi(argv[3]) : 0;
    const struct program nothing = {0};
    int status = 0;

    if (!seed || count < 1 || count > THREADS_MAX)
        return fprintf(stderr, "random_calls SEED PROGRAMS THREADS\n"), 64;
    stats_of = (int (*)(struct actswap_stats *))dlsym(RTLD_DEFAULT, "actswap_stats");
    cuInit(0);
    for (int i = DEVICES - 1; i >= 0; i--) {
        void *warm;

        cudaSetDevice(i);
        cudaMalloc(&warm, 1);
        cudaFree(warm);
    }
    if (!is_routed() || !is_right(&nothing, "the beginning"))
        return 1;
    for (int i = 0; i < count; i++) {
        workers[i] = (struct worker){.program = {.state = seed * 8 + (uint32_t)i,
                                                 .digest = UINT64_C(0xcbf29ce484222325),
                                                 .alone = count == 1},
                                     .programs = (unsigned)strtoul(argv[2], NULL, 10)};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        status |= workers[i].status;
        printf("%016llx\n", (unsigned long long)workers[i].program.digest);
    }
    return status || !is_right(&nothing, "the end");
}
