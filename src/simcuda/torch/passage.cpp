// SPDX-License-Identifier: Apache-2.0
#include "passage.hpp"

#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <c10/cuda/CUDAException.h>

#include "check.hpp"
#include "host.hpp"

namespace simtorch
{

bool is_sparse(const at::Tensor &tensor)
{
    return tensor.defined() && tensor.layout() != c10::kStrided;
}

std::vector<at::Tensor> parts_of(const at::Tensor &tensor)
{
    if (!is_sparse(tensor))
        return {tensor};
    if (tensor.layout() == c10::kSparse) {
        const auto *impl = at::sparse::get_sparse_impl(tensor);
        return {impl->indices(), impl->values()};
    }
    const auto *impl = at::sparse_csr::get_sparse_csr_impl(tensor);
    return {impl->compressed_indices(), impl->plain_indices(), impl->values()};
}

namespace
{

// A sparse tensor like `like` of other parts.
at::Tensor from_parts(const at::Tensor &like, const std::vector<at::Tensor> &parts)
{
    const auto options = parts.back().options().layout(like.layout());
    if (like.layout() == c10::kSparse)
        return at::_sparse_coo_tensor_unsafe(parts[0], parts[1], like.sizes(), options,
                                             like.is_coalesced());
    return at::_sparse_compressed_tensor_unsafe(parts[0], parts[1], parts[2],
                                                like.sizes(), options);
}

void body_deliver_all(Call &call)
{
    for (size_t i = 0; i < call.results.size(); i++)
        deliver(call.results[i], call.arguments[i]);
}

} // namespace

c10::IValue Passage::to_host(const c10::IValue &value, bool written)
{
    if (value.isTensor())
        return to_host(value.toTensor(), written);
    if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const auto &item : value.toTensorVector())
            list.push_back(to_host(item, written));
        return list;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list;
        for (const auto &item : value.toOptionalTensorVector())
            list.push_back(item ? std::optional<at::Tensor>(to_host(*item, written))
                                : std::nullopt);
        return list;
    }
    return aliases_.value(value, written);
}

c10::IValue Passage::to_device(const c10::IValue &computed)
{
    if (computed.isTensor())
        return to_device(computed.toTensor());
    if (computed.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const auto &item : computed.toTensorVector())
            list.push_back(to_device(item));
        return list;
    }
    return computed;
}

at::Tensor Passage::to_host(const at::Tensor &device, bool written)
{
    if (!device.defined())
        return device;
    for (const auto &pair : pairs_)
        if (pair.first.is_same(device))
            return pair.second;
    at::Tensor host = device;
    if (device.is_cuda() && !is_sparse(device)) {
        host = aliases_.tensor(device, written);
    } else if (device.is_cuda()) {
        std::vector<at::Tensor> parts = parts_of(device);
        for (auto &part : parts)
            part = aliases_.tensor(part, written);
        host = from_parts(device, parts);
        if (written)
            written_.emplace_back(device, host);
    }
    pairs_.emplace_back(device, host);
    return host;
}

at::Tensor Passage::dense_to_device(const at::Tensor &host)
{
    const at::Tensor made = empty_like_meta(host, device_);
    computed_.push_back(host);
    wanted_.push_back(made);
    return made;
}

at::Tensor Passage::to_device(const at::Tensor &host)
{
    if (!host.defined())
        return host;
    for (const auto &[device, stand_in] : pairs_)
        if (stand_in.is_same(host)) {
            if (device.is_cuda() && !is_sparse(device) &&
                device.sizes() != host.sizes()) {
                device.resize_(host.sizes());
                computed_.push_back(host);
                wanted_.push_back(device);
            }
            return device;
        }
    if (!is_sparse(host))
        return dense_to_device(host);
    std::vector<at::Tensor> parts = parts_of(host);
    for (auto &part : parts)
        part = dense_to_device(part);
    return from_parts(host, parts);
}

// A sparse argument that was written may have other parts now.
void Passage::set_parts(const at::Tensor &device, const at::Tensor &host)
{
    std::vector<at::Tensor> parts = parts_of(host);
    for (auto &part : parts)
        part = dense_to_device(part);
    if (device.layout() != c10::kSparse) {
        at::sparse_csr::get_sparse_csr_impl(device)->set_member_tensors(
            parts[0], parts[1], parts[2], host.sizes());
        return;
    }
    auto *impl = at::sparse::get_sparse_impl(device);
    impl->raw_resize_(host.sparse_dim(), host.dense_dim(), host.sizes());
    impl->set_indices_and_values_unsafe(parts[0], parts[1]);
    impl->set_coalesced(host.is_coalesced());
}

void Passage::run(const Operator &op, Stack *stack)
{
    auto *first = top(stack, op.arguments());
    check_reads(op, Stack(first, first + op.arguments()), device_);
    for (size_t i = 0; i < op.arguments(); i++)
        first[i] = to_host(first[i], op.written[i]);
    const int error = sim_drain(current_stream(device_));
    C10_CUDA_CHECK(static_cast<cudaError_t>(error));
    op.handle.callBoxed(stack);

    for (const auto &[device, host] : written_)
        set_parts(device, host);
    first = top(stack, op.returns());
    for (size_t i = 0; i < op.returns(); i++)
        first[i] = to_device(first[i]);
    if (!wanted_.empty())
        submit({op, body_deliver_all, computed_, wanted_});
}

} // namespace simtorch
