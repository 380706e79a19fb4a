// SPDX-License-Identifier: Apache-2.0
// Host passes of operators whose CUDA host code cannot run on the simulated device.
#include "host.hpp"

#include <algorithm>

#include "auto.hpp"
#include "check.hpp"
#include "where.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/cuda/EmptyTensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>

namespace simtorch
{

at::Tensor empty_like_meta(const at::Tensor &meta, c10::DeviceIndex device)
{
    return at::detail::empty_strided_cuda(meta.sizes(), meta.strides(),
                                          meta.scalar_type(),
                                          c10::Device(c10::kCUDA, device));
}

at::Tensor empty_device(c10::IntArrayRef sizes, c10::ScalarType dtype,
                        c10::DeviceIndex device)
{
    return at::detail::empty_cuda(sizes, dtype, c10::Device(c10::kCUDA, device),
                                  std::nullopt);
}

// --- Meta

namespace
{

// CUDA tensors of a call, and the meta or CPU tensors that stand for them.
using Pairs = std::vector<std::pair<at::Tensor, at::Tensor>>;

at::Tensor to_meta(const at::Tensor &tensor, Pairs *pairs)
{
    if (!tensor.defined() || !tensor.is_cuda())
        return tensor;
    for (const auto &pair : *pairs)
        if (pair.first.is_same(tensor))
            return pair.second;
    at::Tensor meta = at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(),
                                                     tensor.scalar_type());
    pairs->emplace_back(tensor, meta);
    return meta;
}

c10::IValue to_meta(const c10::IValue &value, Pairs *pairs)
{
    if (value.isTensor())
        return to_meta(value.toTensor(), pairs);
    if (value.isDevice() && value.toDevice().is_cuda())
        return c10::Device(c10::kMeta);
    if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const auto &item : value.toTensorVector())
            list.push_back(to_meta(item, pairs));
        return list;
    }
    return value;
}

// What the device has for a tensor that another kernel gave back: one of the arguments,
// resized if that kernel resized it, or a new tensor of that shape.
at::Tensor from_stand_in(const at::Tensor &given, const Pairs &pairs,
                         c10::DeviceIndex device)
{
    if (!given.defined())
        return given;
    for (const auto &pair : pairs) {
        if (!pair.second.is_same(given))
            continue;
        if (pair.first.sizes() != given.sizes())
            pair.first.resize_(given.sizes());
        return pair.first;
    }
    return empty_like_meta(given, device);
}

c10::IValue from_stand_in(const c10::IValue &given, const Pairs &pairs,
                          c10::DeviceIndex device)
{
    if (given.isTensor())
        return from_stand_in(given.toTensor(), pairs, device);
    if (given.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const auto &item : given.toTensorVector())
            list.push_back(from_stand_in(item, pairs, device));
        return list;
    }
    return given;
}

} // namespace

void host_meta(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    const c10::DeviceIndex device = device_of(*stack, op.arguments());
    c10::DeviceGuard guard(c10::Device(c10::kCUDA, device));
    Pairs pairs;
    auto *first = top(stack, op.arguments());
    for (size_t i = 0; i < op.arguments(); i++)
        first[i] = to_meta(first[i], &pairs);
    op.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
    first = top(stack, op.returns());
    for (size_t i = 0; i < op.returns(); i++)
        first[i] = from_stand_in(first[i], pairs, device);
}

// --- Sizes that depend on values

namespace
{

// The call whose host pass this thread is in, if any.
thread_local const Operator *outer_op;
thread_local const Stack *outer_arguments;

bool holds_storage(const c10::IValue &value, const void *storage)
{
    if (value.isTensor()) {
        const auto &tensor = value.toTensor();
        return tensor.defined() && tensor.has_storage() &&
               tensor.storage().unsafeGetStorageImpl() == storage;
    }
    if (value.isTensorList() || value.isOptionalTensorList())
        for (const auto &item : value.toListRef())
            if (holds_storage(item, storage))
                return true;
    return false;
}

// Inside another operator's host pass only that operator's arguments have values:
// whatever its host code made since has not been computed.
bool computed_by_caller(const at::Tensor &tensor)
{
    if (!sim_in_host_pass())
        return true;
    if (!outer_arguments)
        return false;
    for (const auto &argument : *outer_arguments)
        if (holds_storage(argument, tensor.storage().unsafeGetStorageImpl()))
            return true;
    return false;
}

void check_values(const Operator &op, const c10::IValue &value)
{
    if (sim_compute() == SIM_SHAPES)
        refuse(op.name, "makes a result whose size depends on values");
    if (!value.isTensor() || !value.toTensor().defined() || !value.toTensor().is_cuda())
        return;
    const auto &tensor = value.toTensor();
    if (values_of(tensor) < SIM_LIKELY)
        refuse(op.name, "makes a result whose size depends on values");
    TORCH_CHECK(computed_by_caller(tensor), "simcuda: ", op.name,
                " is asked for values that its caller has not computed yet");
}

bool is_known(const c10::IValue &value)
{
    return !value.isTensor() || values_of(value.toTensor()) == SIM_KNOWN;
}

} // namespace

