// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_SPATIAL_HPP
#define SIM_TORCH_SPATIAL_HPP

// Other operators of cuDNN, and convolutions that only the device has.

#include "operator.hpp"

namespace simtorch
{

// cudnn_grid_sampler, cudnn_affine_grid_generator and their backwards.
void host_grid_sampler(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
void body_grid_sampler(Call &call);
void body_grid_sampler_backward(Call &call);
void host_affine_grid(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
void body_affine_grid(Call &call);
void body_affine_grid_backward(Call &call);

// _conv_depthwise2d, conv_depthwise3d.
void body_depthwise(Call &call);

void host_cudnn_ctc_loss(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
void body_cudnn_ctc_loss(Call &call);

} // namespace simtorch

#endif
