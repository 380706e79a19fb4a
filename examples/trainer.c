// SPDX-License-Identifier: Apache-2.0
//
// A small trainer in plain C: no Python, an allocator and a backward of its own. It shows
// what a framework has to tell libactswap (include/actswap/actswap.h), and needs the
// simulated device, as its kernels are C functions:
//
//     ACTSWAP_POLICY=offload actswap rehearse --compute values -- trainer
//
// The model is a stack of residual blocks, y = x + relu(x W + b), trained by AdamW on the
// mean squared error. Losses and a digest of the parameters are printed bit for bit.
#include <actswap/actswap.h>

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/simcuda.h"
#include "trainer_kernels.h"

// Whoever is preloaded has these. Without libactswap the trainer runs all the same.
#pragma weak actswap_attach
#pragma weak actswap_detach
#pragma weak actswap_allocated
#pragma weak actswap_freed
#pragma weak actswap_save
#pragma weak actswap_need
#pragma weak actswap_drop
#pragma weak actswap_block
#pragma weak actswap_block_name
#pragma weak actswap_part
#pragma weak actswap_enough
#pragma weak actswap_tried
#pragma weak actswap_values
#pragma weak actswap_mark
#pragma weak actswap_tag
#pragma weak actswap_root
#pragma weak actswap_stats
#pragma weak cudaMalloc
#pragma weak cudaMemcpyAsync
#pragma weak cudaStreamCreateWithFlags
#pragma weak cudaStreamSynchronize
#pragma weak sim_submit

enum { ROUNDING = 512, BLOCKS_MAX = 64 };
enum { LOSS = BLOCKS_MAX }; // blocks have the numbers before

static cudaStream_t stream;
static bool watched; // libactswap is here

static void check(int result, const char *what)
{
    if (!result)
        return;
    fprintf(stderr, "trainer: %s failed: %d\n", what, result);
    exit(1);
}

// --- Memory: counted references, and a cache of what is free

struct storage {
    float *data;
    size_t bytes;
    int references;
    struct storage *next; // in the cache
};

static struct storage *cache;
static size_t reserved_bytes;

static struct storage *take_cached(size_t bytes)
{
    for (struct storage **place = &cache; *place; place = &(*place)->next) {
        struct storage *found = *place;
        if (found->bytes != bytes)
            continue;
        *place = found->next;
        return found;
    }
    return NULL;
}

static struct storage *storage_create(size_t bytes)
{
    bytes = (bytes + ROUNDING - 1) / ROUNDING * ROUNDING;
    struct storage *storage = take_cached(bytes);
    if (!storage) {
        storage = calloc(1, sizeof(*storage));
        check(!storage, "malloc");
        check(cudaMalloc((void **)&storage->data, bytes), "cudaMalloc");
        storage->bytes = bytes;
        reserved_bytes += bytes;
    }
    storage->references = 1;
    if (watched)
        actswap_allocated(0, storage->data, bytes, reserved_bytes, stream);
    return storage;
}

static struct storage *storage_share(struct storage *storage)
{
    storage->references++;
    return storage;
}

// All work is on one stream, so what is free may be written at once by later work.
static void storage_drop(struct storage *storage)
{
    if (--storage->references)
        return;
    if (watched)
        actswap_freed(0, storage->data, storage->bytes, reserved_bytes);
    storage->next = cache;
    cache = storage;
}

