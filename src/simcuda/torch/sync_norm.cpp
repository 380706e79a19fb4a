// SPDX-License-Identifier: Apache-2.0
// The parts of SyncBatchNorm, which the CPU does not have: see batch_norm_* in
// ATen/native/cuda/Normalization.cuh for what each of them stands for.
#include "norms.hpp"

#include <ATen/ops/full.h>

namespace simtorch
{

namespace
{

at::Tensor wide(const Call &call, const char *name)
{
    const at::Tensor given = tensor(call, name);
    return given.defined() && given.scalar_type() != at::kDouble ? given.to(at::kFloat)
                                                                 : given;
}

// All dimensions but the channels'.
std::vector<int64_t> reduced(const at::Tensor &input)
{
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < input.dim(); d++)
        if (d != 1)
            dims.push_back(d);
    return dims;
}

// One value a channel, to be combined with the input.
at::Tensor spread(const at::Tensor &channels, const at::Tensor &input)
{
    std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
    sizes[1] = channels.numel();
    return channels.view(sizes);
}

void give(Call &call, size_t i, const at::Tensor &computed)
{
    const at::Tensor &result = call.results[i].toTensor();
    if (result.defined() && result.numel())
        result.copy_(computed);
}

at::Tensor centred(const Call &call, const at::Tensor &input)
{
    return input.sub(spread(wide(call, "mean"), input));
}

} // namespace

void body_batch_norm_stats(Call &call)
{
    const at::Tensor input = wide(call, "input");
    const auto dims = reduced(input);
    const double eps = argument(call, "eps").toDouble();
    give(call, 0, input.mean(dims));
    give(call, 1, input.var(dims, false).add(eps).rsqrt());
}

void body_batch_norm_elemt(Call &call)
{
    const at::Tensor input = wide(call, "input");
    at::Tensor output = centred(call, input).mul(spread(wide(call, "invstd"), input));
    if (const at::Tensor weight = wide(call, "weight"); weight.defined())
        output = output.mul(spread(weight, input));
    if (const at::Tensor bias = wide(call, "bias"); bias.defined())
        output = output.add(spread(bias, input));
    give(call, 0, output);
}

void body_batch_norm_backward_reduce(Call &call)
{
    const at::Tensor grad = wide(call, "grad_out"), input = wide(call, "input");
    const auto dims = reduced(input);
    const at::Tensor sum = grad.sum(dims);
    const at::Tensor sum_centred = grad.mul(centred(call, input)).sum(dims);
    give(call, 0, sum);
    give(call, 1, sum_centred);
    give(call, 2, sum_centred.mul(wide(call, "invstd")));
    give(call, 3, sum);
}

void body_batch_norm_backward_elemt(Call &call)
{
    const at::Tensor grad = wide(call, "grad_out"), input = wide(call, "input");
    const at::Tensor total = tensor(call, "count").sum().to(grad.scalar_type());
    const at::Tensor invstd = wide(call, "invstd"), weight = wide(call, "weight");
    const at::Tensor mean = wide(call, "sum_dy").div(total);
    const at::Tensor along = wide(call, "sum_dy_xmu").div(total).mul(invstd).mul(invstd);
    const at::Tensor scale = weight.defined() ? invstd.mul(weight) : invstd;
    give(call, 0,
         grad.sub(spread(mean, input))
             .sub(centred(call, input).mul(spread(along, input)))
             .mul(spread(scale, input)));
}

void body_batch_norm_gather_stats(Call &call)
{
    const at::Tensor means = wide(call, "mean"), invstds = wide(call, "invstd");
    const double eps = argument(call, "eps").toDouble();
    const double momentum = argument(call, "momentum").toDouble();
    const bool by_rank = call.op.place("counts") >= 0;
    const at::Tensor counts =
        (by_rank ? wide(call, "counts")
                 : at::full({means.size(0)}, integer(call, "count", 0), means.options()))
            .view({-1, 1});
    const at::Tensor total = counts.sum();
    const at::Tensor mean = means.mul(counts).sum(0).div(total);
    const at::Tensor variances = invstds.mul(invstds).reciprocal().sub(eps);
    const at::Tensor apart = means.sub(mean);
    const at::Tensor sum = variances.add(apart.mul(apart)).mul(counts).sum(0);
    give(call, 0, mean);
    give(call, 1, sum.div(total).add(eps).rsqrt());
    const auto follow = [&](const char *name, const at::Tensor &now) {
        const at::Tensor running = tensor(call, name);
        if (running.defined())
            running.copy_(running.mul(1 - momentum).add(now.mul(momentum)));
    };
    follow("running_mean", mean);
    follow("running_var", sum.div(total.sub(1)));
}

} // namespace simtorch
