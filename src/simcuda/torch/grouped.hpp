// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_GROUPED_HPP
#define SIM_TORCH_GROUPED_HPP

#include "operator.hpp"

namespace simtorch
{

// Products of groups of fp8 matrices with a scale for each row and each column; what is
// scaled by blocks is refused.
void host_scaled_grouped(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
void body_scaled_grouped(Call &call);

} // namespace simtorch

#endif
