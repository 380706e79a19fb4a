// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_NESTED_HPP
#define SIM_TORCH_NESTED_HPP

#include <string>
#include <vector>

#include "operator.hpp"

namespace simtorch
{

// Operators with a kernel of their own for nested tensors on the device, without "aten::".
std::vector<std::string> nested_operators();

// What stands in for it (`whole`).
HostPass nested_host(const std::string &name);

// _nested_from_padded (`whole`).
void host_nested_from_padded(const Operator &op, c10::DispatchKeySet keys, Stack *stack);

} // namespace simtorch

#endif
