// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_DEVICE_H
#define AS_SIMCUDA_RUNTIME_DEVICE_H

// The simulated devices and what every entry point of the runtime begins with.
//
// Nothing exists before the first call: no thread, no mapping. The settings are read
// once, then.
//
// Thread-safety: every function may be called from any thread.

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/gpu.h"
#include "simcuda/runtime/trace.h"

// Registers a thread that every kernel is said to use.
enum { SIM_DEVICES_MAX = 16, SIM_KERNEL_REGISTERS = 32 };

enum sim_order { SIM_EARLY, SIM_LATE, SIM_SEEDED };

struct sim_device {
    const struct as_gpu *gpu;
    int index;
    atomic_bool active; // has a context
};

// Begins an entry point named `function`, called from `caller`: reads the settings at the first call of the
// process, refuses a forked child, counts for fault injection. Not cudaSuccess: return
// it; it is already recorded as the thread's last error.
cudaError_t sim_enter(const char *function, const void *caller);

#define SIM_ENTER()                                                                      \
    SIM_TRACE(__func__);                                                                 \
    do {                                                                                 \
        cudaError_t refused_ = sim_enter(__func__, __builtin_return_address(0));         \
        if (refused_)                                                                    \
            return refused_;                                                             \
    } while (0)

// Begins one that a capture would not see, and that may be prohibited during captures.
#define SIM_ENTER_UNSAFE()                                                               \
    do {                                                                                 \
        SIM_ENTER();                                                                     \
        cudaError_t unsafe_ = sim_capture_unsafe();                                      \
        if (unsafe_)                                                                     \
            return sim_error(unsafe_);                                                   \
    } while (0)

// Records the thread's last error, if it is one, and returns it. Success becomes
// cudaErrorAssert once the device has stopped (sim_assert).
cudaError_t sim_error(cudaError_t error);

int sim_device_count(void);
struct sim_device *sim_device(int index); // NULL: no such device
struct sim_device *sim_device_current(void);

// The same, and the device has a context from now on.
struct sim_device *sim_device_activate(void);

enum sim_order sim_order(void);
uint64_t sim_seed(void);

// The folder that this library lies in, all links resolved. false: cannot say.
bool sim_own_folder(char *folder, size_t bytes);

// For the simulated driver, which finds them by name. The device whose context this thread
// has, or -1; it has none any more.
bool sim_context_active(int device);
int sim_context_current(void);
void sim_context_leave(void);

// An attribute by its number, which runtime and driver share. false: unknown.
bool sim_device_attribute(const struct sim_device *device, int attribute, int *value);

#endif
