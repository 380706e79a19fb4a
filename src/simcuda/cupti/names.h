// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CUPTI_NAMES_H
#define AS_SIMCUDA_CUPTI_NAMES_H

// CUDA's functions by CUPTI's numbers.

#include <cupti.h>

// A function's number, of its last version; 0: it has none. `domain` is what it is of.
CUpti_CallbackId sim_cbid_of(const char *function, CUpti_CallbackDomain *domain);

// The same text, for as long as the process: modules go, and with them their kernels' names.
const char *sim_name_keep(const char *name);

#endif
