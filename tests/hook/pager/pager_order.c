// SPDX-License-Identifier: Apache-2.0
//
// The order between streams, end to end: the preloaded library moves pages on the simulated
// runtime, and this program is the framework. One scenario an edge. Under `late` work that
// no edge asks for runs too late, so each scenario waits for one stream alone and looks at
// the numbers; under `early` they must be right, too.
//
//     pager_order SCENARIO        exit 0: right, 1: wrong numbers
#include <actswap/actswap.h>

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/simcuda.h"

#pragma weak cudaMalloc
#pragma weak cudaStreamCreateWithFlags
#pragma weak cudaStreamDestroy
#pragma weak cudaStreamSynchronize
#pragma weak cudaStreamWaitEvent
#pragma weak cudaEventCreateWithFlags
#pragma weak cudaEventRecord
#pragma weak cudaDeviceSynchronize
#pragma weak sim_submit
#pragma weak actswap_attach
#pragma weak actswap_allocated
#pragma weak actswap_freed
#pragma weak actswap_save
#pragma weak actswap_need
#pragma weak actswap_drop
#pragma weak actswap_block
#pragma weak actswap_mark
#pragma weak actswap_stats

enum { BYTES = 2 << 20 };

static cudaStream_t first, side;
static unsigned char sink[BYTES];

static void check(int result, const char *what)
{
    if (!result)
        return;
    fprintf(stderr, "pager_order: %s failed: %d\n", what, result);
    exit(2);
}

// --- A caching allocator: freed memory goes to the next taker on the same stream

struct storage {
    unsigned char *data;
    void *stream;
    int references;
    struct storage *next;
};

static struct storage *cache;
static size_t reserved_bytes;

static struct storage *storage_create(void *stream)
{
    struct storage **place = &cache;
    while (*place && (*place)->stream != stream)
        place = &(*place)->next;
    struct storage *storage = *place;
    if (storage) {
        *place = storage->next;
    } else {
        storage = calloc(1, sizeof(*storage));
        check(!storage || cudaMalloc((void **)&storage->data, BYTES), "cudaMalloc");
        storage->stream = stream;
        reserved_bytes += BYTES;
    }
    storage->references = 1;
    actswap_allocated(0, storage->data, BYTES, reserved_bytes, stream);
    return storage;
}

static void storage_drop(struct storage *storage)
{
    if (--storage->references)
        return;
    actswap_freed(0, storage->data, BYTES, reserved_bytes);
    storage->next = cache;
    cache = storage;
}

static void *allocate(void *context, int device, size_t bytes, void *stream,
                      void **address)
{
    (void)context;
    check(device || bytes != BYTES, "what was asked for");
    struct storage *storage = storage_create(stream);
    *address = storage->data;
    return storage;
}

static void release(void *context, void *ref)
{
    (void)context;
    storage_drop(ref);
}

static size_t holders(void *context, void *ref)
{
    (void)context;
    const struct storage *storage = ref;
    return (size_t)storage->references - 1;
}

// --- Kernels

struct kernel {
    unsigned char *to;
    const unsigned char *from; // NULL: fill
    int value;
};

static void run(void *argument)
{
    const struct kernel *kernel = argument;
    if (kernel->from)
        memcpy(kernel->to, kernel->from, BYTES);
    else
        memset(kernel->to, kernel->value, BYTES);
}

static void submit(void *stream, struct kernel kernel)
{
    struct kernel *argument = malloc(sizeof(*argument));
    check(!argument, "malloc");
    *argument = kernel;
    struct sim_work work = {
        .name = "kernel", .run = run, .destroy = free, .arg = argument};
    struct sim_access access = {.address = kernel.from ? kernel.from : kernel.to,
                                .bytes = BYTES,
                                .write = !kernel.from};
    check(sim_submit(stream, &work, &access, 1), "sim_submit");
}

static void fill(void *stream, struct storage *storage, int value)
{
    submit(stream, (struct kernel){.to = storage->data, .value = value});
}

static void read_into_sink(void *stream, const void *from)
{
    submit(stream, (struct kernel){.to = sink, .from = from});
}

