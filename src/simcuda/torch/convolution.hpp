// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_CONVOLUTION_HPP
#define SIM_TORCH_CONVOLUTION_HPP

#include "operator.hpp"

namespace simtorch
{

// cuDNN is closed: results as its callers in PyTorch lay them out, no workspace.
void host_convolution(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
void host_convolution_backward(const Operator &op, c10::DispatchKeySet keys,
                               Stack *stack);

} // namespace simtorch

#endif
