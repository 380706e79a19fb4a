// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdlib.h>

#include "simcuda/nccl/comm.h"
#include "simcuda/nccl/together.h"

// Point to point, with oneself or within the process: the sends and receives of a group are paired in the order
// in which they came, when the outermost group ends.

// The header declares these two without saying that they take nothing.
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

struct transfer {
    void *buffer;
    size_t bytes;
    int peer;
    struct sim_lane lane;
    struct transfer *next;
};

struct list {
    struct transfer *first, **last;
};

static _Thread_local int depth;
static _Thread_local struct list sends, receives;

static ncclResult_t add(struct list *list, void *buffer, size_t count,
                        ncclDataType_t type, int peer, ncclComm_t comm,
                        cudaStream_t stream)
{
    size_t bytes;
    const ncclResult_t result = sim_comm_check(comm);

    if (result)
        return result;
    if (peer < 0 || peer >= comm->size || !sim_type_bytes(type, count, &bytes))
        return ncclInvalidArgument;
    // Alone it would wait for its other half for ever.
    if (!depth)
        return ncclInvalidUsage;
    struct transfer *const transfer = malloc(sizeof(*transfer));

    if (!transfer)
        return ncclSystemError;
    *transfer = (struct transfer){buffer, bytes, peer, {comm, stream}, NULL};
    if (!list->first)
        list->last = &list->first;
    *list->last = transfer;
    list->last = &transfer->next;
    return ncclSuccess;
}

static void drop(struct list *list)
{
    while (list->first) {
        struct transfer *const next = list->first->next;

        free(list->first);
        list->first = next;
    }
}

// Takes the receive that the send is for out of its list, the first of several, or returns
// NULL.
static struct transfer *take(struct list *list, const struct transfer *send)
{
    const struct ncclComm *from = send->lane.comm;
    const struct ncclComm *to = from->clique ? from->clique->ranks[send->peer] : from;
    struct transfer **place = &list->first;

    while (*place && ((*place)->lane.comm != to || (*place)->peer != from->rank))
        place = &(*place)->next;
    struct transfer *const found = *place;

    if (found)
        *place = found->next;
    return found;
}

static ncclResult_t move(const struct transfer *send, const struct transfer *receive)
{
    if (!receive || receive->bytes != send->bytes)
        return ncclInvalidUsage;
    ncclResult_t result = sim_lane_wait(&receive->lane, &send->lane);

    if (!result)
        result = sim_comm_copy(receive->buffer, send->buffer, send->bytes,
                               receive->lane.stream);
    return result ? result : sim_lane_wait(&send->lane, &receive->lane);
}

static ncclResult_t flush(void)
{
    ncclResult_t result = sim_together_flush();

    for (const struct transfer *send = sends.first; send && !result; send = send->next) {
        struct transfer *const receive = take(&receives, send);

        result = move(send, receive);
        free(receive);
    }
    if (receives.first && !result)
        result = ncclInvalidUsage;
    drop(&sends);
    drop(&receives);
    return result;
}

ncclResult_t ncclSend(const void *buffer, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add(&sends, (void *)(uintptr_t)buffer, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *buffer, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add(&receives, buffer, count, type, peer, comm, stream);
}

bool sim_in_group(void)
{
    return depth;
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (!depth)
        return ncclInvalidUsage;
    return --depth ? ncclSuccess : flush();
}
