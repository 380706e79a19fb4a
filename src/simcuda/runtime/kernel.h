// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_KERNEL_H
#define AS_SIMCUDA_RUNTIME_KERNEL_H

// Kernels: registered by name, launched to no effect.
//
// Thread-safety: every function may be called from any thread.

#include <stddef.h>

// For the simulated driver, which finds them by name.
int sim_launch(const char *name, void *stream);
int sim_resident_blocks(int block, size_t shared_bytes);

#endif
