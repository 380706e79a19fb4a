// SPDX-License-Identifier: Apache-2.0
#include "spatial.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_ctc_loss.h>
#include <ATen/ops/_ctc_loss_backward.h>
#include <ATen/ops/affine_grid_generator.h>
#include <ATen/ops/affine_grid_generator_backward.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/grid_sampler_2d_backward.h>
#include <ATen/ops/ones_like.h>
#include <c10/core/DeviceGuard.h>

#include "host.hpp"

namespace simtorch
{

static void finish(const Operator &op, Stack *stack, const Stack &results)
{
    stack->resize(stack->size() - op.arguments());
    stack->insert(stack->end(), results.begin(), results.end());
}

static at::Tensor empty_as(const at::Tensor &like)
{
    return empty_device(like.sizes(), like.scalar_type(), like.get_device());
}

// --- Sampling: bilinear, zeros around, corners aligned, as cuDNN has it

void host_grid_sampler(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    const auto *first = top(stack, op.arguments());
    const at::Tensor input = first[0].toTensor(), grid = first[1].toTensor();
    c10::DeviceGuard guard(input.device());
    if (op.returns() == 2) {
        finish(op, stack, {empty_as(input), empty_as(grid)});
        return;
    }
    finish(op, stack,
           {empty_device({input.size(0), input.size(1), grid.size(1), grid.size(2)},
                         input.scalar_type(), input.get_device())});
}

void body_grid_sampler(Call &call)
{
    deliver(call.results[0],
            at::grid_sampler_2d(call.arguments[0].toTensor(),
                                call.arguments[1].toTensor(), 0, 0, true));
}

void body_grid_sampler_backward(Call &call)
{
    const auto [input, grid] =
        at::grid_sampler_2d_backward(tensor(call, "grad_output"), tensor(call, "self"),
                                     tensor(call, "grid"), 0, 0, true, {true, true});
    deliver(call.results[0], input);
    deliver(call.results[1], grid);
}

// theta or the grid's gradient, N, C, H, W.
void host_affine_grid(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    const auto *first = top(stack, op.arguments());
    const at::Tensor given = first[0].toTensor();
    c10::DeviceGuard guard(given.device());
    const int64_t n = first[1].toInt();
    const std::vector<int64_t> sizes =
        op.name.find("backward") != op.name.npos
            ? std::vector<int64_t>{n, 2, 3}
            : std::vector<int64_t>{n, first[3].toInt(), first[4].toInt(), 2};
    finish(op, stack, {empty_device(sizes, given.scalar_type(), given.get_device())});
}

static std::vector<int64_t> image_sizes(const Call &call)
{
    return {integer(call, "N", 0), integer(call, "C", 0), integer(call, "H", 0),
            integer(call, "W", 0)};
}

void body_affine_grid(Call &call)
{
    deliver(call.results[0],
            at::affine_grid_generator(tensor(call, "theta"), image_sizes(call), true));
}

void body_affine_grid_backward(Call &call)
{
    deliver(call.results[0], at::affine_grid_generator_backward(tensor(call, "grad"),
                                                                image_sizes(call), true));
}

// --- Convolutions of one channel a group

static std::vector<int64_t> list(const Call &call, const char *name)
{
    return argument(call, name).toIntVector();
}

void body_depthwise(Call &call)
{
    const at::Tensor input = tensor(call, "self"), weight = tensor(call, "weight");
    const at::Tensor bias = tensor(call, "bias");
    const auto stride = list(call, "stride"), padding = list(call, "padding");
    const auto dilation = list(call, "dilation");
    const auto channels =
        input.size(input.dim() - static_cast<int64_t>(stride.size()) - 1);
    const bool flat = stride.size() == 2;
    deliver(call.results[0],
            flat ? at::conv2d(input, weight, bias, stride, padding, dilation, channels)
                 : at::conv3d(input, weight, bias, stride, padding, dilation, channels));
}

// --- Connectionist temporal classification

// A loss for each sequence and, at once, its gradient. cuDNN's workspace is not known.
void host_cudnn_ctc_loss(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    const at::Tensor probs = top(stack, op.arguments())[0].toTensor();
    c10::DeviceGuard guard(probs.device());
    const at::Tensor costs =
        empty_device({probs.size(1)}, probs.scalar_type(), probs.get_device());
    finish(op, stack, {costs, empty_as(probs)});
}

static std::vector<int64_t> lengths(const Call &call, const char *name)
{
    const auto &given = argument(call, name);
    if (!given.isTensor())
        return given.toIntVector();
    const at::Tensor wide = given.toTensor().to(at::kLong).contiguous();
    const auto *first = wide.const_data_ptr<int64_t>();
    return {first, first + wide.numel()};
}

void body_cudnn_ctc_loss(Call &call)
{
    const at::Tensor probs = tensor(call, "log_probs");
    const at::Tensor targets = tensor(call, "targets").to(at::kLong);
    const auto inputs = lengths(call, "input_lengths");
    const auto labels = lengths(call, "target_lengths");
    const int64_t blank = integer(call, "blank", 0);
    const bool zero = argument(call, "zero_infinity").toBool();
    const auto [costs, alpha] =
        at::_ctc_loss(probs, targets, inputs, labels, blank, zero);
    deliver(call.results[0], costs);
    deliver(call.results[1],
            at::_ctc_loss_backward(at::ones_like(costs), probs, targets, inputs, labels,
                                   costs, alpha, blank, zero));
}

} // namespace simtorch
