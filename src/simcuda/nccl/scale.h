// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_NCCL_SCALE_H
#define AS_SIMCUDA_NCCL_SCALE_H

// Reductions that multiply first: ncclRedOpCreatePreMulSum.

#include <nccl.h>
#include <stddef.h>

// Multiplies the values in place by the factor of operator `number`, on the stream.
ncclResult_t sim_scale(void *values, size_t count, ncclDataType_t type,
                       ncclRedOp_t number, cudaStream_t stream);

#endif
