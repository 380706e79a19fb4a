// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_FOREIGN_HPP
#define SIM_TORCH_FOREIGN_HPP

// Operators that packages define (TORCH_LIBRARY, torch.library) with kernels of their own
// for CUDA, which the device cannot run. Where the package has a kernel for the CPU as
// well, that one computes, at once, on aliases of the device's tensors.

namespace simtorch
{

// Watches for operators that are defined from now on.
void foreign_watch();

// Puts ours before the kernels of what was defined since the last call. Not from inside
// the dispatcher's own registration; cheap when there is nothing.
void foreign_adopt();

} // namespace simtorch

#endif
