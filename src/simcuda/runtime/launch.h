// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_LAUNCH_H
#define AS_SIMCUDA_RUNTIME_LAUNCH_H

// What a launch may do and leaves behind: host passes, allowances, and kernels whose
// writes are named. All of it is the calling thread's.

#include <stdbool.h>

#include "simcuda/order/queue.h"

// Whether a host pass may read there.
bool sim_host_pass_reads(const void *address);

// Enters what loses its values by a launch outside a host pass. False: the launch is an
// error.
bool sim_launch_leaves(const char *kernel, struct sim_lost *lost);

#endif
