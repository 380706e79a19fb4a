// SPDX-License-Identifier: Apache-2.0
#include "cpu.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include <ATen/ops/clamp_min.h>

#include "random.hpp"

namespace simtorch
{

namespace
{

// Beside the pointwise ones: their form for a given result runs the same kernel, too.
const char *const others[] = {"aten::mm",
                              "aten::addmm",
                              "aten::bmm",
                              "aten::baddbmm",
                              "aten::cat",
                              "aten::gather",
                              "aten::index_select",
                              "aten::_softmax",
                              "aten::_log_softmax",
                              "aten::_softmax_backward_data",
                              "aten::_log_softmax_backward_data"};

bool writes_anywhere(const c10::OperatorHandle &handle)
{
    const auto &name = handle.schema().name();
    return handle.hasTag(at::Tag::pointwise) ||
           std::any_of(std::begin(others), std::end(others),
                       [&](const char *other) { return name == other; });
}

// `out` is `of` with one more argument, which it writes.
bool is_into(const c10::FunctionSchema &out, const c10::FunctionSchema &of)
{
    const size_t count = of.arguments().size();
    if (out.arguments().size() != count + 1)
        return false;
    const auto *written = out.arguments()[count].alias_info();
    if (!written || !written->isWrite() || !out.arguments()[count].kwarg_only())
        return false;
    for (size_t i = 0; i < count; i++) {
        const auto &left = out.arguments()[i], &right = of.arguments()[i];
        if (left.name() != right.name() || *left.type() != *right.type())
            return false;
    }
    return true;
}

const std::multimap<std::string, c10::OperatorName> &cpu_kernels()
{
    static const auto found = [] {
        std::multimap<std::string, c10::OperatorName> all;
        for (const auto &name :
             c10::Dispatcher::singleton().getRegistrationsForDispatchKey(
                 c10::DispatchKey::CPU))
            all.emplace(name.name, name);
        return all;
    }();
    return found;
}

} // namespace

std::optional<c10::OperatorHandle> form_into(const c10::OperatorHandle &handle)
{
    const auto &schema = handle.schema();
    if (schema.returns().size() != 1 || schema.returns()[0].alias_info() ||
        !writes_anywhere(handle))
        return std::nullopt;
    const auto range = cpu_kernels().equal_range(schema.name());
    for (auto at = range.first; at != range.second; ++at) {
        const auto other = c10::Dispatcher::singleton().findSchema(at->second);
        if (other && is_into(other->schema(), schema))
            return other;
    }
    return std::nullopt;
}

void expect(const at::Tensor &valid, const char *otherwise)
{
    if (sim_compute() != SIM_VALUES)
        return;
    try {
        TORCH_CHECK(valid.all().item<bool>(), otherwise);
    } catch (const c10::Error &) {
        throw Refused();
    }
}

static void deliver_tensor(const at::Tensor &result, const at::Tensor &computed)
{
    if (!result.defined() || result.numel() == 0)
        return;
    TORCH_CHECK(computed.defined(), "it left a result out");
    TORCH_CHECK(result.sizes() == computed.sizes(), "it computed sizes ",
                computed.sizes(), " where the device has ", result.sizes());
    TORCH_CHECK(result.scalar_type() == computed.scalar_type() ||
                    (result.is_floating_point() && computed.is_floating_point()),
                "it computed ", computed.scalar_type(), " where the device has ",
                result.scalar_type());
    const bool laid_alike = result.strides() == computed.strides();
    if (laid_alike && result.const_data_ptr() == computed.const_data_ptr())
        return;
    if (laid_alike && result.scalar_type() == computed.scalar_type() &&
        result.is_conj() == computed.is_conj() && result.is_neg() == computed.is_neg() &&
        !has_gaps(result, extent_bytes(result)))
        memcpy(result.mutable_data_ptr(), computed.const_data_ptr(),
               extent_bytes(result));
    else
        result.copy_(computed);
}

void deliver(const c10::IValue &result, const c10::IValue &computed)
{
    if (result.isTensor()) {
        deliver_tensor(result.toTensor(), computed.toTensor());
    } else if (result.isTensorList()) {
        const auto to = result.toTensorVector(), from = computed.toTensorVector();
        TORCH_CHECK(to.size() == from.size(), "it computed another number of tensors");
        for (size_t i = 0; i < to.size(); i++)
            deliver_tensor(to[i], from[i]);
    }
}

namespace
{

// A written tensor as the device has it. Some CPU kernels lay an out= tensor anew, and
// that changes the alias but not the device's tensor: what they wrote is then moved to
// where the device will look, and what they wrote beside it is put back.
class Laid
{
  public:
    explicit Laid(const at::Tensor &alias)
        : alias_(alias), sizes_(alias.sizes().vec()), strides_(alias.strides().vec())
    {
        const auto *first = static_cast<const char *>(alias.const_data_ptr());
        if (!alias.is_contiguous())
            before_.assign(first, first + extent_bytes(alias));
    }

