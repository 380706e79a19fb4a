// SPDX-License-Identifier: Apache-2.0
#include "simcuda/nccl/together.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/nccl/comm.h"
#include "simcuda/nccl/fold.h"
#include "simcuda/simcuda.h"

static const char *const names[] = {
    [SIM_ALL_REDUCE] = "ncclAllReduce",
    [SIM_REDUCE] = "ncclReduce",
    [SIM_REDUCE_SCATTER] = "ncclReduceScatter",
    [SIM_BROADCAST] = "ncclBroadcast",
    [SIM_ALL_GATHER] = "ncclAllGather",
    [SIM_ALL_TO_ALL] = "ncclAlltoAll",
    [SIM_GATHER] = "ncclGather",
};

static _Thread_local struct sim_call *waiting;
static _Thread_local size_t waiting_count, waiting_capacity;

static bool is_reduction(const struct sim_call *call)
{
    return call->what <= SIM_REDUCE_SCATTER;
}

ncclResult_t sim_together_add(const struct sim_call *call, bool in_group)
{
    const char *const name = names[call->what];

    if (!call->comm->clique)
        return sim_comm_refuse(ncclInvalidUsage, "%s: ranks of other processes", name);
    if (!in_group)
        return sim_comm_refuse(ncclInvalidUsage,
                               "%s of %d ranks of one process outside a group", name,
                               call->comm->size);
    if (is_reduction(call) && (!sim_can_fold(call->type) || call->op >= ncclNumOps))
        return sim_comm_refuse(ncclInvalidArgument,
                               "%s of several ranks with type %d, operator %d", name,
                               (int)call->type, (int)call->op);
    if (waiting_count == waiting_capacity) {
        const size_t capacity = waiting_capacity ? 2 * waiting_capacity : 64;
        struct sim_call *const more = realloc(waiting, capacity * sizeof(*more));

        if (!more)
            return ncclSystemError;
        waiting = more;
        waiting_capacity = capacity;
    }
    waiting[waiting_count++] = *call;
    return ncclSuccess;
}

// --- One collective

struct together {
    size_t bytes, count; // what each call names
    int ranks;
    struct sim_call calls[]; // by rank
};

// How many times `bytes` lie at `from` and at `to` of a rank: 0 where it does not matter.
static int reads(const struct together *all, int rank)
{
    const struct sim_call *call = &all->calls[rank];

    if (call->what == SIM_BROADCAST)
        return rank == call->root;
    return call->what == SIM_REDUCE_SCATTER || call->what == SIM_ALL_TO_ALL ? all->ranks
                                                                            : 1;
}

static int writes(const struct together *all, int rank)
{
    const struct sim_call *call = &all->calls[rank];

    if (call->what == SIM_REDUCE)
        return rank == call->root;
    if (call->what == SIM_GATHER)
        return rank == call->root ? all->ranks : 0;
    return call->what == SIM_ALL_GATHER || call->what == SIM_ALL_TO_ALL ? all->ranks : 1;
}

static const char *part_from(const struct together *all, int rank, int part)
{
    return (const char *)all->calls[rank].from + (size_t)part * all->bytes;
}

static char *part_to(const struct together *all, int rank, int part)
{
    return (char *)all->calls[rank].to + (size_t)part * all->bytes;
}

// As NCCL does: floating point is divided before it is summed, integers after.
static void reduce(const struct together *all, int part, char *result, char *spare)
{
    const struct sim_call *call = all->calls;
    const bool mean = call->op == ncclAvg, floating = sim_is_floating(call->type);
    const ncclRedOp_t op = mean ? ncclSum : call->op;

    for (int rank = 0; rank < all->ranks; rank++) {
        char *const own = rank ? spare : result;

        memcpy(own, part_from(all, rank, part), all->bytes);
        if (mean && floating)
            sim_multiply(own, all->count, call->type, sim_part(call->type, all->ranks));
        if (rank)
            sim_fold(result, own, all->count, call->type, op);
    }
    if (mean && !floating)
        sim_divide(result, all->count, call->type, all->ranks);
}

static void run_reduction(const struct together *all)
{
    char *const result = malloc(2 * all->bytes);

    if (!result)
        sim_fail("no memory to reduce %zu bytes of %d ranks", all->bytes, all->ranks);
    if (all->calls->what == SIM_REDUCE_SCATTER) {
        for (int rank = 0; rank < all->ranks; rank++) {
            reduce(all, rank, result, result + all->bytes);
            memcpy(part_to(all, rank, 0), result, all->bytes);
        }
    } else {
        reduce(all, 0, result, result + all->bytes);
        for (int rank = 0; rank < all->ranks; rank++)
            if (writes(all, rank))
                memcpy(part_to(all, rank, 0), result, all->bytes);
    }
    free(result);
}

