// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_NCCL_COMM_H
#define AS_SIMCUDA_NCCL_COMM_H

// A collective library of our own, written from the public nccl.h. So far a communicator
// has one rank: what a collective does then is at most a copy on the caller's stream.
//
// Thread-safety: communicators may be used from any thread, as NCCL's.

#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct ncclComm {
    int rank, size;
    atomic_bool aborted;
};

// ncclSuccess, or why `comm` cannot work now.
ncclResult_t sim_comm_check(const struct ncclComm *comm);

// Bytes of `count` values; false if there is no such type, or too many.
bool sim_type_bytes(ncclDataType_t type, size_t count, size_t *bytes);

// Copies on the stream, unless both are the same place.
ncclResult_t sim_comm_copy(void *to, const void *from, size_t bytes, cudaStream_t stream);

#endif
