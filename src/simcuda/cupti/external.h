// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CUPTI_EXTERNAL_H
#define AS_SIMCUDA_CUPTI_EXTERNAL_H

// Numbers that a program gives to what its thread does, a stack for each kind.
//
// Thread-safety: the stacks are the calling thread's.

#include <stdint.h>

// Records which numbers the call has that is of that correlation: each stack's top.
void sim_external_add(uint32_t correlation);

#endif
