// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_NCCL_TOGETHER_H
#define AS_SIMCUDA_NCCL_TOGETHER_H

// Collectives of several ranks of one process, as torch.nn.DataParallel makes them: all
// ranks call in one group of one thread, and when that ends, one piece of work on one
// rank's stream, for which those of the others wait, does it for all.
//
// Reductions go by rank, and round after each: the order that NCCL takes is its own.
//
// Thread-safety: a group is its thread's.

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

enum sim_collective {
    SIM_ALL_REDUCE,
    SIM_REDUCE,
    SIM_REDUCE_SCATTER,
    SIM_BROADCAST,
    SIM_ALL_GATHER,
    SIM_ALL_TO_ALL,
    SIM_GATHER,
};

// What a rank asks for, in the words of nccl.h.
struct sim_call {
    enum sim_collective what;
    const void *from;
    void *to;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root; // 0 where there is none
    ncclComm_t comm;
    cudaStream_t stream;
};

// Until the group ends. ncclInvalidUsage: there is none.
ncclResult_t sim_together_add(const struct sim_call *call, bool in_group);

bool sim_in_group(void); // of this thread

// The group ended: all that was added since the last time.
ncclResult_t sim_together_flush(void);

#endif