static void wait_for(cudaStream_t stream)
{
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

// The later stream waits for what the earlier one has now.
static void wait_between(cudaStream_t later, cudaStream_t earlier)
{
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
    check(cudaEventRecord(event, earlier), "cudaEventRecord");
    check(cudaStreamWaitEvent(later, event, 0), "cudaStreamWaitEvent");
}

static uint64_t released_bytes(void)
{
    struct actswap_stats stats = {.size = sizeof(stats)};
    check(actswap_stats(&stats), "actswap_stats");
    return stats.released_bytes;
}

static int is_wrong(int value)
{
    for (size_t i = 0; i < BYTES; i++)
        if (sink[i] != value)
            return 1;
    return 0;
}

// --- Steps of a forward

static struct actswap_page *save(struct storage *storage, void *stream)
{
    struct actswap_page *page;
    struct actswap_saved saved = {
        .size = sizeof(saved),
        .address = storage->data,
        .bytes = BYTES,
        .used_bytes = BYTES,
        .stream = stream,
        .ref = storage,
    };
    storage->references++;
    check(actswap_save(&saved, &page), "actswap_save");
    return page;
}

static struct storage *created(int value, void *stream)
{
    struct storage *storage = storage_create(stream);
    fill(stream, storage, value);
    return storage;
}

static struct actswap_page *saved_and_let_go(int value, void *stream)
{
    struct storage *storage = created(value, stream);
    actswap_block(ACTSWAP_ENTER, 1, stream);
    struct actswap_page *page = save(storage, stream);
    storage_drop(storage);
    actswap_block(ACTSWAP_EXIT, 1, stream);
    return page;
}

// The memory's next owner overwrites it and gives it back.
static void overwrite(void *stream)
{
    storage_drop(created(0xEE, stream));
}

static void *need(struct actswap_page *page, void *stream)
{
    struct actswap_resident resident = {.size = sizeof(resident)};
    check(actswap_need(page, stream, &resident), "actswap_need");
    return resident.address;
}

static int need_and_compare(struct actswap_page *page, cudaStream_t stream, int value)
{
    read_into_sink(stream, need(page, stream));
    wait_for(stream);
    return is_wrong(value);
}

// --- One scenario an edge

// The copy out waits for the producer: the consumer asks for the copies and nothing else.
static int produced(void)
{
    return need_and_compare(saved_and_let_go(7, first), side, 7);
}

// The memory's next owner waits for the copy out.
static int reuse(void)
{
    struct actswap_page *page = saved_and_let_go(7, first);
    overwrite(first);
    wait_for(first);
    return need_and_compare(page, first, 7);
}

// It waits for another stream that still reads the memory.
static int readers(void)
{
    struct storage *storage = created(7, first);
    wait_for(first);
    actswap_block(ACTSWAP_ENTER, 1, first);
    save(storage, first);
    struct storage *result = storage_create(side); // of the reading kernel
    read_into_sink(side, storage->data);
    storage_drop(storage);
    actswap_block(ACTSWAP_EXIT, 1, first);
    overwrite(first);
    wait_for(first);
    wait_for(side);
    storage_drop(result);
    return is_wrong(7);
}

// A saved tensor is read by a stream that names itself to nobody and that nobody waits
// for: the graph keeps the memory until backward, so in plain PyTorch this is right in
// time. Here the memory's next owner has to wait.
static void read_by_stranger(cudaStream_t stranger)
{
    struct storage *storage = created(7, first);
    wait_between(stranger, first);
    actswap_block(ACTSWAP_ENTER, 1, first);
    save(storage, first);
    read_into_sink(stranger, storage->data);
    storage_drop(storage);
    actswap_block(ACTSWAP_EXIT, 1, first);
    check(released_bytes() != BYTES, "letting go");
}

static int stranger(void)
{
    read_by_stranger(side);
    overwrite(first);
    wait_for(first);
    wait_for(side);
    return is_wrong(7);
}

static int legacy(void)
{
    read_by_stranger(NULL);
    overwrite(first);
    wait_for(first);
    wait_for(NULL);
    return is_wrong(7);
}

// The stream is gone before the block is, and its work is not.
static int destroyed(void)
{
    struct storage *storage = created(7, first);
    cudaStream_t third;
    check(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking), "a stream");
    wait_between(third, first);
    actswap_block(ACTSWAP_ENTER, 1, first);
    save(storage, first);
    read_into_sink(third, storage->data);
    check(cudaStreamDestroy(third), "cudaStreamDestroy");
    storage_drop(storage);
    actswap_block(ACTSWAP_EXIT, 1, first);
    check(released_bytes() != BYTES, "letting go");
    overwrite(first);
    wait_for(first);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return is_wrong(7);
}

// Somebody holds the storage longer than the block, reads it then on another stream, and
// drops it at once. It is let go afterwards, by us.
static int shared(void)
{
    struct storage *storage = created(7, first);
    actswap_block(ACTSWAP_ENTER, 1, first);
    save(storage, first);
    actswap_block(ACTSWAP_EXIT, 1, first);
    check(released_bytes() != 0, "keeping what others hold");
    wait_between(side, first);
    read_into_sink(side, storage->data);
    storage_drop(storage);
    check(released_bytes() != 0, "keeping what only we hold");
    actswap_block(ACTSWAP_ENTER, 2, first);
    check(released_bytes() != BYTES, "letting go at the next edge");
    overwrite(first);
    wait_for(first);
    wait_for(side);
    return is_wrong(7);
}

