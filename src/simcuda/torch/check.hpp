// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_CHECK_HPP
#define SIM_TORCH_CHECK_HPP

// What the checker of ACTSWAP_SIM_CHECK=races is told by PyTorch beside what operators
// read and write: the program's lines, what the caching allocator gives out and takes back,
// and what operators on the CPU do to pinned memory.

#include "operator.hpp"

namespace simtorch
{

bool checks();

// The line of the program that the thread is at, "train.py:31", or in a backward that of
// the forward: a text that lives as long as the process; or NULL.
const char *line_of_call();

// Once, when the bodies are activated.
void check_start();

// Queues that the call reads its arguments there, where it is not queued itself.
void check_reads(const Operator &op, const Stack &arguments, c10::DeviceIndex device);

} // namespace simtorch

#endif
