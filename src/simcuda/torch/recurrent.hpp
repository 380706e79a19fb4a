// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_RECURRENT_HPP
#define SIM_TORCH_RECURRENT_HPP

// LSTM, GRU and RNN as PyTorch runs them on cuDNN (ATen/native/cudnn/RNN.cpp), and the
// cells that it runs without.

#include "operator.hpp"

namespace simtorch
{

// lstm, gru, rnn_tanh, rnn_relu (`whole`): chooses cuDNN as PyTorch does, which asks cuDNN
// for sizes before any operator is called.
void host_recurrent(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
// _cudnn_rnn under autocast (`whole`): the weights in the lower type, in one buffer.
void host_cudnn_rnn_autocast(const Operator &op, c10::DispatchKeySet keys, Stack *stack);

void host_cudnn_rnn(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
void body_cudnn_rnn(Call &call);
void host_cudnn_rnn_backward(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
void body_cudnn_rnn_backward(Call &call);
// _cudnn_rnn_flatten_weight, _cudnn_init_dropout_state (`whole`).
void host_flatten_weight(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
void host_dropout_state(const Operator &op, c10::DispatchKeySet keys, Stack *stack);

void body_lstm_cell(Call &call);
void body_lstm_cell_backward(Call &call);
void body_gru_cell(Call &call);
void body_gru_cell_backward(Call &call);

} // namespace simtorch

#endif