static void run(void *arg)
{
    const struct together *all = arg;

    if (is_reduction(all->calls)) {
        run_reduction(all);
        return;
    }
    for (int rank = 0; rank < all->ranks; rank++)
        for (int part = 0; part < writes(all, rank); part++) {
            const enum sim_collective what = all->calls->what;
            const int other = what == SIM_BROADCAST ? all->calls->root : part;

            memmove(part_to(all, rank, part),
                    part_from(all, other, what == SIM_ALL_TO_ALL ? rank : 0), all->bytes);
        }
}

static ncclResult_t submit(struct together *all)
{
    const struct sim_call *const lead = &all->calls[all->calls->root];
    const struct sim_work work = {
        .name = names[lead->what], .run = run, .destroy = free, .arg = all};
    struct sim_access *const accesses = calloc(2 * (size_t)all->ranks, sizeof(*accesses));
    size_t count = 0;

    if (!accesses) {
        free(all);
        return ncclSystemError;
    }
    for (int rank = 0; rank < all->ranks; rank++) {
        if (reads(all, rank))
            accesses[count++] =
                (struct sim_access){.address = all->calls[rank].from,
                                    .bytes = (size_t)reads(all, rank) * all->bytes};
        if (writes(all, rank))
            accesses[count++] =
                (struct sim_access){.address = all->calls[rank].to,
                                    .bytes = (size_t)writes(all, rank) * all->bytes,
                                    .write = true,
                                    .unread = true};
    }

    const int error = sim_submit(lead->stream, &work, accesses, count);

    free(accesses);
    return error ? ncclUnhandledCudaError : ncclSuccess;
}

// All others wait for `lead`, or it for them.
static ncclResult_t gather(const struct sim_lane *lanes, int ranks, int lead, bool before)
{
    ncclResult_t result = ncclSuccess;

    for (int rank = 0; rank < ranks && !result; rank++)
        result = before ? sim_lane_wait(&lanes[lead], &lanes[rank])
                        : sim_lane_wait(&lanes[rank], &lanes[lead]);
    return result;
}

// The calls are gone once they are submitted.
static ncclResult_t perform(struct together *all)
{
    const int root = all->calls->root, ranks = all->ranks;
    struct sim_lane *const lanes = calloc((size_t)ranks, sizeof(*lanes));
    ncclResult_t result = lanes ? ncclSuccess : ncclSystemError;
    const int roots = all->calls[root].comm->device;
    int device = 0;

    for (int rank = 0; lanes && rank < ranks; rank++)
        lanes[rank] = (struct sim_lane){all->calls[rank].comm, all->calls[rank].stream};
    if (!result)
        result = gather(lanes, ranks, root, true);
    if (!result && (cudaGetDevice(&device) || cudaSetDevice(roots)))
        result = ncclUnhandledCudaError;
    if (result) {
        free(all);
        free(lanes);
        return result;
    }
    result = submit(all);
    if (cudaSetDevice(device) && !result)
        result = ncclUnhandledCudaError;
    if (!result)
        result = gather(lanes, ranks, root, false);
    free(lanes);
    return result;
}

// --- The group's end

// The rank's first call that still waits, or NULL.
static struct sim_call *first_of(const struct sim_clique *clique, int rank)
{
    for (size_t i = 0; i < waiting_count; i++)
        if (waiting[i].comm == clique->ranks[rank])
            return &waiting[i];
    return NULL;
}

static bool fit(const struct sim_call *a, const struct sim_call *b)
{
    return a->what == b->what && a->count == b->count && a->type == b->type &&
           a->op == b->op && a->root == b->root;
}

// What the first call that waits is one of; its calls wait no more.
static ncclResult_t take(struct together **taken)
{
    const struct sim_call first = waiting[0];
    const struct sim_clique *const clique = first.comm->clique;
    const int ranks = first.comm->size;
    struct together *const all =
        malloc(sizeof(*all) + (size_t)ranks * sizeof(*all->calls));

    if (!all)
        return ncclSystemError;
    all->ranks = ranks;
    all->count = first.count;
    (void)sim_type_bytes(first.type, first.count, &all->bytes);
    for (int rank = 0; rank < ranks; rank++) {
        struct sim_call *const call = first_of(clique, rank);

        if (!call || !fit(call, &first)) {
            free(all);
            return sim_comm_refuse(ncclInvalidUsage, "%s: rank %d of %d %s",
                                   names[first.what], rank, ranks,
                                   call ? "asks for something else" : "is not there");
        }
        all->calls[rank] = *call;
        call->comm = NULL;
    }
    *taken = all;
    return ncclSuccess;
}

static void drop_taken(void)
{
    size_t kept = 0;

    for (size_t i = 0; i < waiting_count; i++)
        if (waiting[i].comm)
            waiting[kept++] = waiting[i];
    waiting_count = kept;
}

ncclResult_t sim_together_flush(void)
{
    ncclResult_t result = ncclSuccess;

    while (waiting_count && !result) {
        struct together *all = NULL;

        result = take(&all);
        if (all && all->bytes)
            result = perform(all);
        else
            free(all);
        drop_taken();
    }
    free(waiting);
    waiting = NULL;
    waiting_count = waiting_capacity = 0;
    return result;
}
