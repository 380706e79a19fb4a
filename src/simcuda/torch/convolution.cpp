// SPDX-License-Identifier: Apache-2.0
#include "convolution.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/cuda/EmptyTensor.h>
#include <ATen/native/ConvUtils.h>
#include <c10/core/DeviceGuard.h>

#include "host.hpp"

namespace simtorch
{

namespace
{

// Lists of one element stand for every dimension.
int64_t at_dimension(const c10::IValue &list, size_t d)
{
    const auto values = list.toIntVector();
    return values.size() == 1 ? values[0] : values.at(d);
}

c10::MemoryFormat format_of(const at::Tensor &input, const at::Tensor &weight)
{
    const auto format = input.suggest_memory_format();
    return format == c10::MemoryFormat::Contiguous ? weight.suggest_memory_format()
                                                   : format;
}

at::Tensor empty_in(c10::IntArrayRef sizes, const at::Tensor &like,
                    c10::MemoryFormat format)
{
    return at::detail::empty_cuda(sizes, like.scalar_type(), like.device(), format);
}

// Input, weight, bias, stride, padding, dilation, transposed, output padding, groups.
std::vector<int64_t> output_sizes(const c10::IValue *a)
{
    const at::Tensor &input = a[0].toTensor(), &weight = a[1].toTensor();
    const bool transposed = a[6].toBool();
    const int64_t groups = a[8].toInt();
    std::vector<int64_t> sizes = {input.size(0),
                                  transposed ? weight.size(1) * groups : weight.size(0)};
    for (size_t d = 0; d + 2 < static_cast<size_t>(input.dim()); d++) {
        const int64_t in = input.size(static_cast<int64_t>(d) + 2);
        const int64_t reach =
            at_dimension(a[5], d) * (weight.size(static_cast<int64_t>(d) + 2) - 1);
        const int64_t padding = 2 * at_dimension(a[4], d), stride = at_dimension(a[3], d);
        sizes.push_back(transposed ? (in - 1) * stride - padding + reach + 1 +
                                         at_dimension(a[7], d)
                                   : (in + padding - reach - 1) / stride + 1);
    }
    return sizes;
}

at::Tensor shape_of(const c10::IValue &value)
{
    if (!value.isTensor() || !value.toTensor().defined())
        return {};
    const at::Tensor &tensor = value.toTensor();
    return at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(),
                                          tensor.scalar_type());
}

// PyTorch looks at a convolution's arguments where it chooses who computes.
void check(const c10::IValue *a)
{
    const at::Tensor input = shape_of(a[0]), weight = shape_of(a[1]),
                     bias = shape_of(a[2]);
    const auto alike = [&](const at::Tensor &other, const char *name) {
        TORCH_CHECK(!other.defined() || other.scalar_type() == input.scalar_type(),
                    "Input type (", input.scalar_type(), ") and ", name, " type (",
                    other.scalar_type(), ") should be the same");
    };
    alike(weight, "weight");
    alike(bias, "bias");
    for (const int64_t dilation : a[5].toIntVector())
        TORCH_CHECK(dilation > 0, "non-positive dilation is not supported");
    std::vector<c10::SymInt> lists[4];
    const int places[] = {3, 4, 5, 7};
    for (int i = 0; i < 4; i++)
        for (const int64_t value : a[places[i]].toIntVector())
            lists[i].emplace_back(value);
    at::native::select_conv_backend(input, weight, bias, lists[0], lists[1], lists[2],
                                    a[6].toBool(), lists[3], a[8].toInt(), std::nullopt);
}

} // namespace

void host_convolution(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    const auto *first = top(stack, op.arguments());
    const at::Tensor input = first[0].toTensor(), weight = first[1].toTensor();
    c10::DeviceGuard guard(input.device());
    check(first);
    const auto sizes = output_sizes(first);
    for (const int64_t n : sizes)
        TORCH_CHECK(n >= 0, "Calculated output size is too small: ", sizes);
    const auto format = format_of(input, weight);
    at::Tensor output;
    {
        // What is not laid out as the result is copied for the call.
        const at::Tensor dense_input = input.contiguous(format);
        const at::Tensor dense_weight = weight.contiguous(format);
        output = empty_in(sizes, input, format);
    }
    stack->resize(stack->size() - op.arguments());
    stack->push_back(output);
}

void host_convolution_backward(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    const auto *first = top(stack, op.arguments());
    const at::Tensor grad = first[0].toTensor(), input = first[1].toTensor();
    const at::Tensor weight = first[2].toTensor();
    c10::DeviceGuard guard(grad.device());
    const auto format = format_of(input, weight);
    const auto wanted = first[10].toBoolList();
    const int64_t channels =
        first[7].toBool() ? weight.size(1) * first[9].toInt() : weight.size(0);
    Stack results(3, c10::IValue(at::Tensor()));
    {
        const at::Tensor dense = grad.contiguous(format);
        if (wanted.get(0))
            results[0] = empty_in(input.sizes(), input, format);
        if (wanted.get(1))
            results[1] = empty_in(weight.sizes(), weight, format);
        if (wanted.get(2))
            results[2] = empty_in({channels}, weight, c10::MemoryFormat::Contiguous);
    }
    stack->resize(stack->size() - op.arguments());
    stack->insert(stack->end(), results.begin(), results.end());
}

} // namespace simtorch
