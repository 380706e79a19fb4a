// SPDX-License-Identifier: Apache-2.0
//
// Strided nested tensors: one buffer on the device, and sizes on the host. Most of their
// operators are host code over operators on the buffer. Those that launch kernels of their
// own are written in terms of other operators for the CPU: that code runs here, on buffers
// of the device, or is written here. Temporaries may differ from the card's.
#include "nested.hpp"

#include <ATen/ATen.h>

namespace simtorch
{

static void host_nested(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    op.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::NestedTensorCPU),
                              stack);
}

// The part of each row that is no padding; heads come together again before that, if asked.
void host_nested_from_padded(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    const auto *first = top(stack, op.arguments());
    auto padded = first[0].toTensor();
    const auto sizes = first[1].toTensor();
    if (first[2].toBool())
        padded = padded.permute({0, 2, 1, 3}).flatten(2);
    std::vector<at::Tensor> parts;
    for (int64_t i = 0; i < sizes.size(0); i++) {
        auto part = padded[i];
        for (int64_t dim = 0; dim < sizes.size(1); dim++)
            part = part.narrow(dim, 0, sizes[i][dim].item<int64_t>());
        parts.push_back(part.reshape({-1}));
    }
    const auto [strides, offsets] = at::_nested_compute_contiguous_strides_offsets(sizes);
    const auto nested =
        at::_nested_view_from_buffer(at::cat(parts), sizes, strides, offsets);
    stack->resize(stack->size() - op.arguments());
    stack->push_back(nested);
}

// What the padding becomes is masked later: it need not be zero.
static void host_nested_transform(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    auto *first = top(stack, op.arguments());
    first[0] = first[0].toTensor().to_padded_tensor(0);
    op.handle.callBoxed(stack);
}

// The buffer as rows of the normalized size.
static at::Tensor rows_of(const at::Tensor &nested, int64_t columns)
{
    return nested.contiguous().values().view({-1, columns});
}

static at::Tensor nested_like(const at::Tensor &rows, const at::Tensor &nested)
{
    const auto whole = nested.contiguous();
    return at::_nested_view_from_buffer(rows.view({-1}), whole._nested_tensor_size(),
                                        whole._nested_tensor_strides(),
                                        whole._nested_tensor_storage_offsets());
}

static int64_t columns_of(const c10::IValue &shape)
{
    return c10::multiply_integers(shape.toIntVector());
}

static void replace(Stack *stack, size_t arguments, Stack results)
{
    stack->resize(stack->size() - arguments);
    stack->insert(stack->end(), results.begin(), results.end());
}

// Its host code calls the dense kernel behind the dispatcher's back.
static void host_nested_layer_norm(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    auto *first = top(stack, op.arguments());
    const auto input = first[0].toTensor();
    const int64_t columns = columns_of(first[1]);
    const auto [out, mean, rstd] = at::native_layer_norm(
        rows_of(input, columns), {columns}, first[2].toOptional<at::Tensor>(),
        first[3].toOptional<at::Tensor>(), first[4].toDouble());
    replace(stack, op.arguments(), {nested_like(out, input), mean, rstd});
}

static void host_nested_layer_norm_backward(const Operator &op, c10::DispatchKeySet,
                                            Stack *stack)
{
    auto *first = top(stack, op.arguments());
    const auto input = first[1].toTensor();
    const int64_t columns = columns_of(first[2]);
    const auto wanted = first[7].toBoolList();
    const auto [gradient, weight, bias] = at::native_layer_norm_backward(
        rows_of(first[0].toTensor(), columns), rows_of(input, columns), {columns},
        first[3].toTensor(), first[4].toTensor(), first[5].toOptional<at::Tensor>(),
        first[6].toOptional<at::Tensor>(), {wanted.get(0), wanted.get(1), wanted.get(2)});
    replace(stack, op.arguments(),
            {gradient.defined() ? nested_like(gradient, input) : gradient, weight, bias});
}

// A dense row for each part of the nested tensor, repeated over it; undefined where that is
// not what it is.
static at::Tensor repeated(const at::Tensor &dense, const at::Tensor &nested)
{
    const auto sizes = nested._nested_tensor_size();
    if (dense.is_nested() || dense.dim() != 3 || nested.dim() != 3 ||
        dense.size(0) != sizes.size(0) || dense.size(1) != 1)
        return {};
    std::vector<at::Tensor> parts;
    for (int64_t i = 0; i < sizes.size(0); i++)
        parts.push_back(dense[i].expand({sizes[i][0].item<int64_t>(), -1}));
    return at::cat(parts);
}

static void host_nested_binary(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    auto *first = top(stack, op.arguments());
    const auto self = first[0].toTensor();
    const auto dense =
        self.is_nested() ? repeated(first[1].toTensor(), self) : at::Tensor();
    if (!dense.defined()) {
        op.real.callBoxed(op.handle, keys, stack);
        return;
    }
    const auto rows = rows_of(self, dense.size(1));
    const bool adds = op.arguments() == 3;
    const auto out = adds ? at::add(rows, dense, first[2].toScalar()) : rows.mul(dense);
    replace(stack, op.arguments(), {nested_like(out, self)});
}

static const struct {
    const char *name;
    HostPass host;
} table[] = {
    {"bmm", host_nested},
    {"to_padded_tensor", host_nested},
    {"_nested_tensor_softmax_with_shape", host_nested},
    {"_native_multi_head_attention", host_nested},
    {"_transform_bias_rescale_qkv", host_nested_transform},
    {"add.Tensor", host_nested_binary},
    {"mul.Tensor", host_nested_binary},
    {"native_layer_norm", host_nested_layer_norm},
    {"native_layer_norm_backward", host_nested_layer_norm_backward},
};

std::vector<std::string> nested_operators()
{
    std::vector<std::string> names;
    for (const auto &row : table)
        names.emplace_back(row.name);
    return names;
}

HostPass nested_host(const std::string &name)
{
    for (const auto &row : table)
        if (name == row.name)
            return row.host;
    return nullptr;
}

} // namespace simtorch
