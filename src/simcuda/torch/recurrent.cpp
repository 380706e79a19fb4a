// SPDX-License-Identifier: Apache-2.0
// The host passes: PyTorch's code around cuDNN, without cuDNN.
#include "recurrent.hpp"

#include <algorithm>
#include <mutex>

#include <ATen/autocast_mode.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/ops/_cudnn_init_dropout_state.h>
#include <ATen/ops/_cudnn_rnn.h>
#include <ATen/ops/cudnn_is_acceptable.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAFunctions.h>

#include "host.hpp"

namespace simtorch
{

namespace
{

enum Mode { RELU, TANH, LSTM, GRU }; // as cudnnRNNMode_t

struct Net {
    int64_t mode, hidden, projected, layers, directions;

    int64_t gates() const
    {
        return mode == LSTM ? 4 : mode == GRU ? 3 : 1;
    }
    int64_t output() const
    {
        return projected ? projected : hidden;
    }
};

// The elements of the one buffer that cuDNN keeps all weights in: every matrix and, with
// or without biases, two of these a gate (PyTorch asks for CUDNN_RNN_DOUBLE_BIAS).
int64_t buffer_elements(const Net &net, int64_t input)
{
    int64_t total = 0;
    for (int64_t layer = 0; layer < net.layers; layer++) {
        const int64_t in = layer ? net.output() * net.directions : input;
        const int64_t matrices =
            net.gates() * net.hidden * (in + net.output()) + net.projected * net.hidden;
        total += net.directions * (matrices + 2 * net.gates() * net.hidden);
    }
    return total;
}

// Where each weight begins in the buffer: first the matrices, then the biases.
std::vector<int64_t> offsets(at::TensorList weights)
{
    std::vector<int64_t> found(weights.size());
    int64_t at = 0;
    for (const bool matrices : {true, false})
        for (size_t i = 0; i < weights.size(); i++)
            if ((weights[i].dim() > 1) == matrices) {
                found[i] = at;
                at += weights[i].numel();
            }
    return found;
}

at::Tensor view_at(const at::Tensor &buffer, int64_t offset, const at::Tensor &weight)
{
    return buffer.narrow(0, offset, weight.numel()).view(weight.sizes());
}

std::vector<at::Tensor> buffer_views(const at::Tensor &buffer, at::TensorList weights)
{
    const auto places = offsets(weights);
    std::vector<at::Tensor> views;
    for (size_t i = 0; i < weights.size(); i++)
        views.push_back(view_at(buffer, places[i], weights[i]));
    return views;
}

// The buffer, if the weights are its views already; else undefined.
at::Tensor buffer_of(at::TensorList weights, int64_t elements)
{
    const auto &first = weights[0];
    const at::Tensor all = at::empty({0}, first.options()).set_(first.storage());
    if (all.numel() < elements)
        return at::Tensor();
    const at::Tensor buffer = all.narrow(0, 0, elements);
    const auto views = buffer_views(buffer, weights);
    for (size_t i = 0; i < weights.size(); i++)
        if (views[i].const_data_ptr() != weights[i].const_data_ptr() ||
            views[i].scalar_type() != weights[i].scalar_type())
            return at::Tensor();
    return buffer;
}

// Made once a device, with the dropout of the first network that has any.
at::Tensor dropout_state(double dropout, bool train, const at::Tensor &input)
{
    static std::mutex mutex;
    static std::vector<at::Tensor> states(c10::cuda::device_count());
    const std::lock_guard<std::mutex> guard(mutex);
    at::Tensor &state = states.at(static_cast<size_t>(input.get_device()));
    if (!train || dropout <= 0)
        return at::Tensor();
    if (!state.defined()) {
        const auto seed =
            at::empty({}, input.options().dtype(at::kLong).requires_grad(false))
                .random_()
                .item<int64_t>();
        state = at::_cudnn_init_dropout_state(dropout, train, seed,
                                              input.options().dtype(at::kByte));
    }
    return state;
}

int64_t mode_of(const Operator &op)
{
    const auto starts = [&](const char *name) { return !op.name.rfind(name, 0); };
    return starts("aten::lstm")       ? LSTM
           : starts("aten::gru")      ? GRU
           : starts("aten::rnn_tanh") ? TANH
                                      : RELU;
}

std::vector<at::Tensor> tensors(const c10::IValue &value)
{
    return value.isTensor() ? std::vector<at::Tensor>{value.toTensor()}
                            : value.toTensorVector();
}

} // namespace

void host_recurrent(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    const auto *first = top(stack, op.arguments());
    const auto at = [&](const char *name) { return first[op.place(name)]; };
    const bool packed = op.place("batch_sizes") >= 0;
    const at::Tensor input = first[0].toTensor();
    if (!at::cudnn_is_acceptable(input)) {
        op.real.callBoxed(op.handle, keys, stack);
        return;
    }
    c10::DeviceGuard guard(input.device());
    const auto state = tensors(at("hx")), weights = at("params").toTensorVector();
    Net net = {mode_of(op), state[0].size(2), 0, at("num_layers").toInt(),
               at("bidirectional").toBool() ? 2 : 1};
    const at::Tensor cx = net.mode == LSTM ? state.at(1) : at::Tensor();
    if (cx.defined() && cx.size(2) != net.hidden) {
        net.projected = net.hidden;
        net.hidden = cx.size(2);
    }
    const double dropout = at("dropout").toDouble();
    const bool train = at("train").toBool();
    const at::Tensor buffer = buffer_of(weights, buffer_elements(net, input.size(-1)));
    const at::Tensor drop = dropout_state(dropout, train, input);
    std::vector<int64_t> batches;
    if (packed) {
        const at::Tensor sizes = at("batch_sizes").toTensor();
        batches.assign(sizes.const_data_ptr<int64_t>(),
                       sizes.const_data_ptr<int64_t>() + sizes.numel());
    }
    const int64_t each = (at("has_biases").toBool() ? 4 : 2) + (net.projected ? 1 : 0);
    const auto [output, hy, cy, reserve, used] =
        at::_cudnn_rnn(input, weights, each, buffer, state[0], cx, net.mode, net.hidden,
                       net.projected, net.layers, !packed && at("batch_first").toBool(),
                       dropout, train, net.directions == 2, batches, drop);
    stack->resize(stack->size() - op.arguments());
    stack->insert(stack->end(), {output, hy});
    if (net.mode == LSTM)
        stack->push_back(cy);
}

// --- cuDNN's operators

namespace
{

// An argument of _cudnn_rnn or its backward.
const c10::IValue &of(const Operator &op, const c10::IValue *first, const char *name)
{
    return first[op.place(name)];
}

Net net_of(const Operator &op, const c10::IValue *first)
{
    return {of(op, first, "mode").toInt(), of(op, first, "hidden_size").toInt(),
            of(op, first, "proj_size").toInt(), of(op, first, "num_layers").toInt(),
            of(op, first, "bidirectional").toBool() ? 2 : 1};
}

at::Tensor optional(const c10::IValue &value)
{
    return value.isTensor() ? value.toTensor() : at::Tensor();
}

// Steps times sequences.
int64_t cells(const at::Tensor &input)
{
    return input.numel() / input.size(-1);
}

// What cuDNN takes is not published. Its training needs, of every layer, each gate's value
// and the state beside it; above the first layer what goes in; and the dropout mask's seed.
int64_t reserve_bytes(const Net &net, const at::Tensor &input)
{
    const int64_t states = net.layers * (net.gates() + 1) * net.hidden;
    const int64_t between = (net.layers - 1) * net.output();
    return 16 + net.directions * (states + between) * cells(input) * input.element_size();
}

// Likewise: the inputs' products of one layer.
void allocate_workspace(const Net &net, const at::Tensor &input)
{
    empty_device(
        {net.directions * net.gates() * net.hidden * cells(input) * input.element_size()},
        at::kByte, input.get_device());
}

// Steps first, dense.
at::Tensor steps_first(const at::Tensor &given, bool batch_first)
{
    return (batch_first ? given.transpose(0, 1) : given).contiguous();
}

} // namespace

void host_cudnn_rnn(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    const auto *first = top(stack, op.arguments());
    const auto at = [&](const char *name) -> const c10::IValue & {
        return of(op, first, name);
    };
    const Net net = net_of(op, first);
    const at::Tensor input = at("input").toTensor(), hx = at("hx").toTensor();
    const at::Tensor cx = optional(at("cx"));
    TORCH_CHECK(hx.is_contiguous(), "rnn: hx is not contiguous");
    TORCH_CHECK(!cx.defined() || cx.is_contiguous(), "rnn: cx is not contiguous");
    c10::DeviceGuard guard(input.device());
    const auto device = input.get_device();
    const bool batch_first =
        at("batch_first").toBool() && at("batch_sizes").toIntVector().empty();

    const at::Tensor dense = steps_first(input, batch_first);
    auto sizes = dense.sizes().vec();
    sizes.back() = net.output() * net.directions;
    const at::Tensor output = empty_device(sizes, input.scalar_type(), device);
    const at::Tensor hy = empty_device(hx.sizes(), hx.scalar_type(), device);
    const at::Tensor cy = cx.defined()
                              ? empty_device(cx.sizes(), cx.scalar_type(), device)
                              : empty_device({0}, hx.scalar_type(), device);
    at::Tensor buffer = optional(at("weight_buf"));
    if (!buffer.defined()) {
        TORCH_WARN("the weights lie in several pieces and are gathered at each call; "
                   "flatten_parameters() puts them into one");
        buffer = empty_device({buffer_elements(net, input.size(-1))}, input.scalar_type(),
                              device);
    }
    allocate_workspace(net, input);
    const at::Tensor reserve = empty_device(
        {at("train").toBool() ? reserve_bytes(net, input) : 0}, at::kByte, device);
    stack->resize(stack->size() - op.arguments());
    stack->insert(stack->end(), {batch_first ? output.transpose(0, 1) : output, hy, cy,
                                 reserve, buffer});
}

void host_cudnn_rnn_backward(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    const auto *first = top(stack, op.arguments());
    const auto at = [&](const char *name) -> const c10::IValue & {
        return of(op, first, name);
    };
    const Net net = net_of(op, first);
    const at::Tensor input = at("input").toTensor(), hx = at("hx").toTensor();
    const at::Tensor cx = optional(at("cx")), output = at("output").toTensor();
    const auto weights = at("weight").toTensorVector();
    const at::Tensor buffer = at("weight_buf").toTensor();
    c10::DeviceGuard guard(input.device());
    const auto device = input.get_device();
    const bool batch_first =
        at("batch_first").toBool() && at("batch_sizes").toIntVector().empty();
    const auto or_zeros = [](const c10::IValue &given, const at::Tensor &like) {
        const at::Tensor grad = optional(given);
        return grad.defined() || !like.defined()
                   ? grad
                   : at::zeros_like(like, at::MemoryFormat::Contiguous);
    };
    const at::Tensor dy = or_zeros(at("grad_output"), output);
    const at::Tensor dhy = or_zeros(at("grad_hy"), hx), dcy = or_zeros(at("grad_cy"), cx);

    const at::Tensor x = steps_first(input, batch_first);
    at::Tensor dx;
    Stack results(3, c10::IValue(at::Tensor()));
    {
        const at::Tensor dense = steps_first(dy, batch_first);
        dx = empty_device(x.sizes(), input.scalar_type(), device);
        results[0] = batch_first ? dx.transpose(0, 1) : dx;
        results[1] = empty_device(hx.sizes(), hx.scalar_type(), device);
        if (cx.defined())
            results[2] = empty_device(cx.sizes(), cx.scalar_type(), device);
        allocate_workspace(net, input);
    }
    c10::List<at::Tensor> gradients;
    if (at("output_mask").toBoolList().get(3)) {
        const at::Tensor all = empty_device(buffer.sizes(), buffer.scalar_type(), device);
        for (const auto &view : buffer_views(all, weights))
            gradients.push_back(view);
        allocate_workspace(net, input);
    }
    stack->resize(stack->size() - op.arguments());
    stack->insert(stack->end(), results.begin(), results.end());
    stack->push_back(gradients);
}

void host_flatten_weight(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    const auto *first = top(stack, op.arguments());
    const auto weights = of(op, first, "weight_arr").toTensorVector();
    TORCH_CHECK(!weights.empty(),
                "_cudnn_rnn_flatten_weight_: cannot flatten empty list");
    const int64_t elements =
        buffer_elements(net_of(op, first), of(op, first, "input_size").toInt());
    c10::DeviceGuard guard(weights[0].device());
    const at::Tensor buffer = at::zeros({elements}, weights[0].options());
    const auto views = buffer_views(buffer, weights);
    for (size_t i = 0; i < weights.size(); i++) {
        views[i].copy_(weights[i]);
        at::Tensor(weights[i]).set_(views[i]);
    }
    stack->resize(stack->size() - op.arguments());
    stack->push_back(buffer);
}

// cuDNN's generators: its size is not published; PyTorch's source says "slightly over
// 2MB". Here 16 bytes for every thread that the card can hold. The first word is the seed,
// the second counts the masks.
void host_dropout_state(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    const auto *first = top(stack, op.arguments());
    const int64_t seed = of(op, first, "dropout_seed").toInt();
    const auto *card = at::cuda::getCurrentDeviceProperties();
    const int64_t threads =
        int64_t{card->multiProcessorCount} * card->maxThreadsPerMultiProcessor;
    const at::Tensor state =
        empty_device({16 * threads}, at::kByte, c10::cuda::current_device());
    state.zero_();
    state.narrow(0, 0, 8).view(at::kLong).fill_(seed);
    stack->resize(stack->size() - op.arguments());
    stack->push_back(state);
}

void host_cudnn_rnn_autocast(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCUDA);
    auto *first = top(stack, op.arguments());
    const auto type = at::autocast::get_autocast_dtype(at::kCUDA);
    const auto weights = of(op, first, "weight").toTensorVector();
    const bool casts = std::any_of(weights.begin(), weights.end(), [&](const auto &w) {
        return w.scalar_type() != type;
    });
    for (const char *name : {"input", "hx", "cx"})
        if (first[op.place(name)].isTensor())
            first[op.place(name)] = at::autocast::cached_cast(
                type, first[op.place(name)].toTensor(), at::kCUDA);
    if (casts) {
        const int64_t elements = buffer_elements(
            net_of(op, first), of(op, first, "input").toTensor().size(-1));
        const at::Tensor buffer =
            at::zeros({elements}, weights[0].options().dtype(type).requires_grad(false));
        // Differentiable, so that a view is only good until the next copy.
        const auto places = offsets(weights);
        for (size_t i = 0; i < weights.size(); i++)
            view_at(buffer, places[i], weights[i]).copy_(weights[i]);
        first[op.place("weight")] = c10::List<at::Tensor>(buffer_views(buffer, weights));
        first[op.place("weight_buf")] = buffer.detach();
    }
    op.handle.callBoxed(stack);
}

} // namespace simtorch
