// SPDX-License-Identifier: Apache-2.0
#include "alias.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>

namespace simtorch
{

size_t extent_bytes(const at::Tensor &tensor)
{
    if (tensor.numel() == 0)
        return 0;
    int64_t last = 0;
    for (int64_t d = 0; d < tensor.dim(); d++)
        last += (tensor.size(d) - 1) * tensor.stride(d);
    return static_cast<size_t>(last + 1) * tensor.element_size();
}

bool has_gaps(const at::Tensor &tensor, size_t extent)
{
    size_t own = tensor.element_size();
    for (int64_t d = 0; d < tensor.dim(); d++)
        if (tensor.stride(d) != 0)
            own *= static_cast<size_t>(tensor.size(d));
    return own < extent;
}

// Of each dimension whose rows leave gaps, the first and the last: whatever the dimensions
// outside it are at, they are so many steps of what divides all their strides.
static void find_rows(const at::Tensor &tensor, sim_rows (&rows)[SIM_ROWS])
{
    c10::SmallVector<std::pair<int64_t, int64_t>, 8> dims; // stride, size
    for (int64_t d = 0; d < tensor.dim(); d++)
        if (tensor.size(d) > 1 && tensor.stride(d))
            dims.emplace_back(tensor.stride(d), tensor.size(d));
    std::sort(dims.begin(), dims.end(), std::greater<>());

    int64_t run = 1, step = 0;
    for (const auto &dim : dims)
        run += dim.first * (dim.second - 1);
    int known = 0;
    for (const auto &dim : dims) {
        step = std::gcd(step, dim.first);
        run -= dim.first * (dim.second - 1);
        if (run >= step)
            continue;
        rows[known] = {static_cast<size_t>(step) * tensor.element_size(),
                       static_cast<size_t>(run) * tensor.element_size()};
        known = std::min(known + 1, SIM_ROWS - 1);
    }
}

sim_access access_of(const at::Tensor &tensor, bool written, bool unread)
{
    const size_t extent = extent_bytes(tensor);
    sim_access access = {tensor.const_data_ptr(),  extent, written, unread,
                         has_gaps(tensor, extent), {}};
    if (access.gaps)
        find_rows(tensor, access.rows);
    return access;
}

// A tensor without elements gets a storage of its own: a kernel that resizes it must not
// grow into the device's memory.
c10::Storage Aliases::storage(const at::Tensor &device)
{
    auto *impl = device.storage().unsafeGetStorageImpl();
    for (const auto &known : storages_)
        if (known.first == impl)
            return known.second;

    const bool empty = device.numel() == 0;
    auto *allocator = empty ? c10::GetCPUAllocator() : nullptr;
    c10::DataPtr bytes =
        empty ? allocator->allocate(0)
              : c10::DataPtr(const_cast<void *>(impl->data()), c10::Device(c10::kCPU));
    c10::Storage made = c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), empty ? 0 : impl->nbytes(), std::move(bytes),
        allocator, empty);
    if (!empty)
        storages_.emplace_back(impl, made);
    return made;
}

// A Python number takes part in type promotion otherwise than a tensor.
static void keep_wrapped(const at::Tensor &from, const at::Tensor &to)
{
    if (from.unsafeGetTensorImpl()->is_wrapped_number())
        to.unsafeGetTensorImpl()->set_wrapped_number(true);
}

at::Tensor Aliases::make(const at::Tensor &device)
{
    auto impl = c10::make_intrusive<c10::TensorImpl>(
        storage(device), c10::DispatchKeySet(c10::DispatchKey::CPU), device.dtype());
    const int64_t offset = device.numel() ? device.storage_offset() : 0;
    impl->set_sizes_and_strides(device.sizes(), device.strides(), offset);
    at::Tensor alias(std::move(impl));
    keep_wrapped(device, alias);
    if (device.is_conj())
        alias._set_conj(true);
    if (device.is_neg())
        alias._set_neg(true);
    return alias;
}

void Aliases::note(const at::Tensor &device, bool written, bool unread)
{
    if (device.numel())
        accesses_.push_back(access_of(device, written, unread));
}

static at::Tensor copy_of(const at::Tensor &host)
{
    at::Tensor copy = host.clone();
    keep_wrapped(host, copy);
    return copy;
}

at::Tensor Aliases::tensor(const at::Tensor &device, bool written, bool unread)
{
    if (!device.defined() || device.layout() != c10::kStrided || device._is_zerotensor())
        return device;
    for (const auto &known : tensors_) {
        if (known.first != device.unsafeGetTensorImpl())
            continue;
        if (written && device.is_cuda())
            note(device, true, unread);
        return known.second;
    }
    at::Tensor alias = device.is_cuda() ? make(device) : copy_of(device);
    if (device.is_cuda())
        note(device, written, unread);
    tensors_.emplace_back(device.unsafeGetTensorImpl(), alias);
    return alias;
}

c10::IValue Aliases::value(const c10::IValue &device, bool written, bool unread)
{
    if (device.isTensor())
        return tensor(device.toTensor(), written, unread);
    if (device.isDevice() && device.toDevice().is_cuda())
        return c10::Device(c10::kCPU);
    if (device.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const auto &item : device.toTensorVector())
            list.push_back(tensor(item, written, unread));
        return list;
    }
    if (device.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list;
        for (const auto &item : device.toOptionalTensorVector())
            list.push_back(item
                               ? std::optional<at::Tensor>(tensor(*item, written, unread))
                               : std::nullopt);
        return list;
    }
    return device;
}

} // namespace simtorch
