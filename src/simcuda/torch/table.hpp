// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_TABLE_HPP
#define SIM_TORCH_TABLE_HPP

#include <memory>

#include "operator.hpp"

namespace simtorch
{

// How the device does an operator, or NULL where PyTorch's own CUDA kernel stays as it is.
// Decides by the one table in table.cpp, then by the operator's schema.
std::unique_ptr<Operator> operator_for(const c10::OperatorHandle &handle);

} // namespace simtorch

#endif
