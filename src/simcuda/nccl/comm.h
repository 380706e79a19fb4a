// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_NCCL_COMM_H
#define AS_SIMCUDA_NCCL_COMM_H

// A collective library of our own, written from the public nccl.h. A communicator has one
// rank, where what a collective does is at most a copy on the caller's stream, or all its
// ranks are of one process and made by ncclCommInitAll (together.h).
//
// Thread-safety: communicators may be used from any thread, as NCCL's.

#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct sim_clique {
    atomic_int references; // of its communicators
    struct ncclComm *ranks[];
};

struct ncclComm {
    int rank, size;
    int device;
    struct sim_clique *clique; // NULL: alone
    atomic_bool aborted;
};

// ncclSuccess, or why `comm` cannot work now.
ncclResult_t sim_comm_check(const struct ncclComm *comm);

// Says why, for ncclGetLastError and on stderr; returns `result`.
ncclResult_t sim_comm_refuse(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Bytes of `count` values; false if there is no such type, or too many.
bool sim_type_bytes(ncclDataType_t type, size_t count, size_t *bytes);

// Copies on the stream, unless both are the same place.
ncclResult_t sim_comm_copy(void *to, const void *from, size_t bytes, cudaStream_t stream);

// A stream of the communicator's device.
struct sim_lane {
    ncclComm_t comm;
    cudaStream_t stream;
};

// Work that comes to `later` waits for what is on `earlier`.
ncclResult_t sim_lane_wait(const struct sim_lane *later, const struct sim_lane *earlier);

#endif
