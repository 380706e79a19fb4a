// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_NORMS_HPP
#define SIM_TORCH_NORMS_HPP

#include "operator.hpp"

namespace simtorch
{

// --- Where the device saves for backward what the CPU saves in another form

// layer and group norm: mean and rstd in fp32, the CPU's in the input's type.
void body_norm_backward(Call &call);
// The same of batch norm.
void body_batch_norm_backward(Call &call);
// No buffer on the device; the CPU's kernel reads what its forward left there.
void body_log_sigmoid_backward(Call &call);

// --- Without a CPU kernel

void body_rms_norm_backward(Call &call);

// The parts of SyncBatchNorm (sync_norm.cpp).
void body_batch_norm_stats(Call &call);
void body_batch_norm_elemt(Call &call);
void body_batch_norm_backward_reduce(Call &call);
void body_batch_norm_backward_elemt(Call &call);
void body_batch_norm_gather_stats(Call &call);

// cuDNN is closed. What it reserves for backward is not known and taken as empty.
void host_cudnn_batch_norm(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
void host_cudnn_batch_norm_backward(const Operator &op, c10::DispatchKeySet keys,
                                    Stack *stack);
void body_cudnn_batch_norm(Call &call);
void body_cudnn_batch_norm_backward(Call &call);

} // namespace simtorch

#endif
