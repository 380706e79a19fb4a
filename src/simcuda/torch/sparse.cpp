// SPDX-License-Identifier: Apache-2.0
#include "sparse.hpp"

#include <algorithm>
#include <cstring>

#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ops/_coalesce.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>

#include "auto.hpp"
#include "host.hpp"
#include "passage.hpp"

namespace simtorch
{

namespace
{

const char *const coo[] = {
    "_coalesce",
    "index_select",
    "_sparse_sum_backward",
    "_sparse_sparse_matmul",
    "_sparse_softmax",
    "_sparse_softmax_backward_data",
    "_sparse_log_softmax",
    "_sparse_log_softmax_backward_data",
    "_sparse_mask_projection",
    "sparse_mask",
    "add.Tensor",
    "add_.Tensor",
    "add.out",
    "sub.Tensor",
    "sub_.Tensor",
    "sub.out",
    "mul.Tensor",
    "mul_.Tensor",
    "mul.out",
    "mm",
    "mm.out",
    "mv",
    "addmm",
    "addmm_",
    "addmm.out",
    "bmm",
    "bmm.out",
    "hspmm",
    "hspmm.out",
    "sspaddmm.out",
};
const char *const compressed[] = {
    "add.Tensor",
    "add_.Tensor",
    "add.out",
    "addmm",
    "addmm.out",
    "addmv.out",
    "baddbmm.out",
    "bmm.out",
    "mm",
    "mm.out",
    "mul.Tensor",
    "mul_.Tensor",
    "mul.out",
    "sparse_sampled_addmm",
    "sparse_sampled_addmm.out",
    "triangular_solve.X",
    "_sparse_csr_sum.dim_dtype",
    "_sparse_csr_prod.dim_dtype",
    "sparse_mask",
};

bool begins(const Operator &op, const char *base)
{
    const std::string plain = op.name.substr(strlen("aten::"));
    return plain.substr(0, plain.find('.')) == base;
}

void body_deliver_places(Call &call)
{
    deliver(call.results[0], call.arguments[0]);
}

// The sizes of a dense result of sparse arguments, or nothing.
std::vector<int64_t> dense_sizes(const Operator &op, const c10::IValue *a)
{
    const auto size = [&](int i, int64_t d) { return a[i].toTensor().size(d); };
    if (begins(op, "mm") && !is_sparse(a[1].toTensor()))
        return {size(0, 0), size(1, 1)};
    if (begins(op, "addmm") && !is_sparse(a[2].toTensor()))
        return {size(1, 0), size(2, 1)};
    if (begins(op, "mv"))
        return {size(0, 0)};
    if (begins(op, "bmm"))
        return {size(0, 0), size(0, 1), size(1, 2)};
    if ((begins(op, "add") || begins(op, "sub")) && !is_sparse(a[0].toTensor()))
        return a[0].toTensor().sizes().vec();
    return {};
}

// Without values: allocates a dense result, or leaves the one that is given.
void host_dense_result(const Operator &op, Stack *stack, c10::DeviceIndex device)
{
    const auto *first = top(stack, op.arguments());
    at::Tensor result;
    for (size_t i = 0; i < op.arguments(); i++)
        if (op.written[i] && !is_sparse(first[i].toTensor()))
            result = first[i].toTensor();
    const auto sizes = dense_sizes(op, first);
    if (!result.defined() && sizes.empty())
        refuse(op.name, "makes a sparse result whose size depends on values");
    if (!result.defined())
        result = empty_device(sizes, first[0].toTensor().scalar_type(), device);
    else if (!sizes.empty() && result.sizes() != c10::IntArrayRef(sizes))
        result.resize_(sizes);
    Footprint touched;
    touched.add(result, true, true);
    touched.lose(op, device);
    stack->resize(stack->size() - op.arguments());
    stack->push_back(result);
}

// Where the numbers of a COO result are: it hangs on places alone.
struct Pattern {
    at::Tensor places; // on the host
    std::vector<int64_t> sizes_of_values, sizes;
    c10::ScalarType type;
    bool coalesced;
};

void push_pattern(const Operator &op, Stack *stack, c10::DeviceIndex device,
                  const Pattern &pattern)
{
    const at::Tensor indices = empty_like_meta(pattern.places, device);
    const at::Tensor values = empty_device(pattern.sizes_of_values, pattern.type, device);
    submit({op, body_deliver_places, {pattern.places}, {indices}});
    Footprint touched;
    touched.add(values, true, true);
    touched.lose(op, device);
    stack->resize(stack->size() - op.arguments());
    stack->push_back(at::_sparse_coo_tensor_unsafe(indices, values, pattern.sizes,
                                                   values.options().layout(c10::kSparse),
                                                   pattern.coalesced));
}

bool is_known_coo(const at::Tensor &tensor)
{
    return tensor.layout() == c10::kSparse && tensor.is_cuda() &&
           values_of(at::sparse::get_sparse_impl(tensor)->indices()) == SIM_KNOWN;
}

// Equal places are added up: a zero a place will do, however much belongs to it.
Pattern coalesced(const at::Tensor &self, Aliases *aliases)
{
    const auto *impl = at::sparse::get_sparse_impl(self);
    const at::Tensor places = aliases->tensor(impl->indices(), false);
    const at::Tensor found = at::_coalesce(at::_sparse_coo_tensor_unsafe(
                                               places, at::zeros({places.size(1)}),
                                               self.sizes().slice(0, self.sparse_dim())))
                                 ._indices();
    auto sizes = impl->values().sizes().vec();
    sizes[0] = found.size(1);
    return {found, sizes, self.sizes().vec(), self.scalar_type(), true};
}

// The argument with zeros in place of its numbers; undefined where its places, or integers,
// are not known.
at::Tensor without_numbers(const at::Tensor &tensor, Aliases *aliases)
{
    const auto zeros = [](const at::Tensor &like) {
        return at::zeros({}, at::dtype(like.scalar_type())).expand(like.sizes());
    };
    if (!tensor.is_cuda())
        return tensor;
    if (is_known_coo(tensor)) {
        const auto *impl = at::sparse::get_sparse_impl(tensor);
        const at::Tensor values = zeros(impl->values());
        return at::_sparse_coo_tensor_unsafe(
            aliases->tensor(impl->indices(), false), values, tensor.sizes(),
            values.options().layout(c10::kSparse), tensor.is_coalesced());
    }
    if (is_sparse(tensor))
        return {};
    if (!is_integral(tensor))
        return zeros(tensor);
    return values_of(tensor) == SIM_KNOWN ? aliases->tensor(tensor, false) : at::Tensor();
}

std::optional<Pattern> pattern_of(const Operator &op, Stack arguments, Aliases *aliases)
{
    for (size_t i = 0; i < arguments.size(); i++) {
        if (!arguments[i].isTensor() || !arguments[i].toTensor().defined())
            continue;
        const at::Tensor stand_in = without_numbers(arguments[i].toTensor(), aliases);
        if (op.written[i] || !stand_in.defined())
            return std::nullopt;
        arguments[i] = stand_in;
    }
    op.handle.callBoxed(&arguments);
    const at::Tensor found = arguments.back().toTensor();
    if (found.layout() != c10::kSparse)
        return std::nullopt;
    return Pattern{found._indices(), found._values().sizes().vec(), found.sizes().vec(),
                   found.scalar_type(), found.is_coalesced()};
}

// A COO result of which only the numbers are not known.
bool host_places(const Operator &op, Stack *stack, c10::DeviceIndex device)
{
    const auto *first = top(stack, op.arguments());
    if (op.returns() != 1 || !dense_sizes(op, first).empty())
        return false;
    const int error = sim_drain(current_stream(device));
    C10_CUDA_CHECK(static_cast<cudaError_t>(error));
    Aliases aliases;
    std::optional<Pattern> pattern;
    if (begins(op, "_coalesce")) {
        if (is_known_coo(first[0].toTensor()))
            pattern = coalesced(first[0].toTensor(), &aliases);
    } else {
        pattern = pattern_of(op, Stack(first, first + op.arguments()), &aliases);
    }
    if (pattern)
        push_pattern(op, stack, device, *pattern);
    return pattern.has_value();
}

// Two sparse COO tensors are added by joining their parts: PyTorch's own code.
bool only_joins(const Operator &op, const c10::IValue *first)
{
    return (begins(op, "add") || begins(op, "add_") || begins(op, "sub") ||
            begins(op, "sub_")) &&
           first[0].toTensor().layout() == c10::kSparse &&
           first[1].toTensor().layout() == c10::kSparse;
}

} // namespace

std::vector<c10::OperatorName> sparse_operators(c10::DispatchKey key)
{
    std::vector<c10::OperatorName> found;
    const auto add = [&](const std::string &full) {
        const size_t dot = full.find('.');
        found.push_back({"aten::" + full.substr(0, dot),
                         dot == full.npos ? "" : full.substr(dot + 1)});
    };
    if (key == c10::DispatchKey::SparseCUDA)
        std::for_each(std::begin(coo), std::end(coo), add);
    else
        std::for_each(std::begin(compressed), std::end(compressed), add);
    return found;
}

void host_sparse(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    auto *first = top(stack, op.arguments());
    if (only_joins(op, first)) {
        op.real.callBoxed(op.handle, keys, stack);
        return;
    }
    BelowAutograd below;
    const c10::DeviceIndex device = device_of(*stack, op.arguments());
    c10::DeviceGuard guard(c10::Device(c10::kCUDA, device));
    if (can_compute_now(op, *stack))
        Passage(device).run(op, stack);
    else if (!host_places(op, stack, device))
        host_dense_result(op, stack, device);
}

} // namespace simtorch
