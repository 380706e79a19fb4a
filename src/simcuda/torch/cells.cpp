// SPDX-License-Identifier: Apache-2.0
// The fused cells of LSTM and GRU: what ATen/native/cuda/RNN.cu computes and saves.
#include "recurrent.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

namespace simtorch
{

namespace
{

at::Tensor wide(const at::Tensor &given)
{
    return given.defined() && given.scalar_type() != at::kDouble ? given.to(at::kFloat)
                                                                 : given;
}

at::Tensor wide(const Call &call, const char *name)
{
    return wide(tensor(call, name));
}

at::Tensor with_bias(const at::Tensor &gates, const at::Tensor &bias)
{
    return bias.defined() ? gates.add(bias) : gates;
}

void give(Call &call, size_t i, const at::Tensor &computed)
{
    const at::Tensor &result = call.results[i].toTensor();
    if (result.defined() && result.numel())
        result.copy_(computed.view(result.sizes()));
}

// The derivative of a sigmoid, of a tanh, by its value.
at::Tensor slope(const at::Tensor &sigmoid)
{
    return sigmoid.mul(sigmoid.neg().add(1));
}

at::Tensor slope_tanh(const at::Tensor &tanh)
{
    return tanh.mul(tanh).neg().add(1);
}

} // namespace

void body_lstm_cell(Call &call)
{
    const at::Tensor gates =
        with_bias(wide(call, "input_gates"), wide(call, "input_bias"))
            .add(with_bias(wide(call, "hidden_gates"), wide(call, "hidden_bias")));
    const auto part = gates.chunk(4, 1);
    const at::Tensor in = part[0].sigmoid(), forget = part[1].sigmoid();
    const at::Tensor cell = part[2].tanh(), out = part[3].sigmoid();
    const at::Tensor cy = forget.mul(wide(call, "cx")).add(in.mul(cell));
    give(call, 0, out.mul(cy.tanh()));
    give(call, 1, cy);
    give(call, 2, at::cat({in, forget, cell, out}, 1));
}

void body_lstm_cell_backward(Call &call)
{
    const auto part = wide(call, "workspace").chunk(4, 1);
    const at::Tensor &in = part[0], &forget = part[1], &cell = part[2], &out = part[3];
    const at::Tensor cx = wide(call, "cx"), tanh = wide(call, "cy").tanh();
    at::Tensor hy = wide(call, "grad_hy");
    if (!hy.defined())
        hy = at::zeros_like(tanh);
    at::Tensor through = hy.mul(out).mul(slope_tanh(tanh));
    if (const at::Tensor cy = wide(call, "grad_cy"); cy.defined())
        through = through.add(cy);
    const at::Tensor gates =
        at::cat({through.mul(cell).mul(slope(in)), through.mul(cx).mul(slope(forget)),
                 through.mul(in).mul(slope_tanh(cell)), hy.mul(tanh).mul(slope(out))},
                1);
    give(call, 0, gates);
    give(call, 1, through.mul(forget));
    give(call, 2, gates.sum(0));
}

void body_gru_cell(Call &call)
{
    const auto input =
        with_bias(wide(call, "input_gates"), wide(call, "input_bias")).chunk(3, 1);
    const auto hidden =
        with_bias(wide(call, "hidden_gates"), wide(call, "hidden_bias")).chunk(3, 1);
    const at::Tensor hx = wide(call, "hx");
    const at::Tensor reset = input[0].add(hidden[0]).sigmoid();
    const at::Tensor update = input[1].add(hidden[1]).sigmoid();
    const at::Tensor fresh = input[2].add(reset.mul(hidden[2])).tanh();
    give(call, 0, hx.sub(fresh).mul(update).add(fresh));
    give(call, 1, at::cat({reset, update, fresh, hx, hidden[2]}, 1));
}

void body_gru_cell_backward(Call &call)
{
    const auto part = wide(call, "workspace").chunk(5, 1);
    const at::Tensor &reset = part[0], &update = part[1], &fresh = part[2];
    const at::Tensor grad = wide(call, "grad_hy");
    const at::Tensor to_update = grad.mul(part[3].sub(fresh)).mul(slope(update));
    const at::Tensor to_fresh = grad.mul(update.neg().add(1)).mul(slope_tanh(fresh));
    const at::Tensor to_reset = to_fresh.mul(part[4]).mul(slope(reset));
    const at::Tensor input = at::cat({to_reset, to_update, to_fresh}, 1);
    const at::Tensor hidden = at::cat({to_reset, to_update, to_fresh.mul(reset)}, 1);
    give(call, 0, input);
    give(call, 1, hidden);
    give(call, 2, grad.mul(update));
    give(call, 3, input.sum(0));
    give(call, 4, hidden.sum(0));
}

} // namespace simtorch
