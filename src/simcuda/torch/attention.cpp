// SPDX-License-Identifier: Apache-2.0
#include "attention.hpp"

#include <cmath>

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/core/DeviceGuard.h>

#include "host.hpp"
#include "sdpa.hpp"

namespace simtorch
{

namespace
{

at::Tensor swapped(const at::Tensor &tensor)
{
    return tensor.defined() ? tensor.transpose(1, 2) : tensor;
}

double scale_of(const Call &call, const at::Tensor &query)
{
    const auto &value = argument(call, "scale");
    return value.isNone() ? 1 / std::sqrt(static_cast<double>(query.size(-1)))
                          : value.toDouble();
}

// Fields that all three have under the same names; heads before positions if `swap`.
Attention attention_of(const Call &call, bool swap)
{
    Attention a;
    a.query = tensor(call, "query");
    a.key = tensor(call, "key");
    a.value = tensor(call, "value");
    a.scale = scale_of(call, a.query);
    if (swap) {
        a.query = swapped(a.query);
        a.key = swapped(a.key);
        a.value = swapped(a.value);
    }
    a.dropout = argument(call, "dropout_p").toDouble();
    a.seed = call.seed;
    a.offset = call.offset;
    return a;
}

uint64_t word(const at::Tensor &tensor, int64_t index)
{
    return static_cast<const uint64_t *>(tensor.const_data_ptr())[index];
}

void set_word(const c10::IValue &tensor, int64_t index, uint64_t value)
{
    if (!tensor.toTensor().defined() || tensor.toTensor().numel() <= index)
        return;
    static_cast<uint64_t *>(tensor.toTensor().mutable_data_ptr())[index] = value;
}

void copy_if(const at::Tensor &to, const at::Tensor &from)
{
    if (to.defined() && to.numel())
        to.copy_(from);
}

// --- Sequences of different lengths, packed one after another

struct Segments {
    std::vector<int64_t> query, key; // starts, and the end
};

std::vector<int64_t> starts(const at::Tensor &ends)
{
    const at::Tensor wide = ends.to(at::kLong).contiguous();
    const auto *data = wide.const_data_ptr<int64_t>();
    return {data, data + wide.numel()};
}

// One sequence of a packed attention: positions are dimension 2 of batch 1.
Attention segment(const Attention &all, const Segments &s, size_t i)
{
    Attention a = all;
    a.query = all.query.slice(2, s.query[i], s.query[i + 1]);
    a.key = all.key.slice(2, s.key[i], s.key[i + 1]);
    a.value = all.value.slice(2, s.key[i], s.key[i + 1]);
    a.offset = all.offset + i;
    return a;
}

// `sums_of(i)` is the place for a sequence's sums, [1, H, its length].
template <typename SumsOf>
void forward_segments(const Attention &all, const Segments &s, const at::Tensor &output,
                      SumsOf sums_of)
{
    for (size_t i = 0; i + 1 < s.query.size(); i++) {
        const AttentionResult r = attention_forward(segment(all, s, i));
        output.slice(2, s.query[i], s.query[i + 1]).copy_(r.output);
        copy_if(sums_of(i), r.sums);
    }
}

template <typename SumsOf>
void backward_segments(const Attention &all, const Segments &s, const at::Tensor &grad,
                       const at::Tensor &output, const AttentionGradient &to,
                       SumsOf sums_of)
{
    for (size_t i = 0; i + 1 < s.query.size(); i++) {
        const int64_t q0 = s.query[i], q1 = s.query[i + 1];
        const AttentionGradient g =
            attention_backward(segment(all, s, i), grad.slice(2, q0, q1),
                               {output.slice(2, q0, q1), sums_of(i).contiguous()}, false);
        to.query.slice(2, q0, q1).copy_(g.query);
        to.key.slice(2, s.key[i], s.key[i + 1]).copy_(g.key);
        to.value.slice(2, s.key[i], s.key[i + 1]).copy_(g.value);
    }
}

// The device's places for gradients, seen with heads before positions.
AttentionGradient gradients_of(const Call &call, bool swap)
{
    AttentionGradient to = {call.results[0].toTensor(), call.results[1].toTensor(),
                            call.results[2].toTensor(), at::Tensor()};
    if (swap)
        to = {swapped(to.query), swapped(to.key), swapped(to.value), at::Tensor()};
    return to;
}

void put(const AttentionGradient &to, const AttentionGradient &from)
{
    copy_if(to.query, from.query);
    copy_if(to.key, from.key);
    copy_if(to.value, from.value);
    if (to.bias.defined() && from.bias.defined())
        copy_if(to.bias, from.bias.sum_to_size(to.bias.sizes()));
}

} // namespace

// --- Memory-efficient attention: [B, M, H, K]; packed sequences as one batch

static Attention efficient_of(const Call &call)
{
    Attention a = attention_of(call, true);
    a.bias = tensor(call, "bias");
    a.mask = static_cast<causal>(argument(call, "custom_mask_type").toInt());
    const int64_t window = integer(call, "window_size", 0);
    if (window > 0)
        a.left = window - 1;
    return a;
}

void body_efficient_forward(Call &call)
{
    const Attention a = efficient_of(call);
    const at::Tensor output = swapped(call.results[0].toTensor());
    const at::Tensor sums = call.results[1].toTensor();
    set_word(call.results[2], 0, a.seed);
    set_word(call.results[3], 0, a.offset);
    if (sums.numel())
        sums.fill_(std::numeric_limits<float>::infinity());
    if (tensor(call, "cu_seqlens_q").defined()) {
        const Segments s = {starts(tensor(call, "cu_seqlens_q")),
                            starts(tensor(call, "cu_seqlens_k"))};
        forward_segments(a, s, output, [&](int64_t i) {
            return sums.numel()
                       ? sums.slice(0, i, i + 1).slice(2, 0, s.query[i + 1] - s.query[i])
                       : sums;
        });
        return;
    }
    const AttentionResult r = attention_forward(a);
    output.copy_(r.output);
    if (sums.numel())
        sums.slice(2, 0, output.size(2)).copy_(r.sums);
}

void body_efficient_backward(Call &call)
{
    Attention a = efficient_of(call);
    if (a.dropout > 0) {
        a.seed = word(tensor(call, "philox_seed"), 0);
        a.offset = word(tensor(call, "philox_offset"), 0);
    }
    const at::Tensor grad = swapped(tensor(call, "grad_out_"));
    const at::Tensor output = swapped(tensor(call, "out"));
    const at::Tensor sums = tensor(call, "logsumexp");
    AttentionGradient to = gradients_of(call, true);
    const bool with_bias = argument(call, "bias_requires_grad").toBool();
    if (with_bias)
        to.bias = call.results[3].toTensor();
    if (tensor(call, "cu_seqlens_q").defined()) {
        const Segments s = {starts(tensor(call, "cu_seqlens_q")),
                            starts(tensor(call, "cu_seqlens_k"))};
        backward_segments(a, s, grad, output, to, [&](int64_t i) {
            return sums.slice(0, i, i + 1).slice(2, 0, s.query[i + 1] - s.query[i]);
        });
        return;
    }
    const at::Tensor own = sums.slice(2, 0, output.size(2)).contiguous();
    put(to, attention_backward(a, grad, {output, own}, with_bias));
}

// --- Flash attention: [B, M, H, K], or packed [M, H, K]

static Attention flash_of(const Call &call)
{
    Attention a = attention_of(call, false);
    const bool packed = a.query.dim() == 3;
    for (at::Tensor *t : {&a.query, &a.key, &a.value})
        *t = swapped(packed ? t->unsqueeze(0) : *t);
    a.mask = argument(call, "is_causal").toBool() ? CAUSAL_BOTTOM_RIGHT : CAUSAL_NO;
    a.left = integer(call, "window_size_left", -1);
    a.right = integer(call, "window_size_right", -1);
    return a;
}

static at::Tensor flash_layout(const at::Tensor &tensor)
{
    return swapped(tensor.dim() == 3 ? tensor.unsqueeze(0) : tensor);
}

static bool is_packed(const Call &call)
{
    return tensor(call, "cum_seq_q").defined() && tensor(call, "cum_seq_q").numel();
}

void body_flash_forward(Call &call)
{
    const Attention a = flash_of(call);
    for (const char *other : {"seqused_k", "alibi_slopes", "block_table"})
        TORCH_CHECK(!tensor(call, other).defined(), other, " is not simulated");
    const at::Tensor output = flash_layout(call.results[0].toTensor());
    const at::Tensor sums = call.results[1].toTensor();
    set_word(call.results[2], 0, a.seed);
    set_word(call.results[2], 1, a.offset);
    if (is_packed(call)) {
        const Segments s = {starts(tensor(call, "cum_seq_q")),
                            starts(tensor(call, "cum_seq_k"))};
        forward_segments(a, s, output, [&](int64_t i) {
            return sums.slice(1, s.query[i], s.query[i + 1]).unsqueeze(0);
        });
        return;
    }
    const AttentionResult r = attention_forward(a);
    output.copy_(r.output);
    sums.copy_(r.sums);
}

void body_flash_backward(Call &call)
{
    Attention a = flash_of(call);
    if (a.dropout > 0) {
        a.seed = word(tensor(call, "rng_state"), 0);
        a.offset = word(tensor(call, "rng_state"), 1);
    }
    const at::Tensor grad = flash_layout(tensor(call, "grad_out"));
    const at::Tensor output = flash_layout(tensor(call, "out"));
    const at::Tensor sums = tensor(call, "logsumexp");
    const AttentionGradient to = {flash_layout(call.results[0].toTensor()),
                                  flash_layout(call.results[1].toTensor()),
                                  flash_layout(call.results[2].toTensor()), at::Tensor()};
    if (is_packed(call)) {
        const Segments s = {starts(tensor(call, "cum_seq_q")),
                            starts(tensor(call, "cum_seq_k"))};
        backward_segments(a, s, grad, output, to, [&](int64_t i) {
            return sums.slice(1, s.query[i], s.query[i + 1]).unsqueeze(0);
        });
        return;
    }
    put(to, attention_backward(a, grad, {output, sums}, false));
}

// --- cuDNN's attention: [B, H, M, K]

static Attention cudnn_of(const Call &call)
{
    Attention a = attention_of(call, false);
    TORCH_CHECK(!tensor(call, "cum_seq_q").defined() ||
                    !tensor(call, "cum_seq_q").numel(),
                "packed sequences are not simulated");
    a.bias = tensor(call, "attn_bias");
    if (a.bias.defined() && !a.bias.numel())
        a.bias = at::Tensor();
    a.mask = argument(call, "is_causal").toBool() ? CAUSAL_TOP_LEFT : CAUSAL_NO;
    return a;
}

void body_cudnn_forward(Call &call)
{
    const Attention a = cudnn_of(call);
    const AttentionResult r = attention_forward(a);
    call.results[0].toTensor().copy_(r.output);
    if (argument(call, "compute_log_sumexp").toBool())
        call.results[1].toTensor().copy_(r.sums.unsqueeze(-1));
    set_word(call.results[6], 0, a.seed);
    set_word(call.results[7], 0, a.offset);
}

void body_cudnn_backward(Call &call)
{
    Attention a = cudnn_of(call);
    a.seed = word(tensor(call, "philox_seed"), 0);
    a.offset = word(tensor(call, "philox_offset"), 0);
    const at::Tensor sums = tensor(call, "logsumexp").squeeze(-1);
    put(gradients_of(call, false),
        attention_backward(a, tensor(call, "grad_out"), {tensor(call, "out"), sums},
                           false));
}

// The query's order of dimensions, with another last size.
static at::Tensor empty_as_query(const at::Tensor &query, int64_t last)
{
    std::vector<int64_t> sizes = query.sizes().vec(), order = {0, 1, 2, 3};
    sizes[3] = last;
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return query.stride(a) > query.stride(b);
    });
    std::vector<int64_t> laid(4);
    for (int i = 0; i < 4; i++)
        laid[i] = sizes[order[i]];
    std::vector<int64_t> back(4);
    for (int i = 0; i < 4; i++)
        back[order[i]] = i;
    return empty_device(laid, query.scalar_type(), query.get_device()).permute(back);
}

