// SPDX-License-Identifier: Apache-2.0
#include "grouped.hpp"

#include <algorithm>

namespace simtorch
{

namespace
{

enum { ROWS = 1 }; // torch.nn.functional.ScalingType.RowWise

// The later form of the operator takes lists of scales.
at::Tensor scale_of(const c10::IValue &given)
{
    return given.isTensor() ? given.toTensor() : given.toTensorVector().at(0);
}

bool by_rows(const Operator &op, const c10::IValue *first, const char *side)
{
    const std::string name = side;
    const int recipe = op.place(("recipe_" + name).c_str());
    if (recipe >= 0 && first[recipe].toIntVector() != std::vector<int64_t>{ROWS})
        return false;
    return scale_of(first[op.place(("scale_" + name).c_str())]).scalar_type() ==
           at::kFloat;
}

at::Tensor product(const at::Tensor &a, const at::Tensor &b, const at::Tensor &rows,
                   const at::Tensor &columns)
{
    return a.to(at::kFloat)
        .matmul(b.to(at::kFloat))
        .mul(rows.unsqueeze(-1))
        .mul(columns.unsqueeze(-2));
}

} // namespace

void host_scaled_grouped(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    const auto *first = top(stack, op.arguments());
    TORCH_CHECK_NOT_IMPLEMENTED(sim_compute() != SIM_VALUES ||
                                    (by_rows(op, first, "a") && by_rows(op, first, "b")),
                                "simcuda: ", op.name,
                                " has no body for scales of blocks");
    host_real(op, keys, stack);
}

void body_scaled_grouped(Call &call)
{
    const at::Tensor a = tensor(call, "self"), b = tensor(call, "mat2");
    const at::Tensor rows = scale_of(argument(call, "scale_a")),
                     columns = scale_of(argument(call, "scale_b"));
    const at::Tensor result = call.results[0].toTensor();
    if (a.dim() == 3 && b.dim() == 3) {
        result.copy_(product(a, b, rows, columns));
        return;
    }
    const at::Tensor ends = tensor(call, "offs").to(at::kLong).contiguous();
    int64_t begin = 0;
    for (int64_t g = 0; g < ends.numel(); g++) {
        const int64_t end = ends.const_data_ptr<int64_t>()[g], size = end - begin;
        if (b.dim() == 3)
            result.narrow(0, begin, size)
                .copy_(product(a.narrow(0, begin, size), b.select(0, g),
                               rows.narrow(0, begin, size), columns.select(0, g)));
        else if (a.dim() == 3)
            result.narrow(1, begin, size)
                .copy_(product(a.select(0, g), b.narrow(1, begin, size),
                               rows.select(0, g), columns.narrow(0, begin, size)));
        else
            result.select(0, g).copy_(
                product(a.narrow(1, begin, size), b.narrow(0, begin, size),
                        rows.view({-1, a.size(0)}).select(0, g),
                        columns.view({-1, b.size(1)}).select(0, g)));
        begin = end;
    }
}

} // namespace simtorch
