// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_SDPA_HPP
#define SIM_TORCH_SDPA_HPP

#include <ATen/core/Tensor.h>

namespace simtorch
{

enum causal {
    CAUSAL_NO,
    CAUSAL_TOP_LEFT,
    CAUSAL_BOTTOM_RIGHT,
};

// One attention, heads before positions: query [B, H, M, K], key [B, G, N, K],
// value [B, G, N, L], where G divides H.
struct Attention {
    at::Tensor query, key, value;
    at::Tensor bias; // added to the scores, or undefined
    causal mask = CAUSAL_NO;
    int64_t left = -1, right = -1; // sliding window, -1: open
    double dropout = 0;
    double scale = 1;
    uint64_t seed = 0, offset = 0; // of the dropout mask
};

struct AttentionGradient {
    at::Tensor query, key, value, bias; // undefined: not wanted
};

// `sums` is the logarithm of the scores' sums, [B, H, M] in fp32.
struct AttentionResult {
    at::Tensor output, sums;
};

AttentionResult attention_forward(const Attention &a);
AttentionGradient attention_backward(const Attention &a, const at::Tensor &grad,
                                     const AttentionResult &forward, bool with_bias);

} // namespace simtorch

#endif
