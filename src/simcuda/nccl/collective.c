// SPDX-License-Identifier: Apache-2.0
#include "simcuda/nccl/comm.h"
#include "simcuda/nccl/scale.h"
#include "simcuda/nccl/together.h"

// With one rank every reduction but a scaled one is the identity, and what is gathered,
// scattered or exchanged is the rank's own. Such a collective is not delayed to the end of
// its group: on one rank nothing can wait for it.

bool sim_type_bytes(ncclDataType_t type, size_t count, size_t *bytes)
{
    size_t each;

    switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
        each = 1;
        break;
    case ncclFloat16:
    case ncclBfloat16:
        each = 2;
        break;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
        each = 4;
        break;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
        each = 8;
        break;
    default:
        return false;
    }
    return !__builtin_mul_overflow(each, count, bytes);
}

ncclResult_t sim_comm_copy(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    if (to == from || !bytes)
        return ncclSuccess;
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream)
               ? ncclUnhandledCudaError
               : ncclSuccess;
}

static ncclResult_t alone(const struct sim_call *call, size_t bytes)
{
    const ncclResult_t result = sim_comm_copy(call->to, call->from, bytes, call->stream);

    if (result || (int)call->op < (int)ncclNumOps)
        return result;
    return sim_scale(call->to, call->count, call->type, call->op, call->stream);
}

static ncclResult_t perform(const struct sim_call *call)
{
    const ncclResult_t result = sim_comm_check(call->comm);
    size_t bytes;

    if (result)
        return result;
    if (call->root < 0 || call->root >= call->comm->size ||
        !sim_type_bytes(call->type, call->count, &bytes))
        return ncclInvalidArgument;
    return call->comm->size == 1 ? alone(call, bytes)
                                 : sim_together_add(call, sim_in_group());
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return perform(
        &(struct sim_call){SIM_ALL_REDUCE, from, to, count, type, op, 0, comm, stream});
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return perform(
        &(struct sim_call){SIM_REDUCE, from, to, count, type, op, root, comm, stream});
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream)
{
    return perform(&(struct sim_call){SIM_REDUCE_SCATTER, from, to, count, type, op, 0,
                                      comm, stream});
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream)
{
    return perform(&(struct sim_call){SIM_BROADCAST, from, to, count, type, ncclSum, root,
                                      comm, stream});
}

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return perform(&(struct sim_call){SIM_ALL_GATHER, from, to, count, type, ncclSum, 0,
                                      comm, stream});
}

ncclResult_t ncclAlltoAll(const void *from, void *to, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream)
{
    return perform(&(struct sim_call){SIM_ALL_TO_ALL, from, to, count, type, ncclSum, 0,
                                      comm, stream});
}

ncclResult_t ncclGather(const void *from, void *to, size_t count, ncclDataType_t type,
                        int root, ncclComm_t comm, cudaStream_t stream)
{
    return perform(&(struct sim_call){SIM_GATHER, from, to, count, type, ncclSum, root,
                                      comm, stream});
}
