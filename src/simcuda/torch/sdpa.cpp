// SPDX-License-Identifier: Apache-2.0
#include "sdpa.hpp"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include "random.hpp"

namespace simtorch
{

namespace
{

// What PyTorch asks before it takes the CPU's own fused kernel.
bool cpu_has_it(const Attention &a, bool with_bias)
{
    const bool square = a.query.size(2) == a.key.size(2);
    const bool causal = a.mask != CAUSAL_NO;
    return a.dropout == 0 && !with_bias && a.left < 0 && a.right < 0 &&
           (!causal || a.mask == CAUSAL_TOP_LEFT || square) &&
           !(causal && a.bias.defined()) && a.query.size(1) == a.key.size(1) &&
           a.query.size(3) == a.value.size(3) && a.query.numel() && a.key.numel() &&
           a.query.stride(3) == 1 && a.key.stride(3) == 1 && a.value.stride(3) == 1;
}

std::optional<at::Tensor> optional_bias(const Attention &a)
{
    return a.bias.defined() ? std::optional<at::Tensor>(a.bias) : std::nullopt;
}

// True where a position may not be seen.
at::Tensor hidden(const Attention &a)
{
    const int64_t m = a.query.size(2), n = a.key.size(2);
    const int64_t shift = a.mask == CAUSAL_TOP_LEFT ? 0 : n - m;
    const int64_t right = a.mask == CAUSAL_NO ? a.right : 0;
    at::Tensor mask = at::ones({m, n}, at::kBool);
    if (right >= 0)
        mask = mask.tril(shift + right);
    if (a.left >= 0)
        mask = mask.triu(shift - a.left);
    return mask.logical_not();
}

at::Tensor heads_of(const Attention &a, const at::Tensor &shared)
{
    const int64_t times = a.query.size(1) / shared.size(1);
    return times == 1 ? shared.to(at::kFloat)
                      : shared.to(at::kFloat).repeat_interleave(times, 1);
}

at::Tensor heads_back(const at::Tensor &grad, const at::Tensor &shared)
{
    const int64_t groups = shared.size(1);
    if (grad.size(1) == groups)
        return grad.to(shared.scalar_type());
    return grad
        .view({grad.size(0), groups, grad.size(1) / groups, grad.size(2), grad.size(3)})
        .sum(2)
        .to(shared.scalar_type());
}

at::Tensor scores(const Attention &a, const at::Tensor &key)
{
    at::Tensor s = a.query.to(at::kFloat).matmul(key.transpose(-1, -2)).mul_(a.scale);
    if (a.bias.defined())
        s.add_(a.bias.to(at::kFloat));
    if (a.mask != CAUSAL_NO || a.left >= 0 || a.right >= 0)
        s.masked_fill_(hidden(a), -std::numeric_limits<float>::infinity());
    return s;
}

at::Tensor probabilities(const at::Tensor &s, const at::Tensor &sums)
{
    return s.sub(sums.unsqueeze(-1)).exp_().nan_to_num_(0.0);
}

// The same for the same (seed, offset), forward and backward.
at::Tensor kept(const Attention &a, const at::Tensor &p)
{
    return at::empty(p.sizes(), at::kFloat)
        .bernoulli_(1 - a.dropout, cpu_generator(a.seed, a.offset))
        .div_(1 - a.dropout);
}

// The CPU's kernel lays its sums out by position first.
at::Tensor as_cpu_has_sums(const at::Tensor &sums)
{
    return sums.transpose(1, 2).contiguous().transpose(1, 2);
}

} // namespace

AttentionResult attention_forward(const Attention &a)
{
    if (cpu_has_it(a, false)) {
        auto [output, sums] = at::_scaled_dot_product_flash_attention_for_cpu(
            a.query, a.key, a.value, 0.0, a.mask != CAUSAL_NO, optional_bias(a), a.scale);
        return {output, sums};
    }
    const at::Tensor s = scores(a, heads_of(a, a.key));
    const at::Tensor sums = s.logsumexp({-1});
    at::Tensor p = probabilities(s, sums);
    if (a.dropout > 0)
        p.mul_(kept(a, p));
    return {p.matmul(heads_of(a, a.value)).to(a.query.scalar_type()), sums};
}

AttentionGradient attention_backward(const Attention &a, const at::Tensor &grad,
                                     const AttentionResult &forward, bool with_bias)
{
    if (cpu_has_it(a, with_bias)) {
        auto [q, k, v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
            grad, a.query, a.key, a.value, forward.output, as_cpu_has_sums(forward.sums),
            0.0, a.mask != CAUSAL_NO, optional_bias(a), a.scale);
        return {q, k, v, at::Tensor()};
    }
    const at::Tensor key = heads_of(a, a.key), value = heads_of(a, a.value);
    const at::Tensor given = grad.to(at::kFloat);
    const at::Tensor p = probabilities(scores(a, key), forward.sums);
    at::Tensor used = p, dp = given.matmul(value.transpose(-1, -2));
    if (a.dropout > 0) {
        const at::Tensor mask = kept(a, p);
        used = p.mul(mask);
        dp.mul_(mask);
    }
    const at::Tensor delta = given.mul(forward.output.to(at::kFloat)).sum({-1}, true);
    const at::Tensor ds = p.mul(dp.sub(delta));
    const at::Tensor dk =
        ds.transpose(-1, -2).matmul(a.query.to(at::kFloat)).mul(a.scale);
    const at::Tensor dv = used.transpose(-1, -2).matmul(given);
    return {ds.matmul(key).mul(a.scale).to(a.query.scalar_type()), heads_back(dk, a.key),
            heads_back(dv, a.value), with_bias ? ds : at::Tensor()};
}

} // namespace simtorch
