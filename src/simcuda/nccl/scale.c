// SPDX-License-Identifier: Apache-2.0
#include "simcuda/nccl/scale.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/nccl/comm.h"
#include "simcuda/nccl/fold.h"
#include "simcuda/simcuda.h"

enum { OPS_MAX = 256 };

// Operators of the program's own, numbered from ncclNumOps.
struct op {
    bool used;
    ncclDataType_t type;
    const void *device; // where the factor is, or NULL: it is `value`
    _Alignas(double) char value[sizeof(double)];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct op ops[OPS_MAX];

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *made, void *scalar,
                                      ncclDataType_t type, ncclScalarResidence_t where,
                                      ncclComm_t comm)
{
    const ncclResult_t result = sim_comm_check(comm);
    size_t bytes;

    if (result)
        return result;
    if (!made || !scalar || !sim_is_floating(type) || !sim_type_bytes(type, 1, &bytes))
        return ncclInvalidArgument;
    struct op op = {.used = true, .type = type};

    if (where == ncclScalarDevice)
        op.device = scalar;
    else
        memcpy(op.value, scalar, bytes);
    int place = 0;

    pthread_mutex_lock(&lock);
    while (place < OPS_MAX && ops[place].used)
        place++;
    if (place < OPS_MAX)
        ops[place] = op;
    pthread_mutex_unlock(&lock);
    if (place == OPS_MAX)
        return ncclInternalError;
    *made = (ncclRedOp_t)((int)ncclNumOps + place);
    return ncclSuccess;
}

static struct op *find(ncclRedOp_t op)
{
    const int place = (int)op - (int)ncclNumOps;

    return place >= 0 && place < OPS_MAX && ops[place].used ? &ops[place] : NULL;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    const ncclResult_t result = sim_comm_check(comm);

    if (result)
        return result;
    pthread_mutex_lock(&lock);
    struct op *const found = find(op);

    if (found)
        found->used = false;
    pthread_mutex_unlock(&lock);
    return found ? ncclSuccess : ncclInvalidArgument;
}

struct work {
    struct op op;
    void *values;
    size_t count;
};

static void run(void *arg)
{
    const struct work *work = arg;
    const struct op *op = &work->op;

    sim_multiply(work->values, work->count, op->type,
                 sim_load(op->device ? op->device : op->value, 0, op->type));
}

static bool look_up(ncclRedOp_t number, struct op *op)
{
    pthread_mutex_lock(&lock);
    const struct op *const found = find(number);

    if (found)
        *op = *found;
    pthread_mutex_unlock(&lock);
    return found;
}

ncclResult_t sim_scale(void *values, size_t count, ncclDataType_t type,
                       ncclRedOp_t number, cudaStream_t stream)
{
    struct op op;
    size_t bytes;

    if (!look_up(number, &op) || op.type != type || !sim_type_bytes(type, count, &bytes))
        return ncclInvalidArgument;
    if (sim_compute() == SIM_SHAPES || !count)
        return ncclSuccess;
    struct work *const work = malloc(sizeof(*work));

    if (!work)
        return ncclSystemError;
    *work = (struct work){op, values, count};
    const struct sim_work entry = {
        .name = "ncclRedOpCreatePreMulSum", .run = run, .destroy = free, .arg = work};
    const struct sim_access access[] = {
        {.address = values, .bytes = bytes, .write = true},
        {.address = op.device, .bytes = bytes / count}};

    // cppcheck-suppress memleak ; the queue frees it
    return sim_submit(stream, &entry, access, op.device ? 2 : 1) ? ncclUnhandledCudaError
                                                                 : ncclSuccess;
}
