// SPDX-License-Identifier: Apache-2.0
#include "simcuda/nccl/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Thread_local char last_error[160];

static const char *const result_texts[ncclNumResults] = {
    "no error",       "unhandled cuda error",  "unhandled system error",
    "internal error", "invalid argument",      "invalid usage",
    "remote error",   "operation in progress", "timeout",
};

const char *ncclGetErrorString(ncclResult_t result)
{
    const unsigned n = result;

    return n < ncclNumResults ? result_texts[n] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last_error;
}

ncclResult_t ncclGetVersion(int *version)
{
    if (!version)
        return ncclInvalidArgument;
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    struct timespec now;

    if (!id)
        return ncclInvalidArgument;
    memset(id, 0, sizeof(*id));
    if (clock_gettime(CLOCK_REALTIME, &now))
        return ncclSystemError;
    (void)snprintf(id->internal, sizeof(id->internal), "simnccl.%ld.%ld.%ld",
                   (long)getpid(), (long)now.tv_sec, now.tv_nsec);
    return ncclSuccess;
}

ncclResult_t sim_comm_check(const struct ncclComm *comm)
{
    if (!comm)
        return ncclInvalidArgument;
    return atomic_load(&comm->aborted) ? ncclInvalidUsage : ncclSuccess;
}

static ncclResult_t make(ncclComm_t *made, int size, int rank)
{
    if (!made || size < 1 || rank < 0 || rank >= size)
        return ncclInvalidArgument;
    if (size > 1) {
        (void)snprintf(last_error, sizeof(last_error),
                       "a communicator of %d ranks: simcuda has one rank so far", size);
        fprintf(stderr, "simcuda: error: %s\n", last_error);
        return ncclInvalidUsage;
    }
    struct ncclComm *comm = calloc(1, sizeof(*comm));

    if (!comm)
        return ncclSystemError;
    comm->rank = rank;
    comm->size = size;
    *made = comm;
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    (void)id;
    (void)config;
    return make(comm, size, rank);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size, ncclUniqueId id, int rank)
{
    (void)id;
    return make(comm, size, rank);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int size, int rank, int id_count,
                                      ncclUniqueId *ids, ncclConfig_t *config)
{
    (void)id_count;
    (void)ids;
    (void)config;
    return make(comm, size, rank);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    (void)devices;
    return make(comms, count, 0);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                           ncclConfig_t *config)
{
    const ncclResult_t result = sim_comm_check(comm);

    (void)key;
    (void)config;
    if (result || !made)
        return result ? result : ncclInvalidArgument;
    *made = NULL;
    return color == NCCL_SPLIT_NOCOLOR ? ncclSuccess : make(made, 1, 0);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return sim_comm_check(comm);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return ncclCommDestroy(comm);
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
    (void)flags;
    if (!comm)
        return ncclInvalidArgument;
    atomic_store(&comm->aborted, true);
    return ncclSuccess;
}

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
    (void)flags;
    return sim_comm_check(comm);
}

ncclResult_t ncclCommResume(ncclComm_t comm)
{
    return sim_comm_check(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    if (!comm || !error)
        return ncclInvalidArgument;
    *error = ncclSuccess;
    return ncclSuccess;
}

static ncclResult_t answer(ncclComm_t comm, int *to, int value)
{
    const ncclResult_t result = sim_comm_check(comm);

    if (result || !to)
        return result ? result : ncclInvalidArgument;
    *to = value;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    return answer(comm, count, comm ? comm->size : 0);
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    return answer(comm, rank, comm ? comm->rank : 0);
}

// Registration makes transfers faster and changes nothing else.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes,
                              void **handle)
{
    const ncclResult_t result = sim_comm_check(comm);

    (void)bytes;
    if (result || !handle)
        return result ? result : ncclInvalidArgument;
    *handle = buffer;
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    (void)handle;
    return sim_comm_check(comm);
}

// NULL says that there is no window, and that collectives work without one.
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes,
                                    ncclWindow_t *window, int flags)
{
    const ncclResult_t result = sim_comm_check(comm);

    (void)buffer;
    (void)bytes;
    (void)flags;
    if (result || !window)
        return result ? result : ncclInvalidArgument;
    *window = NULL;
    return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    (void)window;
    return sim_comm_check(comm);
}

ncclResult_t ncclMemAlloc(void **pointer, size_t bytes)
{
    return cudaMalloc(pointer, bytes) ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t ncclMemFree(void *pointer)
{
    return cudaFree(pointer) ? ncclUnhandledCudaError : ncclSuccess;
}
