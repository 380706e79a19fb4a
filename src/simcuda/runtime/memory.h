// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_MEMORY_H
#define AS_SIMCUDA_RUNTIME_MEMORY_H

// The books of device, pinned and managed memory.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>

#include "simcuda/runtime/device.h"

// What a driver maps at a time.
#define SIM_PAGE_BYTES ((size_t)2 << 20)

enum sim_place { SIM_PAGEABLE, SIM_PINNED, SIM_REGISTERED, SIM_MANAGED, SIM_DEVICE };

struct sim_location {
    enum sim_place place;
    int device; // of device memory
    size_t bytes_after; // from the address to the end of its allocation
    size_t bytes_before; // of device memory: from the allocation's start to it
};

// What lies at the address. Device memory that is not allocated is SIM_DEVICE with
// bytes_after 0.
struct sim_location sim_memory_locate(const void *address);

// Whole pages, of the pool with this number less one (pool.h), 0: of none.
// cudaErrorMemoryAllocation when the card is full.
cudaError_t sim_memory_take(struct sim_device *device, void **address, size_t bytes,
                            unsigned pool);

// It is about to be given: it cannot be a second time. cudaErrorInvalidValue when it is not
// the start of an allocation, or is about to be given already.
cudaError_t sim_memory_end(const void *address);

// cudaErrorInvalidValue when it is not the start of an allocation.
cudaError_t sim_memory_give(void *address);

// All of a device's allocations are gone.
void sim_memory_reset(const struct sim_device *device);

// Device memory that has no address here: only counts it. false: the card is full.
bool sim_memory_commit(struct sim_device *device, size_t bytes);
void sim_memory_uncommit(struct sim_device *device, size_t bytes);

#endif
