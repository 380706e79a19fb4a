// SPDX-License-Identifier: Apache-2.0
#ifndef AS_HOOKS_TORCH_C10_H
#define AS_HOOKS_TORCH_C10_H

// PyTorch's own memory events: its allocators call c10::reportMemoryUsageToProfiler for
// each block, through the PLT, under the allocator's lock.

// Finds the functions behind ours while PyTorch loads, so that nothing has to be looked
// up under the allocator's lock. Cheap when done already, or when there is no PyTorch.
void as_c10_prepare(void);

#endif
