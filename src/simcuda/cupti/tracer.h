// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CUPTI_TRACER_H
#define AS_SIMCUDA_CUPTI_TRACER_H

// From what the runtime tells (runtime/trace.h) to records and callbacks.
//
// Thread-safety: every function may be called from any thread.

#include <stdint.h>

// Has the runtime tell, as long as anybody wants to know.
void sim_cupti_attach(void);

// The number of a device's context.
uint32_t sim_cupti_context(int device);

#endif
