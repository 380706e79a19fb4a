// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_VIRTUAL_H
#define AS_SIMCUDA_RUNTIME_VIRTUAL_H

// The driver's virtual memory management: address ranges are reserved, physical memory is
// created, and the one is mapped to the other. PyTorch's expandable segments are made of
// it. The functions are for the simulated driver, which finds them by name.
//
// Physical memory is mapped once: its bytes are those of the addresses.
//
// Thread-safety: every function may be called from any thread.

#include "simcuda/runtime/memory.h"

typedef unsigned long long sim_physical;

cudaError_t sim_virtual_reserve(void **address, size_t bytes);
cudaError_t sim_virtual_unreserve(void *address, size_t bytes);

// cudaErrorMemoryAllocation when the card is full.
cudaError_t sim_virtual_create(sim_physical *handle, int device, size_t bytes);
// It is gone once it is neither held nor mapped.
cudaError_t sim_virtual_release(sim_physical handle);
cudaError_t sim_virtual_device(sim_physical handle, int *device);

cudaError_t sim_virtual_map(void *address, size_t bytes, sim_physical handle);
// A range made of whole mappings.
cudaError_t sim_virtual_unmap(void *address, size_t bytes);
// One more hold of what is mapped there.
cudaError_t sim_virtual_retain(sim_physical *handle, const void *address);

// All physical memory of a device is gone, and so is what was mapped to it.
void sim_virtual_reset(int device);

// The allocation, or the mapped range, that the address lies in.
cudaError_t sim_virtual_extent(const void *address, void **start, size_t *bytes);

// Fills the location if the address is reserved.
bool sim_virtual_locate(const void *address, struct sim_location *location);

#endif
