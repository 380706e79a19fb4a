// SPDX-License-Identifier: Apache-2.0
#include "watch.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include "alias.hpp"

namespace simtorch
{

namespace
{

struct HostOperator {
    bool touches = false;
    std::string name;
    std::vector<bool> written, viewed; // by argument
};

bool only_metadata(const std::string &name)
{
    static const char *const names[] = {"aten::resize_", "aten::set_", "aten::is_set_to",
                                        "aten::_resize_output_"};
    const auto ends_in = [&](const std::string &end) {
        return name.size() >= end.size() &&
               !name.compare(name.size() - end.size(), end.size(), end);
    };
    return std::find(std::begin(names), std::end(names), name) != std::end(names) ||
           ends_in("_like") || name.find("::new_") != name.npos;
}

HostOperator describe(const c10::OperatorHandle &handle)
{
    const auto &schema = handle.schema();
    HostOperator made;
    made.touches = (handle.hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
                    schema.name() == "aten::copy_") &&
                   !only_metadata(schema.name());
    made.name = schema.name() + " on the CPU";
    for (const auto &argument : schema.arguments()) {
        const auto *alias = argument.alias_info();
        made.written.push_back(alias && alias->isWrite());
        made.viewed.push_back(alias && !alias->isWrite());
    }
    return made;
}

const HostOperator *find(const at::RecordFunction &function)
{
    static std::mutex found_lock;
    static std::unordered_map<c10::OperatorName, HostOperator> all;
    const auto name = function.operator_name();
    if (!name)
        return nullptr;
    const std::lock_guard<std::mutex> guard(found_lock);
    const auto known = all.find(*name);
    if (known != all.end())
        return &known->second;
    const auto handle = c10::Dispatcher::singleton().findSchema(*name);
    return &all.emplace(*name, handle ? describe(*handle) : HostOperator()).first->second;
}

template <typename Seen> void each_tensor(const c10::IValue &value, const Seen &seen)
{
    if (value.isTensor() && value.toTensor().defined())
        seen(value.toTensor());
    else if (value.isTensorList() || value.isOptionalTensorList())
        for (const auto &item : value.toListRef())
            each_tensor(item, seen);
}

void note_host(const HostOperator &op, c10::ArrayRef<const c10::IValue> inputs)
{
    bool device = false;
    for (const auto &input : inputs)
        each_tensor(input, [&](const auto &tensor) { device |= tensor.is_cuda(); });
    for (size_t i = 0; i < inputs.size() && i < op.written.size() && !device; i++) {
        if (op.viewed[i])
            continue;
        each_tensor(inputs[i], [&](const at::Tensor &tensor) {
            if (tensor.is_cpu() && tensor.layout() == c10::kStrided &&
                tensor.has_storage() && tensor.numel())
                sim_check_host(tensor.const_data_ptr(), extent_bytes(tensor),
                               op.written[i], op.name.c_str());
        });
    }
}

std::unique_ptr<at::ObserverContext> note_operator(const at::RecordFunction &function)
{
    const HostOperator *op = sim_in_host_pass() ? nullptr : find(function);
    if (op && op->touches)
        note_host(*op, function.inputs());
    return nullptr;
}

} // namespace

void watch_host()
{
    at::addGlobalCallback(at::RecordFunctionCallback(note_operator)
                              .needsInputs(true)
                              .scopes({at::RecordScope::FUNCTION}));
}

} // namespace simtorch
