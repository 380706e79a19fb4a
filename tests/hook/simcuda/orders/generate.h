// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TESTS_HOOK_SIMCUDA_ORDERS_GENERATE_H
#define AS_TESTS_HOOK_SIMCUDA_ORDERS_GENERATE_H

#include <stddef.h>
#include <stdint.h>

// The text of a program, the same for the same numbers.
void generate(uint64_t seed, uint64_t number, char *text, size_t bytes);

#endif
