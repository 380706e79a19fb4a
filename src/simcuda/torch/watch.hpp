// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_WATCH_HPP
#define SIM_TORCH_WATCH_HPP

// Operators on the CPU, of which the checker of races is told what they read and write of
// pinned memory. Compiled with NDEBUG, as PyTorch is: its RecordFunction differs without.

namespace simtorch
{

void watch_host(); // once

} // namespace simtorch

#endif