OuterCall::OuterCall(const Operator *op, const Stack *arguments)
    : op_before_(outer_op), before_(outer_arguments)
{
    if (outer_arguments)
        return;
    outer_op = op;
    outer_arguments = arguments;
}

OuterCall::~OuterCall()
{
    outer_op = op_before_;
    outer_arguments = before_;
}

static bool lies_in(const void *address, const c10::IValue &value)
{
    if (value.isTensor()) {
        const auto &tensor = value.toTensor();
        if (!tensor.defined() || !tensor.is_cuda() || !tensor.has_storage())
            return false;
        const auto *first = static_cast<const char *>(tensor.const_data_ptr());
        return address >= first && address < first + extent_bytes(tensor);
    }
    if (value.isTensorList() || value.isOptionalTensorList())
        for (const auto &item : value.toListRef())
            if (lies_in(address, item))
                return true;
    return false;
}

bool outer_call_reads(const void *address)
{
    if (!outer_arguments)
        return false;
    for (size_t i = 0; i < outer_arguments->size(); i++)
        if (!outer_op->written[i] && lies_in(address, (*outer_arguments)[i]))
            return true;
    return false;
}

static void body_deliver(Call &call)
{
    for (size_t i = 0; i < call.results.size(); i++)
        deliver(call.results[i], call.arguments[i]);
}

void host_eager(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    const size_t count = op.arguments();
    const c10::DeviceIndex device = device_of(*stack, count);
    c10::DeviceGuard guard(c10::Device(c10::kCUDA, device));
    auto *first = top(stack, count);
    Pairs pairs;
    Aliases aliases;
    check_reads(op, Stack(first, first + count), device);
    const bool known = std::all_of(first, first + count, is_known);
    for (size_t i = 0; i < count; i++) {
        check_values(op, first[i]);
        const c10::IValue alias = aliases.value(first[i], op.written[i]);
        if (first[i].isTensor() && first[i].toTensor().defined())
            pairs.emplace_back(first[i].toTensor(), alias.toTensor());
        first[i] = alias;
    }
    const int error = sim_drain(current_stream(device));
    C10_CUDA_CHECK(static_cast<cudaError_t>(error));
    op.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);

    first = top(stack, op.returns());
    const Stack computed(first, first + op.returns());
    for (size_t i = 0; i < op.returns(); i++)
        first[i] = from_stand_in(first[i], pairs, device);
    Call call = {op, body_deliver, computed, Stack(first, first + op.returns())};
    call.assumes = known ? SIM_ASSUMES_NOTHING : SIM_ASSUMES_LIKELY;
    submit(std::move(call));
}

// Inside another operator's host pass there is nothing to compute.
void host_missing(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    TORCH_CHECK(sim_in_host_pass(), "simcuda: ", op.name,
                " has no body: it cannot run "
                "on the simulated device (docs/operators.md lists those that can)");
    op.real.callBoxed(op.handle, keys, stack);
}

// --- Copies

static thread_local int constants;

void constants_count(int by)
{
    constants += by;
}

static bool is_constant(const at::Tensor &to, const at::Tensor &from)
{
    return constants > 0 && to.is_cuda() && from.is_cpu() && from.numel() == 1 &&
           sim_captures(current_stream(to.get_device()));
}

// Between host and device PyTorch's own code runs as it is: its cudaMemcpyAsync is real,
// and what it converts or makes contiguous comes back here as operators of its own.
void host_copy(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    const auto *first = top(stack, op.arguments());
    const at::Tensor to = first[0].toTensor(), from = first[1].toTensor();
    if (to.device() == from.device()) {
        run_halves(op, host_real, keys, stack);
    } else if (is_constant(to, from)) {
        stack->resize(stack->size() - op.arguments());
        stack->emplace_back(to.fill_(from.item()));
    } else if (sim_compute() == SIM_AUTO) {
        const Moved moved(op, to, from);
        host_real(op, keys, stack);
    } else {
        host_real(op, keys, stack);
    }
}

} // namespace simtorch