// What others hold until backward is there and is not brought in a second time.
static int held(void)
{
    struct storage *storage = created(7, first);
    actswap_block(ACTSWAP_ENTER, 1, first);
    struct actswap_page *page = save(storage, first);
    actswap_block(ACTSWAP_EXIT, 1, first);
    actswap_mark(ACTSWAP_BACKWARD);
    check(need(page, first) != storage->data, "the storage itself");
    struct actswap_stats stats = {.size = sizeof(stats)};
    check(actswap_stats(&stats) || stats.in_bytes, "bringing in nothing");
    return need_and_compare(page, first, 7);
}

// The copy in waits for the last use of the memory that it goes to.
static int allocated(void)
{
    struct actswap_page *page = saved_and_let_go(7, first);
    overwrite(first);
    need(page, first);
    int wrong = need_and_compare(page, side, 7);
    wait_for(first);
    return wrong || need_and_compare(page, first, 7);
}

// The copy in waits for the copy out, on whichever stream it is asked for.
static int filled(void)
{
    struct storage *storage = created(7, first);
    wait_for(first);
    actswap_block(ACTSWAP_ENTER, 1, first);
    struct actswap_page *page = save(storage, first);
    storage_drop(storage);
    actswap_block(ACTSWAP_EXIT, 1, first);
    return need_and_compare(page, side, 7);
}

// The consumer waits for the copy in, and so does a second one.
static int arrived(void)
{
    struct actswap_page *page = saved_and_let_go(7, first);
    overwrite(first);
    return need_and_compare(page, first, 7);
}

static int arrived_twice(void)
{
    struct actswap_page *page = saved_and_let_go(7, first);
    overwrite(first);
    wait_for(first);
    need(page, first);
    return need_and_compare(page, side, 7);
}

// The next copy into a pinned buffer waits for the copy that reads it.
static int host_reuse(void)
{
    struct actswap_page *page = saved_and_let_go(7, first);
    overwrite(first);
    read_into_sink(first, need(page, first));
    actswap_drop(page);
    struct storage *other = created(9, side);
    struct actswap_page *next = save(other, side);
    struct actswap_stats stats = {.size = sizeof(stats)};
    check(actswap_stats(&stats) || stats.pinned_bytes != BYTES, "one pinned buffer");
    storage_drop(other);
    actswap_block(ACTSWAP_ENTER, 1, side);
    actswap_block(ACTSWAP_EXIT, 1, side);
    struct storage *reused = storage_create(side);
    wait_for(side); // the memory was reused, so the copy out is through
    wait_for(first);
    (void)next;
    storage_drop(reused);
    return is_wrong(7);
}

// The end of a page waits for consumers on other streams.
static int ended(void)
{
    struct actswap_page *page = saved_and_let_go(7, first);
    overwrite(first);
    need(page, first);
    read_into_sink(side, need(page, side));
    actswap_drop(page);
    overwrite(first);
    wait_for(first);
    wait_for(side);
    return is_wrong(7);
}

// A graph that is kept: let go again after its backward, and back for the next.
static int kept(void)
{
    struct actswap_page *page = saved_and_let_go(7, first);
    int wrong = 0;
    for (int backward = 0; backward < 3; backward++) {
        overwrite(first);
        actswap_mark(ACTSWAP_BACKWARD);
        read_into_sink(first, need(page, first));
        actswap_mark(ACTSWAP_BACKWARD_END);
        overwrite(first);
        wait_for(first);
        wrong += is_wrong(7);
    }
    return wrong;
}

static const struct {
    const char *name;
    int (*run)(void);
} scenarios[] = {
    {"produced", produced},     {"reuse", reuse},     {"readers", readers},
    {"stranger", stranger},     {"legacy", legacy},   {"destroyed", destroyed},
    {"shared", shared},         {"held", held},       {"allocated", allocated},
    {"filled", filled},         {"arrived", arrived}, {"arrived_twice", arrived_twice},
    {"host_reuse", host_reuse}, {"ended", ended},     {"kept", kept},
};

static void start(void)
{
    static const struct actswap_verbs verbs = {
        .size = sizeof(verbs),
        .allocate = allocate,
        .release = release,
        .framework = "pager_order",
        .holders = holders,
    };
    if (!cudaMalloc || !sim_submit || !actswap_attach)
        check(1, "preloading libactswap and the simulated runtime");
    check(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), "a stream");
    check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "a stream");
    check(actswap_attach(&verbs, NULL), "actswap_attach");
    actswap_mark(ACTSWAP_FORWARD);
}

int main(int count, char **arguments)
{
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        if (count != 2 || strcmp(arguments[1], scenarios[i].name) != 0)
            continue;
        start();
        int wrong = scenarios[i].run();
        printf("%s: %s\n", scenarios[i].name, wrong ? "wrong numbers" : "right");
        return wrong != 0;
    }
    fprintf(stderr, "usage: pager_order SCENARIO\n");
    return 2;
}
