// SPDX-License-Identifier: Apache-2.0
#include "simcuda/nccl/scale.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/nccl/comm.h"
#include "simcuda/simcuda.h"

enum { OPS_MAX = 256 };

union factor {
    uint16_t bits; // of float16 or bfloat16
    float single;
    double twice;
};

// Operators of the program's own, numbered from ncclNumOps.
struct op {
    bool used;
    ncclDataType_t type;
    const void *device; // where the factor is, or NULL: it is `value`
    union factor value;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct op ops[OPS_MAX];

static bool can_scale(ncclDataType_t type)
{
    return type == ncclFloat16 || type == ncclBfloat16 || type == ncclFloat32 ||
           type == ncclFloat64;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *made, void *scalar,
                                      ncclDataType_t type, ncclScalarResidence_t where,
                                      ncclComm_t comm)
{
    const ncclResult_t result = sim_comm_check(comm);
    size_t bytes;

    if (result)
        return result;
    if (!made || !scalar || !can_scale(type) || !sim_type_bytes(type, 1, &bytes))
        return ncclInvalidArgument;
    struct op op = {.used = true, .type = type};

    if (where == ncclScalarDevice)
        op.device = scalar;
    else
        memcpy(&op.value, scalar, bytes);
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

static float from_half(uint16_t bits)
{
    const int exponent = (bits >> 10) & 31;
    const int fraction = bits & 1023;
    float size;

    if (exponent == 31)
        size = fraction ? NAN : INFINITY;
    else if (exponent)
        size = ldexpf((float)(1024 + fraction), exponent - 25);
    else
        size = ldexpf((float)fraction, -24);
    return bits & 0x8000 ? -size : size;
}

// To nearest, ties to even: rintf's way.
static uint16_t to_half(float value)
{
    const unsigned sign = signbit(value) ? 0x8000 : 0;
    int exponent;

    if (isnan(value))
        return 0x7e00;
    if (fabsf(value) >= 65520)
        return (uint16_t)(sign | 0x7c00);
    if (value == 0)
        return (uint16_t)sign;
    (void)frexpf(fabsf(value), &exponent);
    const int last = exponent - 11 > -24 ? exponent - 11 : -24;
    const float units = rintf(ldexpf(fabsf(value), -last));

    return (uint16_t)(sign | (((unsigned)(last + 24) << 10) + (unsigned)units));
}

static float from_brain(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof(value));
    return value;
}

// To nearest, ties to even.
static uint16_t to_brain(float value)
{
    uint32_t wide;

    if (isnan(value))
        return 0x7fc0;
    memcpy(&wide, &value, sizeof(wide));
    return (uint16_t)((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
}

static void scale_halves(uint16_t *values, size_t count, uint16_t factor)
{
    const float by = from_half(factor);

    for (size_t n = 0; n < count; n++)
        values[n] = to_half(from_half(values[n]) * by);
}

static void scale_brains(uint16_t *values, size_t count, uint16_t factor)
{
    const float by = from_brain(factor);

    for (size_t n = 0; n < count; n++)
        values[n] = to_brain(from_brain(values[n]) * by);
}

static void scale_singles(float *values, size_t count, float by)
{
    for (size_t n = 0; n < count; n++)
        values[n] *= by;
}

static void scale_doubles(double *values, size_t count, double by)
{
    for (size_t n = 0; n < count; n++)
        values[n] *= by;
}

static void run(void *arg)
{
    const struct work *work = arg;
    const union factor *by = work->op.device ? work->op.device : &work->op.value;

    switch (work->op.type) {
    case ncclFloat16:
        scale_halves(work->values, work->count, by->bits);
        break;
    case ncclBfloat16:
        scale_brains(work->values, work->count, by->bits);
        break;
    case ncclFloat32:
        scale_singles(work->values, work->count, by->single);
        break;
    default:
        scale_doubles(work->values, work->count, by->twice);
    }
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
