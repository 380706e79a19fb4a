// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_SOFTMAX_HPP
#define SIM_TORCH_SOFTMAX_HPP

#include "operator.hpp"

namespace simtorch
{

// The CPU's kernels neither make fp32 out of half nor come back: here fp32 goes in, and
// what comes out is rounded where the device's result is.
void body_softmax(Call &call);
void body_softmax_backward(Call &call);

} // namespace simtorch

#endif
