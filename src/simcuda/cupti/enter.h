// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CUPTI_ENTER_H
#define AS_SIMCUDA_CUPTI_ENTER_H

// What every entry point of CUPTI begins with: faults are injected as into the runtime's
// (ACTSWAP_SIM_FAULT), with CUPTI's numbers.

#include "core/export.h"
#include "simcuda/runtime/faults.h"

#define CUPTI_ENTER()                                                                    \
    do {                                                                                 \
        const int fault_ = (int)sim_faults_next(__func__, __builtin_return_address(0));  \
        if (fault_)                                                                      \
            return (CUptiResult)fault_;                                                  \
    } while (0)

#endif
