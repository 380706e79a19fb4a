// SPDX-License-Identifier: Apache-2.0
#include "softmax.hpp"

#include <ATen/ops/empty_like.h>

namespace simtorch
{

void body_softmax(Call &call)
{
    c10::IValue &widens = call.arguments[call.op.place("half_to_float")];

    if (widens.toBool())
        call.arguments[call.op.place("self")] = tensor(call, "self").to(at::kFloat);
    widens = false;
    body_cpu(call);
}

void body_softmax_backward(Call &call)
{
    const auto wide = tensor(call, "grad_output").scalar_type();
    const at::Tensor result = call.results[0].toTensor();

    if (result.scalar_type() == wide) {
        body_cpu(call);
        return;
    }
    const int out = call.op.place("grad_input");
    if (out >= 0)
        call.arguments[out] = at::empty_like(result, wide);
    call.arguments[call.op.place("input_dtype")] = wide;
    call.results.clear();
    body_cpu(call);
    deliver(result, call.arguments[0]);
}

} // namespace simtorch