static void *allocate(void *context, int device, size_t bytes, void *wanted_on,
                      void **address)
{
    (void)context;
    (void)device;
    (void)wanted_on; // there is one stream
    struct storage *storage = storage_create(bytes);
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

// --- What forward keeps for backward

struct kept {
    struct storage *storage; // kept by ourselves
    struct actswap_page *page; // or by the library
};

static struct kept keep(struct storage *storage)
{
    struct kept kept = {.storage = storage_share(storage)};
    struct actswap_saved saved = {
        .size = sizeof(saved),
        .address = storage->data,
        .bytes = storage->bytes,
        .used_bytes = storage->bytes,
        .stream = stream,
        .ref = storage,
    };
    if (watched && actswap_save(&saved, &kept.page) == 0)
        kept.storage = NULL; // the reference is the library's now
    return kept;
}

// Ends what keep() began; the caller drops the storage.
static struct storage *fetch(struct kept *kept)
{
    if (!kept->page)
        return kept->storage;
    struct actswap_resident resident = {.size = sizeof(resident)};
    check(actswap_need(kept->page, stream, &resident), "actswap_need");
    struct storage *storage = storage_share(resident.ref);
    actswap_drop(kept->page);
    return storage;
}

// --- Launches

// `written` of the operands, the first ones, are written; all are read.
static void launch(const char *name, void (*run)(void *), struct launch k,
                   struct storage *operands[OPERANDS], int written)
{
    struct sim_access accesses[2 * OPERANDS];
    size_t count = 0;
    struct launch *argument = malloc(sizeof(*argument));
    check(!argument, "malloc");
    for (int i = 0; i < OPERANDS && operands[i]; i++) {
        k.a[i] = operands[i]->data;
        accesses[count++] = (struct sim_access){
            .address = k.a[i], .bytes = operands[i]->bytes, .write = i < written};
    }
    *argument = k;
    struct sim_work work = {.name = name, .run = run, .destroy = free, .arg = argument};
    check(sim_submit(stream, &work, accesses, count), name);
}

#define LAUNCH(run, written, k, ...)                                                     \
    launch(#run, run_##run, k, (struct storage *[OPERANDS]){__VA_ARGS__}, written)

// --- Model

struct parameter {
    struct storage *value, *gradient, *first, *second;
    size_t count;
};

struct block {
    struct parameter weight, bias;
    struct kept input, hidden;
    bool recomputes, tries;
    size_t number;
};

struct model {
    struct block blocks[BLOCKS_MAX];
    size_t layers, rows, columns;
    struct storage *input, *target, *loss;
    int step;
};

static struct launch shape(const struct model *model)
{
    return (struct launch){.rows = model->rows, .columns = model->columns};
}

static size_t activation_bytes(const struct model *model)
{
    return model->rows * model->columns * sizeof(float);
}

static struct storage *hidden_of(const struct model *model, const struct block *block,
                                 struct storage *x)
{
    struct storage *h = storage_create(activation_bytes(model));
    LAUNCH(linear, 1, shape(model), h, x, block->weight.value, block->bias.value);
    return h;
}

static struct storage *forward_block(const struct model *model, struct block *block,
                                     struct storage *x)
{
    struct storage *h = hidden_of(model, block, x);
    struct storage *y = storage_create(activation_bytes(model));
    block->input = keep(x);
    if (!block->recomputes)
        block->hidden = keep(h);
    LAUNCH(relu, 1, shape(model), y, x, h);
    storage_drop(h);
    return y;
}

static struct storage *forward(struct model *model)
{
    struct storage *x = storage_share(model->input);
    for (size_t i = 0; i < model->layers; i++) {
        struct block *block = &model->blocks[i];
        int verdict = watched ? actswap_block(ACTSWAP_ENTER, i, stream) : ACTSWAP_KEEP;
        block->recomputes =
            verdict == ACTSWAP_RECOMPUTE || verdict == ACTSWAP_RECOMPUTE_ON;
        block->tries = verdict == ACTSWAP_TRIAL;
        block->number = i;
        struct storage *y = forward_block(model, block, x);
        storage_drop(x);
        x = y;
        if (watched)
            actswap_block(ACTSWAP_EXIT, i, stream);
    }
    return x;
}

// Drops y. The loss is no block: what it makes has a name, and nothing is decided.
static struct storage *forward_loss(const struct model *model, struct storage *y)
{
    if (watched)
        actswap_part(ACTSWAP_ENTER, LOSS);
    struct storage *dy = storage_create(activation_bytes(model));
    LAUNCH(loss, 2, shape(model), model->loss, dy, y, model->target);
    storage_drop(y);
    if (watched)
        actswap_part(ACTSWAP_EXIT, LOSS);
    return dy;
}

static void read_back(void *host, const struct storage *storage, size_t bytes)
{
    check(cudaMemcpyAsync(host, storage->data, bytes, cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

// FNV-1a
static uint64_t add_digest(uint64_t digest, const struct storage *storage, size_t bytes)
{
    unsigned char *host = malloc(bytes);
    check(!host, "malloc");
    read_back(host, storage, bytes);
    for (size_t i = 0; i < bytes; i++)
        digest = (digest ^ host[i]) * 1099511628211U;
    free(host);
    return digest;
}

// Runs the block again and tells whether that gives what was kept. It has no state that
// would have to be put back.
static void try_again(const struct model *model, struct block *block, struct storage *x,
                      const struct storage *kept)
{
    const size_t bytes = activation_bytes(model);
    struct storage *h = hidden_of(model, block, x);
    const bool differs = add_digest(0, h, bytes) != add_digest(0, kept, bytes);
    const struct actswap_trial trial = {
        .size = sizeof(trial),
        .faults = differs ? 1U << ACTSWAP_FAULT_VALUES : 0,
        .saved_bytes = x->bytes + h->bytes,
        .boundary_bytes = x->bytes,
        .values = actswap_values(),
    };
    actswap_tried(block->number, &trial);
    block->tries = false;
    storage_drop(h);
}

static struct storage *backward_block(const struct model *model, struct block *block,
                                      struct storage *dy)
{
    struct storage *x = fetch(&block->input);
    struct storage *h =
        block->recomputes ? hidden_of(model, block, x) : fetch(&block->hidden);
    if (block->tries)
        try_again(model, block, x, h);
    struct storage *dh = storage_create(activation_bytes(model));
    LAUNCH(relu_back, 1, shape(model), dh, dy, h);
    storage_drop(h);
    LAUNCH(weight_back, 2, shape(model), block->weight.gradient, block->bias.gradient, dh,
           x);
    storage_drop(x);
    struct storage *dx = storage_create(activation_bytes(model));
    LAUNCH(input_back, 1, shape(model), dx, dy, dh, block->weight.value);
    storage_drop(dh);
    storage_drop(dy);
    return dx;
}

static void update(const struct model *model, struct parameter *p)
{
    struct launch k = {.rows = 1, .columns = p->count, .step = model->step};
    LAUNCH(adamw, 4, k, p->value, p->gradient, p->first, p->second);
}

static void mark(enum actswap_moment moment)
{
    if (watched)
        actswap_mark(moment);
}

static float train_step(struct model *model)
{
    model->step++;
    mark(ACTSWAP_FORWARD);
    struct storage *dy = forward_loss(model, forward(model));
    if (watched)
        actswap_root(0, model->loss->data, sizeof(float), stream);
    mark(ACTSWAP_BACKWARD);
    for (size_t i = model->layers; i-- > 0;)
        dy = backward_block(model, &model->blocks[i], dy);
    storage_drop(dy);
    mark(ACTSWAP_BACKWARD_END);
    mark(ACTSWAP_OPTIMIZER);
    for (size_t i = 0; i < model->layers; i++) {
        update(model, &model->blocks[i].weight);
        update(model, &model->blocks[i].bias);
    }
    mark(ACTSWAP_STEP);
    float loss;
    read_back(&loss, model->loss, sizeof(loss));
    return loss;
}

// --- Beginning and end

// Numbers between -scale and scale, the same everywhere.
static struct storage *create_filled(size_t count, float scale,
                                     enum actswap_category category)
{
    static uint32_t random = 2463534242;
    float *host = malloc(count * sizeof(float));
    check(!host, "malloc");
    for (size_t i = 0; i < count; i++) {
        random = random * 1664525 + 1013904223;
        host[i] = scale * ((float)(random >> 8) / 8388608.0F - 1);
    }
    struct storage *storage = storage_create(count * sizeof(float));
    check(cudaMemcpyAsync(storage->data, host, count * sizeof(float),
                          cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    free(host);
    if (watched)
        actswap_tag(0, storage->data, category);
    return storage;
}

static struct parameter create_parameter(size_t count, float scale)
{
    return (struct parameter){
        .value = create_filled(count, scale, ACTSWAP_PARAMETER),
        .gradient = create_filled(count, 0, ACTSWAP_GRADIENT),
        .first = create_filled(count, 0, ACTSWAP_OPTIMIZER_STATE),
        .second = create_filled(count, 0, ACTSWAP_OPTIMIZER_STATE),
        .count = count,
    };
}

static void name_all(const struct model *model)
{
    char name[32];

    for (size_t i = 0; watched && i < model->layers; i++) {
        snprintf(name, sizeof(name), "blocks.%zu", i);
        actswap_block_name(i, name);
    }
    if (watched)
        actswap_block_name(LOSS, "loss");
}

static void create_model(struct model *model)
{
    size_t c = model->columns;
    for (size_t i = 0; i < model->layers; i++) {
        model->blocks[i].weight = create_parameter(c * c, 1 / sqrtf((float)c));
        model->blocks[i].bias = create_parameter(c, 0.1F);
    }
    model->input = create_filled(model->rows * c, 1, ACTSWAP_INPUT);
    model->target = create_filled(model->rows * c, 1, ACTSWAP_INPUT);
    model->loss = create_filled(1, 0, ACTSWAP_UNKNOWN);
    name_all(model);
}

static uint64_t add_parameter(uint64_t digest, const struct parameter *p)
{
    return add_digest(digest, p->value, p->count * sizeof(float));
}

static void print_figures(const struct model *model)
{
    uint64_t digest = 14695981039346656037U;
    for (size_t i = 0; i < model->layers; i++) {
        digest = add_parameter(digest, &model->blocks[i].weight);
        digest = add_parameter(digest, &model->blocks[i].bias);
    }
    printf("parameters %016llx\n", (unsigned long long)digest);
    struct actswap_stats stats = {.size = sizeof(stats)};
    if (watched && actswap_stats(&stats) == 0)
        printf("peak %llu after-forward %llu released %llu out %llu in %llu pages %llu\n",
               (unsigned long long)stats.peak_bytes,
               (unsigned long long)stats.after_forward_bytes,
               (unsigned long long)stats.released_bytes,
               (unsigned long long)stats.out_bytes, (unsigned long long)stats.in_bytes,
               (unsigned long long)stats.pages);
}

static void start(void)
{
    if (!cudaMalloc || !sim_submit) {
        fprintf(stderr, "trainer: there is no simulated device. Start it with: "
                        "actswap rehearse --compute values -- trainer\n");
        exit(1);
    }
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
          "cudaStreamCreateWithFlags");
    if (!actswap_attach)
        return;
    static const struct actswap_verbs verbs = {
        .size = sizeof(verbs),
        .allocate = allocate,
        .release = release,
        .holders = holders,
        .framework = "trainer",
    };
    void *first; // the library attaches to a process that uses CUDA
    check(cudaMalloc(&first, ROUNDING), "cudaMalloc");
    watched = actswap_attach(&verbs, NULL) == 0;
}

static size_t number(int count, char **arguments, int at, size_t otherwise)
{
    return count > at ? strtoul(arguments[at], NULL, 10) : otherwise;
}

int main(int count, char **arguments)
{
    static struct model model;
    size_t steps = number(count, arguments, 1, 3);
    model.layers = number(count, arguments, 2, 4);
    model.rows = number(count, arguments, 3, 4096);
    model.columns = number(count, arguments, 4, 64);
    if (!steps || !model.layers || model.layers > BLOCKS_MAX || !model.rows ||
        !model.columns) {
        fprintf(stderr, "usage: trainer [STEPS [BLOCKS [ROWS [COLUMNS]]]]\n");
        return 2;
    }
    start();
    create_model(&model);
    for (size_t i = 0; i < steps && !(watched && actswap_enough()); i++) {
        union {
            float value;
            uint32_t bits;
        } loss = {.value = train_step(&model)};
        printf("loss %zu %08x\n", i + 1, loss.bits);
    }
    print_figures(&model);
    if (watched)
        actswap_detach();
    return 0;
}
