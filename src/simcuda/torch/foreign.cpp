// SPDX-License-Identifier: Apache-2.0
#include "foreign.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include <c10/core/DeviceGuard.h>

#include "auto.hpp"
#include "operator.hpp"
#include "passage.hpp"

namespace simtorch
{

namespace
{

std::mutex lock; // of `pending`
std::vector<c10::OperatorHandle> pending;
std::atomic<bool> any_pending; // read by foreign_adopt
thread_local bool starting;

// The definition holds the dispatcher's lock: adopting has to wait.
class Watch : public c10::OpRegistrationListener
{
    void onOperatorRegistered(const c10::OperatorHandle &op) override
    {
        if (starting)
            return;
        const std::lock_guard<std::mutex> guard(lock);
        pending.push_back(op);
        any_pending = true;
    }
    void onOperatorDeregistered(const c10::OperatorHandle &op) override
    {
        const std::lock_guard<std::mutex> guard(lock);
        for (size_t i = pending.size(); i-- > 0;)
            if (pending[i] == op)
                pending.erase(pending.begin() + static_cast<ptrdiff_t>(i));
    }
};

bool has_kernel(const c10::OperatorHandle &op,
                std::initializer_list<c10::DispatchKey> keys)
{
    return std::any_of(keys.begin(), keys.end(),
                       [&](auto key) { return op.hasKernelForDispatchKey(key); });
}

bool any_on_device(const c10::IValue &value)
{
    if (value.isTensor())
        return value.toTensor().defined() && value.toTensor().is_cuda();
    if (value.isDevice())
        return value.toDevice().is_cuda();
    if (value.isTensorList() || value.isOptionalTensorList())
        for (const auto &item : value.toListRef())
            if (any_on_device(item))
                return true;
    return false;
}

// The package's own kernel.
void host_package(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    op.handle.redispatchBoxed(keys.remove(c10::DispatchKey::BackendSelect), stack);
}

// Work in the queue refers to its operator by address: none is ever destroyed.
const Operator &known(const c10::OperatorHandle &op)
{
    static std::unordered_map<c10::OperatorName, Operator *> all;
    const std::lock_guard<std::mutex> guard(lock);
    Operator *&found = all[op.operator_name()];
    if (found)
        return *found;
    found = new Operator(op);
    found->host = host_package;
    found->body = nullptr;
    // One that gives nothing and says that it writes nothing has not said what it does.
    auto &written = found->written;
    if (!found->returns() && std::count(written.begin(), written.end(), true) == 0)
        written.assign(written.size(), true);
    return *found;
}

// Stands at BackendSelect: above every device's kernel, below autograd and tracing, and
// nothing that packages use. An operator that has a kernel for the CPU as well is computed
// by that; where it is not computed, its CUDA kernel makes the allocations. One that has
// none runs as it is.
struct Foreign : c10::OperatorKernel {
    void operator()(const c10::OperatorHandle &handle, c10::DispatchKeySet keys,
                    Stack *stack)
    {
        const size_t count = handle.schema().arguments().size();
        const bool on_device = std::any_of(stack->end() - static_cast<ptrdiff_t>(count),
                                           stack->end(), any_on_device);
        const bool ours =
            on_device && !sim_in_host_pass() &&
            has_kernel(handle, {c10::DispatchKey::CUDA}) &&
            has_kernel(handle, {c10::DispatchKey::CPU,
                                c10::DispatchKey::CompositeExplicitAutograd});
        if (!ours) {
            handle.redispatchBoxed(keys.remove(c10::DispatchKey::BackendSelect), stack);
            return;
        }
        const Operator &op = known(handle);
        if (!can_compute_now(op, *stack)) {
            run_halves(op, host_package, keys, stack);
            return;
        }
        BelowAutograd below;
        const c10::DeviceIndex device = device_of(*stack, count);
        c10::DeviceGuard guard(c10::Device(c10::kCUDA, device));
        Passage(device).run(op, stack);
    }
};

void adopt(const c10::OperatorHandle &op)
{
    // Never undone, so neither is the handle destroyed.
    new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerImpl(
        op.operator_name(), c10::DispatchKey::BackendSelect,
        c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Foreign>()),
        std::nullopt, nullptr, "simcuda"));
}

} // namespace

void foreign_watch()
{
    starting = true;
    new c10::RegistrationHandleRAII(
        c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Watch>()));
    starting = false;
}

void foreign_adopt()
{
    if (!any_pending)
        return;
    std::vector<c10::OperatorHandle> found;
    {
        const std::lock_guard<std::mutex> guard(lock);
        found.swap(pending);
        any_pending = false;
    }
    for (const auto &op : found)
        if (!has_kernel(op, {c10::DispatchKey::BackendSelect}))
            adopt(op);
}

} // namespace simtorch
