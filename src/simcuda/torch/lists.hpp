// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_LISTS_HPP
#define SIM_TORCH_LISTS_HPP

#include "operator.hpp"

namespace simtorch
{

// _foreach_mul_ by numbers: the card multiplies in fp32 and rounds once, as the operator
// of one tensor does on both; the CPU's for lists first rounds the number to bf16 or fp16.
void body_multiply_lists(Call &call);

} // namespace simtorch

#endif
