// SPDX-License-Identifier: Apache-2.0
#include "simcuda/nccl/fold.h"

#include <math.h>
#include <string.h>

#include "simcuda/simcuda.h"

bool sim_is_floating(ncclDataType_t type)
{
    return type == ncclFloat16 || type == ncclBfloat16 || type == ncclFloat32 ||
           type == ncclFloat64;
}

bool sim_can_fold(ncclDataType_t type)
{
    return type != ncclFloat8e4m3 && type != ncclFloat8e5m2;
}

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

// --- One value. What is computed in double and rounded once is what the narrower type would
// give: of all but double it has more than twice the digits.

double sim_load(const void *values, size_t n, ncclDataType_t type)
{
    switch (type) {
    case ncclFloat16:
        return from_half(((const uint16_t *)values)[n]);
    case ncclBfloat16:
        return from_brain(((const uint16_t *)values)[n]);
    case ncclFloat32:
        return ((const float *)values)[n];
    default:
        return ((const double *)values)[n];
    }
}

static void store(void *values, size_t n, ncclDataType_t type, double value)
{
    switch (type) {
    case ncclFloat16:
        ((uint16_t *)values)[n] = to_half((float)value);
        break;
    case ncclBfloat16:
        ((uint16_t *)values)[n] = to_brain((float)value);
        break;
    case ncclFloat32:
        ((float *)values)[n] = (float)value;
        break;
    default:
        ((double *)values)[n] = value;
    }
}

double sim_part(ncclDataType_t type, int count)
{
    double part = 0;

    store(&part, 0, type, 1.0 / count);
    return sim_load(&part, 0, type);
}

static int64_t load_integer(const void *values, size_t n, ncclDataType_t type)
{
    switch (type) {
    case ncclInt8:
        return ((const int8_t *)values)[n];
    case ncclUint8:
        return ((const uint8_t *)values)[n];
    case ncclInt32:
        return ((const int32_t *)values)[n];
    case ncclUint32:
        return ((const uint32_t *)values)[n];
    default:
        return ((const int64_t *)values)[n];
    }
}

// Too large a result wraps around, as on the device.
static void store_integer(void *values, size_t n, ncclDataType_t type, uint64_t value)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8:
        ((uint8_t *)values)[n] = (uint8_t)value;
        break;
    case ncclInt32:
    case ncclUint32:
        ((uint32_t *)values)[n] = (uint32_t)value;
        break;
    default:
        ((uint64_t *)values)[n] = value;
    }
}

// --- All values

void sim_multiply(void *values, size_t count, ncclDataType_t type, double by)
{
    for (size_t n = 0; n < count; n++)
        store(values, n, type, sim_load(values, n, type) * by);
}

static double folded(double a, double b, ncclRedOp_t op)
{
    switch ((int)op) {
    case ncclProd:
        return a * b;
    case ncclMax:
        return a > b ? a : b;
    case ncclMin:
        return a < b ? a : b;
    default:
        return a + b;
    }
}

static uint64_t folded_integer(int64_t a, int64_t b, ncclRedOp_t op, bool is_signed)
{
    const bool less = is_signed ? a < b : (uint64_t)a < (uint64_t)b;

    switch ((int)op) {
    case ncclProd:
        return (uint64_t)a * (uint64_t)b;
    case ncclMax:
        return (uint64_t)(less ? b : a);
    case ncclMin:
        return (uint64_t)(less ? a : b);
    default:
        return (uint64_t)a + (uint64_t)b;
    }
}

void sim_fold(void *into, const void *more, size_t count, ncclDataType_t type,
              ncclRedOp_t op)
{
    for (size_t n = 0; n < count; n++)
        if (sim_is_floating(type))
            store(into, n, type,
                  folded(sim_load(into, n, type), sim_load(more, n, type), op));
        else
            store_integer(into, n, type,
                          folded_integer(load_integer(into, n, type),
                                         load_integer(more, n, type), op,
                                         type != ncclUint64));
}

void sim_divide(void *values, size_t count, ncclDataType_t type, int by)
{
    for (size_t n = 0; n < count; n++) {
        const int64_t value = load_integer(values, n, type);

        store_integer(values, n, type,
                      type == ncclUint64 ? (uint64_t)value / (unsigned)by
                                         : (uint64_t)(value / by));
    }
}
