// SPDX-License-Identifier: Apache-2.0
// What cuDNN computes: PyTorch's CPU networks, and their gradients by autograd.
#include "recurrent.hpp"

#include <future>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "random.hpp"

namespace simtorch
{

namespace
{

struct Network {
    explicit Network(const Call &call)
        : mode(integer(call, "mode", 0)), layers(integer(call, "num_layers", 1)),
          dropout(argument(call, "train").toBool() ? argument(call, "dropout").toDouble()
                                                   : 0),
          train(argument(call, "train").toBool()),
          bidirectional(argument(call, "bidirectional").toBool()),
          batch_first(argument(call, "batch_first").toBool()),
          each(integer(call, "weight_stride0", 4)),
          projected(integer(call, "proj_size", 0) > 0)
    {
        const auto sizes = argument(call, "batch_sizes").toIntVector();
        if (!sizes.empty())
            batches = at::tensor(sizes, at::kLong);
    }

    int64_t mode, layers;
    double dropout;
    bool train, bidirectional, batch_first;
    int64_t each; // weights of a layer and direction
    bool projected;
    at::Tensor batches; // undefined: every sequence has every step
};

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// x, hx, cx, then the weights.
using Inputs = std::vector<at::Tensor>;

Three with_cell(const std::tuple<at::Tensor, at::Tensor> &two)
{
    return {std::get<0>(two), std::get<1>(two), at::Tensor()};
}

// `layers` of the network at once, without dropout between.
Three run_layers(const Network &net, const at::Tensor &x, const at::Tensor &hx,
                 const at::Tensor &cx, at::TensorList weights, int64_t layers)
{
    const bool biases = net.each > 3;
    if (net.batches.defined()) {
        const at::Tensor &sizes = net.batches;
        const bool two = net.bidirectional, train = net.train;
        if (net.mode == 2)
            return at::lstm(x, sizes, {hx, cx}, weights, biases, layers, 0.0, train, two);
        return with_cell(
            net.mode == 3
                ? at::gru(x, sizes, hx, weights, biases, layers, 0.0, train, two)
            : net.mode == 1
                ? at::rnn_tanh(x, sizes, hx, weights, biases, layers, 0.0, train, two)
                : at::rnn_relu(x, sizes, hx, weights, biases, layers, 0.0, train, two));
    }
    const bool two = net.bidirectional, train = net.train, first = net.batch_first;
    if (net.mode == 2)
        return at::lstm(x, {hx, cx}, weights, biases, layers, 0.0, train, two, first);
    return with_cell(
        net.mode == 3 ? at::gru(x, hx, weights, biases, layers, 0.0, train, two, first)
        : net.mode == 1
            ? at::rnn_tanh(x, hx, weights, biases, layers, 0.0, train, two, first)
            : at::rnn_relu(x, hx, weights, biases, layers, 0.0, train, two, first));
}

at::Tensor part(const at::Tensor &all, int64_t layer, int64_t directions)
{
    return all.defined() ? all.narrow(0, layer * directions, directions) : all;
}

// With dropout each layer by itself, a mask of our own between.
Three run_network(const Network &net, const Inputs &in, uint64_t seed, uint64_t count)
{
    const at::TensorList weights(in.data() + 3, in.size() - 3);
    if (net.dropout <= 0 || net.layers == 1)
        return run_layers(net, in[0], in[1], in[2], weights, net.layers);
    const int64_t directions = net.bidirectional ? 2 : 1;
    const auto per_layer = static_cast<size_t>(net.each * directions);
    at::Generator generator = cpu_generator(seed, count);
    at::Tensor x = in[0];
    std::vector<at::Tensor> hy, cy;
    for (int64_t layer = 0; layer < net.layers; layer++) {
        if (layer) {
            const at::Tensor mask = at::empty(x.sizes(), x.options().requires_grad(false))
                                        .bernoulli_(1 - net.dropout, generator);
            x = x.mul(mask).div(1 - net.dropout);
        }
        auto [output, h, c] = run_layers(
            net, x, part(in[1], layer, directions), part(in[2], layer, directions),
            weights.slice(static_cast<size_t>(layer) * per_layer, per_layer), 1);
        x = output;
        hy.push_back(h);
        if (c.defined())
            cy.push_back(c);
    }
    return {x, at::cat(hy), cy.empty() ? at::Tensor() : at::cat(cy)};
}

Inputs inputs_of(const Call &call)
{
    Inputs in = {tensor(call, "input"), tensor(call, "hx"), tensor(call, "cx")};
    for (const auto &weight : argument(call, "weight").toTensorVector())
        in.push_back(weight);
    return in;
}

void give(const c10::IValue &result, const at::Tensor &computed)
{
    if (computed.defined() && result.isTensor() && result.toTensor().defined())
        deliver(result, computed);
}

// Two words at the start of a byte buffer.
int64_t *words(const at::Tensor &bytes)
{
    return static_cast<int64_t *>(bytes.mutable_data_ptr());
}

} // namespace

void body_cudnn_rnn(Call &call)
{
    const Network net(call);
    uint64_t seed = 0, count = 0;
    if (const at::Tensor state = tensor(call, "dropout_state");
        state.defined() && net.dropout > 0) {
        seed = static_cast<uint64_t>(words(state)[0]);
        count = static_cast<uint64_t>(words(state)[1]++);
    }
    const at::Tensor reserve = call.results[3].toTensor();
    if (reserve.numel() >= 16) {
        words(reserve)[0] = static_cast<int64_t>(seed);
        words(reserve)[1] = static_cast<int64_t>(count);
    }
    const auto [output, hy, cy] = run_network(net, inputs_of(call), seed, count);
    give(call.results[0], output);
    give(call.results[1], hy);
    give(call.results[2], cy);
}

static void differentiate(Call &call)
{
    const Network net(call);
    const at::Tensor reserve = tensor(call, "reserve");
    TORCH_CHECK(reserve.numel() >= 16,
                "cudnn RNN backward can only be called in training "
                "mode");
    Inputs in = inputs_of(call), leaves;
    for (auto &input : in)
        if (input.defined()) {
            input = input.detach().requires_grad_(true);
            leaves.push_back(input);
        }
    const auto [output, hy, cy] =
        run_network(net, in, static_cast<uint64_t>(words(reserve)[0]),
                    static_cast<uint64_t>(words(reserve)[1]));
    std::vector<at::Tensor> outputs, grads;
    const auto from = [&](const at::Tensor &result, const char *name) {
        const at::Tensor grad_of = tensor(call, name);
        if (result.defined() && grad_of.defined()) {
            outputs.push_back(result);
            grads.push_back(grad_of);
        }
    };
    from(output, "grad_output");
    from(hy, "grad_hy");
    from(cy, "grad_cy");
    const auto found =
        torch::autograd::grad(outputs, leaves, grads, std::nullopt, false, true);
    const auto or_zeros = [&](size_t i) {
        return found[i].defined() ? found[i] : at::zeros_like(leaves[i]);
    };
    const bool has_cell = in[2].defined();
    give(call.results[0], or_zeros(0));
    give(call.results[1], or_zeros(1));
    if (has_cell)
        give(call.results[2], or_zeros(2));
    const auto gradients = call.results[3].toTensorVector();
    for (size_t i = 0; i < gradients.size(); i++)
        give(c10::IValue(gradients[i]), or_zeros(i + (has_cell ? 3 : 2)));
}

// On a thread of its own: autograd is on there, below which a body is otherwise, and its
// nodes do not count among those of the thread that waits for this body.
void body_cudnn_rnn_backward(Call &call)
{
    std::async(std::launch::async, [&call] {
        at::init_num_threads();
        differentiate(call);
    }).get();
}

} // namespace simtorch
