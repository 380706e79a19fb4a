// SPDX-License-Identifier: Apache-2.0
#include "simcuda/nccl/comm.h"
#include "simcuda/nccl/scale.h"

// With one rank every reduction but a scaled one is the identity, and what is gathered,
// scattered or exchanged is the rank's own. A collective is not delayed to the end of its
// group: on one rank nothing can wait for it.

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

static ncclResult_t pass_on(void *to, const void *from, size_t count, ncclDataType_t type,
                            int root, ncclComm_t comm, cudaStream_t stream)
{
    size_t bytes;
    const ncclResult_t result = sim_comm_check(comm);

    if (result)
        return result;
    if (root < 0 || root >= comm->size || !sim_type_bytes(type, count, &bytes))
        return ncclInvalidArgument;
    return sim_comm_copy(to, from, bytes, stream);
}

static ncclResult_t reduce(void *to, const void *from, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    const ncclResult_t result = pass_on(to, from, count, type, root, comm, stream);

    if (result || (int)op < (int)ncclNumOps)
        return result;
    return sim_scale(to, count, type, op, stream);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return reduce(to, from, count, type, op, 0, comm, stream);
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return reduce(to, from, count, type, op, root, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream)
{
    return reduce(to, from, count, type, op, 0, comm, stream);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream)
{
    return pass_on(to, from, count, type, root, comm, stream);
}

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream)
{
    return pass_on(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return pass_on(to, from, count, type, 0, comm, stream);
}

ncclResult_t ncclAlltoAll(const void *from, void *to, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream)
{
    return pass_on(to, from, count, type, 0, comm, stream);
}

ncclResult_t ncclGather(const void *from, void *to, size_t count, ncclDataType_t type,
                        int root, ncclComm_t comm, cudaStream_t stream)
{
    return pass_on(to, from, count, type, root, comm, stream);
}
