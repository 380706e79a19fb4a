// SPDX-License-Identifier: Apache-2.0
//
// Random runs of a framework against a model of what it may expect: every read on the
// device looks at each byte that it reads. The program keeps plain PyTorch's rules, and no
// more: a stream that reads a tensor is ordered behind its last write, and the memory's
// own stream waits for its readers before the last of script and graph drops it. So a
// stream may still read what only the graph holds.
//
//     pager_random SEED STEPS     exit 0: right, 1: wrong numbers or something is lost
#include <actswap/actswap.h>

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>
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
#pragma weak cudaEventDestroy
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

enum {
    UNIT = 4096,
    SIZES = 3, // of 1, 2 and 4 units
    STREAMS = 3, // and the legacy one
    TENSORS = 24,
    HANDLES = 48,
    DEPTH = 3,
    FORWARD_OPS = 90,
};

static void check(int result, const char *what)
{
    if (!result)
        return;
    fprintf(stderr, "pager_random: %s failed: %d\n", what, result);
    exit(2);
}

// --- Chance (Marsaglia's xorshift)

static uint32_t state;

static unsigned chance(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

// --- Streams. Number 0 is the legacy stream.

static cudaStream_t streams[STREAMS + 1];

static unsigned any_stream(void)
{
    return chance(12) ? 1 + chance(STREAMS) : 0; // the legacy one orders all the others
}

static void wait_between(unsigned later, unsigned earlier)
{
    if (later == earlier)
        return;
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
    check(cudaEventRecord(event, streams[earlier]), "cudaEventRecord");
    check(cudaStreamWaitEvent(streams[later], event, 0), "cudaStreamWaitEvent");
    check(cudaEventDestroy(event), "cudaEventDestroy");
}

static void make_stream(unsigned number)
{
    // Blocking and not, so that the legacy stream is ordered with some.
    check(cudaStreamCreateWithFlags(&streams[number], number % 2), "a stream");
}

// --- A caching allocator: freed memory goes to the next taker on its stream at once

struct memory {
    unsigned char *data;
    size_t bytes;
    void *stream;
    struct memory *next;
};

struct storage {
    struct memory *memory;
    int references;
};

static struct memory *cache;
static size_t reserved_bytes;
static int storages;

static struct memory *take_memory(size_t bytes, void *stream)
{
    struct memory **place = &cache;
    while (*place && ((*place)->bytes != bytes || (*place)->stream != stream))
        place = &(*place)->next;
    struct memory *memory = *place;
    if (memory) {
        *place = memory->next;
    } else {
        memory = calloc(1, sizeof(*memory));
        check(!memory || cudaMalloc((void **)&memory->data, bytes), "cudaMalloc");
        memory->bytes = bytes;
        memory->stream = stream;
        reserved_bytes += bytes;
    }
    actswap_allocated(0, memory->data, bytes, reserved_bytes, stream);
    return memory;
}

static void give_memory(struct memory *memory)
{
    actswap_freed(0, memory->data, memory->bytes, reserved_bytes);
    memory->next = cache;
    cache = memory;
}

static struct storage *storage_create(size_t bytes, void *stream)
{
    struct storage *storage = malloc(sizeof(*storage));
    check(!storage, "malloc");
    *storage = (struct storage){take_memory(bytes, stream), 1};
    storages++;
    return storage;
}

static void storage_drop(struct storage *storage)
{
    if (--storage->references)
        return;
    give_memory(storage->memory);
    free(storage);
    storages--;
}

static void *allocate(void *context, int device, size_t bytes, void *stream,
                      void **address)
{
    (void)context;
    (void)device;
    struct storage *storage = storage_create(bytes, stream);
    *address = storage->memory->data;
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
    unsigned char *data;
    size_t bytes;
    unsigned char value;
};

static atomic_uint wrong, right;

static void run_fill(void *argument)
{
    const struct kernel *k = argument;
    memset(k->data, k->value, k->bytes);
}

static void run_compare(void *argument)
{
    const struct kernel *k = argument;
    size_t same = 0;
    while (same < k->bytes && k->data[same] == k->value)
        same++;
    atomic_fetch_add(same == k->bytes ? &right : &wrong, 1);
}

static void submit(const char *name, void (*run)(void *), unsigned stream,
                   const struct memory *memory, unsigned char value)
{
    struct kernel *k = malloc(sizeof(*k));
    check(!k, "malloc");
    *k = (struct kernel){memory->data, memory->bytes, value};
    struct sim_work work = {.name = name, .run = run, .destroy = free, .arg = k};
    struct sim_access access = {
        .address = k->data, .bytes = k->bytes, .write = run == run_fill};
    check(sim_submit(streams[stream], &work, &access, 1), name);
}

// --- The model

// What the script made. It is over when neither script nor graph holds it.
struct tensor {
    struct storage *storage; // the script's reference, or NULL
    unsigned handles; // of the graph
    unsigned stream; // that it belongs to
    unsigned readers; // streams, a bit each, since that stream waited for them
    uint64_t version;
    unsigned char value;
};

// What the graph holds: one save.
struct handle {
    struct actswap_page *page;
    struct storage *kept; // where the library did not want it
    struct tensor *tensor;
    uint64_t version;
};

static struct tensor tensors[TENSORS];
static struct handle handles[HANDLES];
static unsigned handle_count, depth, blocks;
static uint64_t let_back; // needs that brought a page in

static bool is_over(const struct tensor *tensor)
{
    return !tensor->storage && !tensor->handles;
}

static struct tensor *any_held(void)
{
    struct tensor *tensor = &tensors[chance(TENSORS)];
    return tensor->storage ? tensor : NULL;
}

static void join_readers(struct tensor *tensor)
{
    for (unsigned i = 0; i <= STREAMS; i++)
        if (tensor->readers & 1u << i)
            wait_between(tensor->stream, i);
    tensor->readers = 0;
}

static void write_value(struct tensor *tensor)
{
    tensor->value = (unsigned char)(1 + chance(250));
    submit("fill", run_fill, tensor->stream, tensor->storage->memory, tensor->value);
}

static void compare_on(unsigned stream, struct tensor *tensor,
                       const struct memory *memory)
{
    wait_between(stream, tensor->stream);
    submit("compare", run_compare, stream, memory, tensor->value);
    tensor->readers |= 1u << stream;
}

// --- What the script does

static void create(void)
{
    struct tensor *tensor = &tensors[chance(TENSORS)];
    if (!is_over(tensor))
        return;
    *tensor = (struct tensor){.stream = any_stream()};
    tensor->storage =
        storage_create((size_t)UNIT << chance(SIZES), streams[tensor->stream]);
    write_value(tensor);
}

static void read_it(void)
{
    struct tensor *tensor = any_held();
    if (tensor)
        compare_on(any_stream(), tensor, tensor->storage->memory);
}

static void change(void)
{
    struct tensor *tensor = any_held();
    if (!tensor)
        return;
    join_readers(tensor);
    tensor->version++;
    write_value(tensor);
}

// The storage gets other memory, as by resize_(0) and back: what the graph holds of it is
// the new bytes.
static void replace(void)
{
    struct tensor *tensor = any_held();
    if (!tensor)
        return;
    join_readers(tensor);
    struct memory *old = tensor->storage->memory;
    give_memory(old);
    if (chance(2)) { // somebody gets the old memory
        struct memory *other = take_memory(old->bytes, old->stream);
        submit("fill", run_fill, tensor->stream, other, 255);
        give_memory(other);
    }
    tensor->storage->memory = take_memory(old->bytes, old->stream);
    write_value(tensor);
}

// The graph may be the last to hold it, and a stream may read it still.
static void forget(void)
{
    struct tensor *tensor = any_held();
    if (!tensor)
        return;
    if (!tensor->handles)
        join_readers(tensor);
    storage_drop(tensor->storage);
    tensor->storage = NULL;
}

static void replace_stream(void)
{
    unsigned number = 1 + chance(STREAMS);
    for (unsigned i = 0; i < TENSORS; i++)
        if (!is_over(&tensors[i]) && tensors[i].stream == number)
            return; // the allocator knows it
    for (unsigned i = 0; i < TENSORS; i++)
        if (tensors[i].readers & 1u << number)
            return; // it is to be waited for
    check(cudaStreamDestroy(streams[number]), "cudaStreamDestroy");
    make_stream(number);
}

// Under `late` this runs what the stream is ordered behind, and nothing else.
static void synchronize(void)
{
    if (chance(3) == 0)
        check(cudaStreamSynchronize(streams[any_stream()]), "cudaStreamSynchronize");
}

// --- What the framework does

static void save(void)
{
    struct tensor *tensor = any_held();
    if (!tensor || handle_count == HANDLES)
        return;
    unsigned stream = any_stream();
    compare_on(stream, tensor, tensor->storage->memory);
    const struct memory *memory = tensor->storage->memory;
    struct actswap_saved saved = {
        .size = sizeof(saved),
        .address = memory->data,
        .bytes = memory->bytes,
        .used_bytes = memory->bytes,
        .version = tensor->version,
        .stream = streams[stream],
        .ref = tensor->storage,
    };
    struct handle *handle = &handles[handle_count++];
    *handle = (struct handle){.tensor = tensor, .version = tensor->version};
    tensor->storage->references++;
    if (actswap_save(&saved, &handle->page))
        handle->kept = tensor->storage;
    tensor->handles++;
}

static uint64_t entered[DEPTH];

static void enter_block(void)
{
    if (depth == DEPTH)
        return;
    entered[depth++] = ++blocks;
    check(actswap_block(ACTSWAP_ENTER, blocks, NULL) < 0, "entering a block");
}

static void leave_block(void)
{
    if (depth)
        check(actswap_block(ACTSWAP_EXIT, entered[--depth], NULL), "leaving a block");
}

static void use(struct handle *handle)
{
    unsigned stream = any_stream();
    if (handle->version != handle->tensor->version)
        return; // the framework would raise
    const struct storage *storage = handle->kept;
    if (handle->page) {
        struct actswap_resident resident = {.size = sizeof(resident)};
        check(actswap_need(handle->page, streams[stream], &resident), "actswap_need");
        storage = resident.ref;
        let_back += storage != handle->tensor->storage;
    }
    compare_on(stream, handle->tensor, storage->memory);
}

// The order of dropping is any; the tensor's memory waits for its readers before the last.
static void drop(unsigned at)
{
    struct handle handle = handles[at];
    handles[at] = handles[--handle_count];
    if (--handle.tensor->handles == 0 && !handle.tensor->storage)
        join_readers(handle.tensor);
    if (handle.kept)
        storage_drop(handle.kept);
    actswap_drop(handle.page);
}

// --- A step

static void (*const forward_ops[])(void) = {
    create,      create,      create,      save,           save,        save,
    read_it,     read_it,     forget,      forget,         change,      replace,
    enter_block, leave_block, leave_block, replace_stream, synchronize,
};

static void forward(void)
{
    check(actswap_mark(ACTSWAP_FORWARD), "a mark");
    for (int i = 0; i < FORWARD_OPS; i++)
        forward_ops[chance(sizeof(forward_ops) / sizeof(*forward_ops))]();
    while (depth)
        leave_block();
}

static void backward(bool keep)
{
    check(actswap_mark(ACTSWAP_BACKWARD), "a mark");
    for (unsigned left = handle_count; left--;) {
        unsigned at = keep ? left : chance(handle_count);
        if (chance(8))
            use(&handles[at]);
        if (chance(4) == 0)
            forget();
        synchronize();
        if (!keep)
            drop(at);
    }
    check(actswap_mark(ACTSWAP_BACKWARD_END), "a mark");
}

static void step(void)
{
    forward();
    if (chance(3) == 0)
        backward(true);
    if (chance(3) == 0)
        forward(); // two losses, or a graph that is kept over the next forward
    backward(false);
    for (int i = 0; i < TENSORS; i++)
        forget(); // what is kept is old in the next step
    check(actswap_mark(ACTSWAP_OPTIMIZER), "a mark");
    check(actswap_mark(ACTSWAP_STEP), "a mark");
}

static void start(void)
{
    static const struct actswap_verbs verbs = {
        .size = sizeof(verbs),
        .allocate = allocate,
        .release = release,
        .framework = "pager_random",
        .holders = holders,
    };
    if (!cudaMalloc || !sim_submit || !actswap_attach)
        check(1, "preloading libactswap and the simulated runtime");
    for (unsigned i = 1; i <= STREAMS; i++)
        make_stream(i);
    check(actswap_attach(&verbs, NULL), "actswap_attach");
}

static void forget_all(void)
{
    for (unsigned i = 0; i < TENSORS; i++)
        if (tensors[i].storage) {
            join_readers(&tensors[i]);
            storage_drop(tensors[i].storage);
        }
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: pager_random SEED STEPS\n");
        return 2;
    }
    state = (uint32_t)strtoul(arguments[1], NULL, 10) * 2654435769u + 1;
    start();
    for (unsigned long left = strtoul(arguments[2], NULL, 10); left--;)
        step();
    forget_all();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    struct actswap_stats stats = {.size = sizeof(stats)};
    check(actswap_stats(&stats), "actswap_stats");
    printf("right %u, wrong %u, storages %d, pages %llu, out %llu, in %llu, back %llu\n",
           right, wrong, storages, (unsigned long long)stats.pages,
           (unsigned long long)stats.out_bytes, (unsigned long long)stats.in_bytes,
           (unsigned long long)let_back);
    // What nothing checks is not right.
    bool moved = stats.in_bytes && stats.released_bytes && let_back;
    return wrong || storages || stats.pages || !moved;
}
