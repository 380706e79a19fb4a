// SPDX-License-Identifier: Apache-2.0
#include "norms.hpp"

#include <ATen/OpMathType.h>
#include <ATen/ops/log_sigmoid_forward.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <c10/core/DeviceGuard.h>

#include "host.hpp"

namespace simtorch
{

void body_norm_backward(Call &call)
{
    const auto dtype = tensor(call, "input").scalar_type();
    const at::Tensor weight = tensor(call, "weight");
    // With fp32 parameters the CPU saves fp32 as well.
    if (!weight.defined() || weight.scalar_type() == dtype)
        for (const char *name : {"mean", "rstd"})
            call.arguments[call.op.place(name)] = tensor(call, name).to(dtype);
    body_cpu(call);
}

void body_batch_norm_backward(Call &call)
{
    at::Tensor parameter = tensor(call, "weight");
    if (!parameter.defined())
        parameter = tensor(call, "running_mean");
    const auto dtype =
        (parameter.defined() ? parameter : tensor(call, "input")).scalar_type();
    for (const char *name : {"save_mean", "save_invstd", "save_var"})
        if (call.op.place(name) >= 0 && tensor(call, name).defined())
            call.arguments[call.op.place(name)] = tensor(call, name).to(dtype);
    body_cpu(call);
}

void body_log_sigmoid_backward(Call &call)
{
    auto [output, buffer] = at::log_sigmoid_forward(tensor(call, "self"));
    call.arguments[call.op.place("buffer")] = buffer;
    body_cpu(call);
}

void body_rms_norm_backward(Call &call)
{
    const at::Tensor input = tensor(call, "input"), weight = tensor(call, "weight");
    const auto normalized = argument(call, "normalized_shape").toIntVector();
    const auto wide = at::toOpMathType(input.scalar_type());
    const at::Tensor rstd = tensor(call, "rstd").to(wide);
    const at::Tensor scaled = input.to(wide).mul(rstd);
    const at::Tensor grad = tensor(call, "grad_out").to(wide);
    const at::Tensor through = weight.defined() ? grad.mul(weight) : grad;

    std::vector<int64_t> inner, outer;
    for (int64_t d = 0; d < input.dim(); d++)
        (d < input.dim() - static_cast<int64_t>(normalized.size()) ? outer : inner)
            .push_back(d);
    const at::Tensor mean = through.mul(scaled).mean(inner, true);
    const at::Tensor each = grad.mul(scaled);
    const at::Tensor results[] = {rstd.mul(through.sub(scaled.mul(mean))),
                                  outer.empty() ? each : each.sum(outer)};
    for (int i = 0; i < 2; i++)
        if (call.results[i].toTensor().defined())
            call.results[i].toTensor().copy_(results[i]);
}

// --- cuDNN's batch norm

static at::Tensor empty_as(const at::Tensor &like)
{
    if (like.is_non_overlapping_and_dense())
        return empty_like_meta(like, like.get_device());
    return empty_device(like.sizes(), like.scalar_type(), like.get_device());
}

void host_cudnn_batch_norm(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    auto *first = top(stack, op.arguments());
    const at::Tensor input = first[0].toTensor(), weight = first[1].toTensor();
    c10::DeviceGuard guard(input.device());
    const bool training = first[op.place("training")].toBool();
    const std::vector<int64_t> saved = {training ? input.size(1) : 0};
    const auto device = input.get_device();
    const at::Tensor output = empty_as(input);
    const at::Tensor mean = empty_device(saved, weight.scalar_type(), device);
    const at::Tensor deviation = empty_device(saved, weight.scalar_type(), device);
    const at::Tensor reserve = empty_device({0}, c10::kByte, device);
    stack->resize(stack->size() - op.arguments());
    stack->insert(stack->end(), {output, mean, deviation, reserve});
}

void host_cudnn_batch_norm_backward(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    auto *first = top(stack, op.arguments());
    const at::Tensor input = first[0].toTensor(), weight = first[2].toTensor();
    c10::DeviceGuard guard(input.device());
    const Stack results = {empty_as(input), empty_as(weight), empty_as(weight)};
    stack->resize(stack->size() - op.arguments());
    stack->insert(stack->end(), results.begin(), results.end());
}

static void fill(Call &call, size_t i, const at::Tensor &computed)
{
    if (computed.defined() && computed.numel() && call.results[i].toTensor().numel())
        deliver(call.results[i], computed);
}

void body_cudnn_batch_norm(Call &call)
{
    auto [output, mean, deviation] = at::native_batch_norm(
        tensor(call, "input"), tensor(call, "weight"), tensor(call, "bias"),
        tensor(call, "running_mean"), tensor(call, "running_var"),
        argument(call, "training").toBool(),
        argument(call, "exponential_average_factor").toDouble(),
        argument(call, "epsilon").toDouble());
    fill(call, 0, output);
    fill(call, 1, mean);
    fill(call, 2, deviation);
}

void body_cudnn_batch_norm_backward(Call &call)
{
    auto [input, weight, bias] = at::native_batch_norm_backward(
        tensor(call, "grad_output"), tensor(call, "input"), tensor(call, "weight"),
        tensor(call, "running_mean"), tensor(call, "running_var"),
        tensor(call, "save_mean"), tensor(call, "save_var"), true,
        argument(call, "epsilon").toDouble(), {true, true, true});
    fill(call, 0, input);
    fill(call, 1, weight);
    fill(call, 2, bias);
}

} // namespace simtorch
