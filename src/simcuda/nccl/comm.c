// SPDX-License-Identifier: Apache-2.0
#include "simcuda/nccl/comm.h"

#include <stdarg.h>
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

ncclResult_t sim_comm_refuse(ncclResult_t result, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(last_error, sizeof(last_error), format, args);
    va_end(args);
    fprintf(stderr, "simcuda: error: NCCL: %s\n", last_error);
    return result;
}

static struct ncclComm *create(int size, int rank)
{
    struct ncclComm *comm = calloc(1, sizeof(*comm));

    if (!comm)
        return NULL;
    comm->rank = rank;
    comm->size = size;
    if (cudaGetDevice(&comm->device))
        comm->device = 0;
    return comm;
}

static ncclResult_t make(ncclComm_t *made, int size, int rank)
{
    if (!made || size < 1 || rank < 0 || rank >= size)
        return ncclInvalidArgument;
    if (size > 1)
        return sim_comm_refuse(ncclInvalidUsage,
                               "a communicator of %d ranks in as many processes or "
                               "threads: simcuda has one rank, or all in one group of "
                               "one thread (ncclCommInitAll)",
                               size);
    *made = create(size, rank);
    return *made ? ncclSuccess : ncclSystemError;
}

static void release(struct sim_clique *clique)
{
    if (clique && atomic_fetch_sub(&clique->references, 1) == 1)
        free(clique);
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
    struct sim_clique *clique;

    if (!comms || count < 1)
        return ncclInvalidArgument;
    clique = calloc(1, sizeof(*clique) + (size_t)count * sizeof(void *));
    if (!clique)
        return ncclSystemError;
    atomic_init(&clique->references, count);
    for (int rank = 0; rank < count; rank++) {
        struct ncclComm *const comm = create(count, rank);

        if (!comm) {
            while (rank--)
                free(comms[rank]);
            free(clique);
            return ncclSystemError;
        }
        comm->device = devices ? devices[rank] : rank;
        comm->clique = clique;
        clique->ranks[rank] = comms[rank] = comm;
    }
    return ncclSuccess;
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
    if (comm)
        release(comm->clique);
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

// An event is recorded where it was created.
static cudaError_t record(cudaEvent_t *event, const struct sim_lane *lane)
{
    cudaError_t error = cudaSetDevice(lane->comm->device);

    if (!error)
        error = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
    return error ? error : cudaEventRecord(*event, lane->stream);
}

ncclResult_t sim_lane_wait(const struct sim_lane *later, const struct sim_lane *earlier)
{
    cudaEvent_t event = NULL;
    int device;

    if (later->stream == earlier->stream && later->comm->device == earlier->comm->device)
        return ncclSuccess;
    if (cudaGetDevice(&device))
        return ncclUnhandledCudaError;
    cudaError_t error = record(&event, earlier);

    if (!error)
        error = cudaSetDevice(later->comm->device);
    if (!error)
        error = cudaStreamWaitEvent(later->stream, event, 0);
    if (event && cudaEventDestroy(event))
        error = cudaErrorUnknown;
    return cudaSetDevice(device) || error ? ncclUnhandledCudaError : ncclSuccess;
}
