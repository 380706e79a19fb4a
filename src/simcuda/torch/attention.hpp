// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_ATTENTION_HPP
#define SIM_TORCH_ATTENTION_HPP

// Fused attention. PyTorch's choice among flash, memory-efficient and cuDNN attention is
// its own host code and stays; these compute what the chosen kernel would. Where the CPU
// has a fused kernel for the case it is that one, so that a script gives the same numbers
// as on the CPU; else the formula in fp32.

#include "operator.hpp"

namespace simtorch
{

void body_efficient_forward(Call &call);
void body_efficient_backward(Call &call);
void body_flash_forward(Call &call);
void body_flash_backward(Call &call);
void body_cudnn_forward(Call &call);
void body_cudnn_backward(Call &call);

// cuDNN is closed. Its workspace is not known and not allocated.
void host_cudnn_forward(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
void host_cudnn_backward(const Operator &op, c10::DispatchKeySet keys, Stack *stack);

} // namespace simtorch

#endif