    void restore() const
    {
        TORCH_CHECK(alias_.sizes() == sizes_, "it resized a result to ", alias_.sizes(),
                    " where the device has ", sizes_);
        if (alias_.strides() == strides_)
            return;
        const at::Tensor computed = alias_.clone();
        auto *impl = alias_.unsafeGetTensorImpl();
        impl->set_sizes_and_strides(sizes_, strides_, alias_.storage_offset());
        memcpy(alias_.mutable_data_ptr(), before_.data(), before_.size());
        alias_.copy_(computed);
    }

  private:
    at::Tensor alias_;
    std::vector<int64_t> sizes_, strides_;
    std::vector<char> before_;
};

} // namespace

static void redispatch(const c10::OperatorHandle &handle, Stack *stack)
{
    try {
        handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    } catch (const std::exception &) {
        throw Refused();
    }
}

static void run_cpu(Call &call)
{
    const auto &schema = call.op.handle.schema().arguments();
    std::vector<Laid> outs;
    for (size_t i = 0; i < schema.size(); i++)
        if (call.op.written[i] && schema[i].kwarg_only() && call.arguments[i].isTensor())
            outs.emplace_back(call.arguments[i].toTensor());
    if (call.op.random)
        seed_argument(call);
    redispatch(call.op.handle, &call.arguments);
    for (const auto &out : outs)
        out.restore();
}

// Some kernels of the card write a gradient that the mask leaves out.
static void ask_for_results(Call *call)
{
    const int place = call->op.place("output_mask");
    if (place < 0)
        return;
    c10::List<bool> mask;
    for (const auto &result : call->results)
        mask.push_back(result.isTensor() && result.toTensor().defined());
    call->arguments[static_cast<size_t>(place)] = mask;
}

// True if it could be done.
static bool run_into(Call &call)
{
    if (!call.op.into || call.op.random || call.results.size() != 1 ||
        !call.results[0].isTensor() || !call.results[0].toTensor().defined() ||
        !call.results[0].toTensor().numel())
        return false;
    call.arguments.push_back(call.results[0]);
    redispatch(*call.op.into, &call.arguments);
    return true;
}

void body_cpu(Call &call)
{
    ask_for_results(&call);
    if (!run_into(call))
        run_cpu(call);
    for (size_t i = 0; i < call.results.size(); i++)
        deliver(call.results[i], call.arguments[i]);
}

// The CPU's relu is clamp_min by 0, and has no form of its own for a given result.
void body_relu(Call &call)
{
    at::Tensor result = call.results[0].toTensor();
    at::clamp_min_out(result, call.arguments[0].toTensor(), 0);
}

void body_cpu_lenient(Call &call)
{
    run_cpu(call);
    for (size_t i = 0; i < call.results.size(); i++) {
        const auto &computed = call.arguments[i];
        if (!computed.isTensor() || computed.toTensor().numel())
            deliver(call.results[i], computed);
    }
}

} // namespace simtorch
