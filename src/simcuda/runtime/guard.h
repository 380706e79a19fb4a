// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_GUARD_H
#define AS_SIMCUDA_RUNTIME_GUARD_H

// NVIDIA's libraries may not be in the process; sim_guard() looks for them.

// From now on each call of the device looks again when something was loaded since, and
// ends the process when it is NVIDIA's. Exported for PyTorch's activation.
void sim_guard_stay(void);

// What such a call begins with: without one, a library that was opened can do nothing.
// Exported for the driver.
void sim_guard_look(void);

#endif
