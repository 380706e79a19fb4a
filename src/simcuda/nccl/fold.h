// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_NCCL_FOLD_H
#define AS_SIMCUDA_NCCL_FOLD_H

// What reductions do with the values of a type.

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool sim_is_floating(ncclDataType_t type); // and no narrower than 16 bits
bool sim_can_fold(ncclDataType_t type);

// A value of floating point.
double sim_load(const void *values, size_t n, ncclDataType_t type);

// 1 / count, as the type has it.
double sim_part(ncclDataType_t type, int count);

// Floating point, by a factor of the same type.
void sim_multiply(void *values, size_t count, ncclDataType_t type, double by);

// into[n] = into[n] OP more[n]; OP is ncclSum, ncclProd, ncclMax or ncclMin.
void sim_fold(void *into, const void *more, size_t count, ncclDataType_t type,
              ncclRedOp_t op);

// Integers.
void sim_divide(void *values, size_t count, ncclDataType_t type, int by);

#endif