void host_cudnn_forward(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    auto *first = top(stack, op.arguments());
    const at::Tensor query = first[0].toTensor(), value = first[2].toTensor();
    const auto device = query.get_device();
    c10::DeviceGuard guard(query.device());
    const auto keys = first[1].toTensor().size(2);
    const bool with_sums = first[op.place("compute_log_sumexp")].toBool();
    const double dropout = first[op.place("dropout_p")].toDouble();
    const int64_t b = query.size(0), h = query.size(1), m = query.size(2);

    const at::Tensor output = empty_as_query(query, value.size(3));
    const std::vector<int64_t> with = {b, h, m, 1}, without = {0};
    const at::Tensor sums = empty_device(with_sums ? with : without, c10::kFloat, device);
    if (dropout > 0)
        at::cuda::detail::getDefaultCUDAGenerator(device)
            .get<at::CUDAGeneratorImpl>()
            ->philox_cuda_state(static_cast<uint64_t>(b * h * m * keys));
    const at::Tensor seed = empty_device({}, c10::kLong, device);
    const at::Tensor offset = empty_device({}, c10::kLong, device);
    stack->resize(stack->size() - op.arguments());
    stack->insert(stack->end(), {output, sums, at::Tensor(), at::Tensor(), m, keys, seed,
                                 offset, at::Tensor()});
}

void host_cudnn_backward(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    auto *first = top(stack, op.arguments());
    c10::DeviceGuard guard(first[1].toTensor().device());
    Stack results;
    for (int i = 1; i <= 3; i++) {
        const at::Tensor &like = first[i].toTensor();
        results.push_back(empty_as_query(like, like.size(3)));
    }
    stack->resize(stack->size() - op.arguments());
    stack->insert(stack->end(), results.begin(), results.end());
}

} // namespace simtorch
