// SPDX-License-Identifier: Apache-2.0
#include "auto.hpp"

#include <algorithm>
#include <cstring>

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>

#include "assume.hpp"
#include "check.hpp"
#include "effort.hpp"
#include "host.hpp"
#include "passage.hpp"
#include "random.hpp"
#include "where.hpp"

namespace simtorch
{

namespace
{

bool is_plain(const at::Tensor &tensor)
{
    return tensor.layout() == c10::kStrided && tensor.has_storage();
}

bool has_parts(const at::Tensor &tensor)
{
    return tensor.layout() == c10::kSparse ||
           at::sparse_csr::is_sparse_compressed(tensor);
}

void body_fill(Call &call)
{
    fill(call.results[0].toTensor(), static_cast<Fill>(call.arguments[0].toInt()),
         call.arguments[1].toInt(), cpu_generator(call.seed, call.offset));
}

} // namespace

bool is_integral(const at::Tensor &tensor)
{
    return c10::isIntegralType(tensor.scalar_type(), true);
}

enum sim_values values_of(const at::Tensor &tensor)
{
    if (!tensor.defined() || !tensor.is_cuda() || tensor._is_zerotensor())
        return SIM_KNOWN;
    if (!is_plain(tensor))
        return SIM_UNKNOWN;
    return sim_values_get(tensor.const_data_ptr(), extent_bytes(tensor));
}

// --- Footprint

void Footprint::add_tensor(const at::Tensor &tensor, bool written, bool unread)
{
    if (!tensor.defined() || !tensor.is_cuda() || tensor._is_zerotensor())
        return;
    if (has_parts(tensor)) {
        for (const auto &part : parts_of(tensor))
            add_tensor(part, written, unread);
        return;
    }
    if (!is_plain(tensor)) {
        foreign_ = true;
        return;
    }
    if (!tensor.numel())
        return;
    accesses_.push_back(access_of(tensor, written, unread));
    (is_integral(tensor) ? integers_ : floats_) += accesses_.back().bytes;
}

void Footprint::add(const c10::IValue &value, bool written, bool unread)
{
    if (value.isTensor()) {
        add_tensor(value.toTensor(), written, unread);
    } else if (value.isTensorList() || value.isOptionalTensorList()) {
        for (const auto &item : value.toListRef())
            if (item.isTensor())
                add_tensor(item.toTensor(), written, unread);
    }
}

enum sim_values Footprint::values() const
{
    enum sim_values least = foreign_ ? SIM_UNKNOWN : SIM_KNOWN;
    for (const auto &access : accesses_) {
        if (least == SIM_UNKNOWN)
            break;
        if (!access.unread)
            least = std::min(least, sim_values_get(access.address, access.bytes));
    }
    return least;
}

bool Footprint::cheap(const Operator &op) const
{
    const size_t floats = op.heavy ? SIM_AUTO_FLOATS_HEAVY : SIM_AUTO_FLOATS;
    return !foreign_ && integers_ <= SIM_AUTO_INTEGERS && floats_ <= floats;
}

void Footprint::lose(const Operator &op, c10::DeviceIndex device, const void *kept)
{
    lose(op, device, effort_of(accesses_.data(), accesses_.size()), kept);
}

void Footprint::lose(const Operator &op, c10::DeviceIndex device,
                     const sim_effort &effort, const void *kept)
{
    for (auto &access : accesses_)
        access.write = access.write && access.address != kept;
    const sim_work nothing = {op.name.c_str(),     nullptr, nullptr, nullptr,
                              SIM_ASSUMES_NOTHING, &effort};
    const c10::DeviceGuard guard(c10::Device(c10::kCUDA, device));
    const int error =
        sim_submit(current_stream(device), &nothing, accesses_.data(), accesses_.size());
    if (error)
        sim_fail("%s could not be queued: error %d", op.name.c_str(), error);
}

bool can_compute_now(const Operator &op, const Stack &stack)
{
    if (sim_compute() != SIM_AUTO)
        return sim_compute() == SIM_VALUES;
    Footprint touched;
    for (size_t i = 0; i < op.arguments(); i++)
        touched.add(stack[stack.size() - op.arguments() + i], op.written[i], false);
    return touched.cheap(op) && touched.values() == SIM_KNOWN;
}

// --- Calls

namespace
{

// What will be done once the host pass has made the results.
enum class Plan { lose, compute, stand_in };

// Numbers of one element that were not computed read as one wherever the program looks at
// them, so also where an operator compares them.
bool stands_in(const c10::IValue &value)
{
    if (!value.isTensor())
        return !value.isTensorList() && !value.isOptionalTensorList();
    const auto &tensor = value.toTensor();
    return values_of(tensor) != SIM_UNKNOWN ||
           (is_plain(tensor) && tensor.numel() == 1 && !is_integral(tensor));
}

bool all_stand_in(const Operator &op, const Stack &arguments)
{
    for (size_t i = 0; i < arguments.size(); i++)
        if (!op.unread[i] && !(stands_in(arguments[i]) && !op.written[i]))
            return false;
    return true;
}

Plan plan(const Operator &op, const Stack &arguments, const Footprint &touched)
{
    if (!op.body || sim_compute() == SIM_SHAPES || !touched.cheap(op))
        return Plan::lose;
    if (touched.values() != SIM_UNKNOWN)
        return Plan::compute;
    return all_stand_in(op, arguments) ? Plan::stand_in : Plan::lose;
}

bool only_integers(const Operator &op, const Call &call)
{
    const auto floats = [](const c10::IValue &value) {
        return !value.isTensor() || !is_integral(value.toTensor());
    };
    for (size_t i = 0; i < call.arguments.size(); i++)
        if (op.written[i] && floats(call.arguments[i]))
            return false;
    return std::none_of(call.results.begin(), call.results.end(), floats);
}

void put_stand_ins(Call *call)
{
    for (auto &argument : call->arguments)
        if (argument.isTensor() && values_of(argument.toTensor()) == SIM_UNKNOWN &&
            !is_integral(argument.toTensor()))
            argument = at::ones(argument.toTensor().sizes(),
                                at::dtype(argument.toTensor().scalar_type()));
}

// The tensors that the rule's fills are for.
std::vector<at::Tensor> filled(const Operator &op, const Call &call)
{
    std::vector<at::Tensor> found;
    for (const auto &result : call.results)
        found.push_back(result.isTensor() ? result.toTensor() : at::Tensor());
    if (found.empty())
        for (size_t i = 0; i < call.arguments.size(); i++)
            if (op.written[i])
                found.push_back(call.arguments[i].isTensor()
                                    ? call.arguments[i].toTensor()
                                    : at::Tensor());
    return found;
}

void submit_fill(const Call &of, const at::Tensor &tensor, Fill how,
                 const Assumed &assumed)
{
    Call call = of;
    call.effort = sim_effort(); // the call's own is counted
    call.body = body_fill;
    call.arguments = {static_cast<int64_t>(how), assumed.number};
    call.results = {tensor};
    call.assumes = assumed.likely ? SIM_ASSUMES_LIKELY : SIM_ASSUMES_ANSWER;
    call.reads_results = how == Fill::same;
    submit(std::move(call));
}

void submit_assumed(const Call &call, const Assumed &assumed)
{
    const auto tensors = filled(call.op, call);
    for (size_t i = 0; i < tensors.size() && i < assumed.fills.size(); i++) {
        const auto &tensor = tensors[i];
        if (assumed.fills[i] == Fill::nothing || !tensor.defined() || !tensor.numel())
            continue;
        Footprint own;
        own.add(tensor, true, true);
        if (own.cheap(call.op))
            submit_fill(call, tensor, assumed.fills[i], assumed);
    }
}

// What a rule keeps as it is must not be lost first.
const void *kept(const Call &call, const Assumed &assumed)
{
    const auto tensors = filled(call.op, call);
    for (size_t i = 0; i < tensors.size() && i < assumed.fills.size(); i++)
        if (assumed.fills[i] == Fill::same)
            return tensors[i].const_data_ptr();
    return nullptr;
}

void finish_without(const Call &call, Footprint *touched)
{
    const Operator &op = call.op;
    const auto assumed = op.assumes && sim_compute() == SIM_AUTO
                             ? assume(op, call.arguments)
                             : std::nullopt;
    touched->lose(op, device_of(call), *call.effort,
                  assumed ? kept(call, *assumed) : nullptr);
    if (assumed)
        submit_assumed(call, *assumed);
}

void finish(Plan plan, Call call, Footprint *touched)
{
    const bool cheap = touched->cheap(call.op);
    if (plan == Plan::compute && cheap) {
        submit(std::move(call));
    } else if (plan == Plan::stand_in && cheap && only_integers(call.op, call)) {
        put_stand_ins(&call);
        call.assumes = SIM_ASSUMES_ANSWER;
        submit(std::move(call));
    } else {
        finish_without(call, touched);
    }
}

} // namespace

void run_auto(const Operator &op, HostPass host, c10::DispatchKeySet keys, Stack *stack)
{
    Call call = {op, op.body, {}, {}};
    auto *first = top(stack, op.arguments());
    call.arguments.assign(first, first + op.arguments());

    Footprint touched;
    for (size_t i = 0; i < op.arguments(); i++)
        touched.add(first[i], op.written[i], op.unread[i]);
    const Plan due = plan(op, call.arguments, touched);
    if (op.random && (op.assumes || due == Plan::compute))
        note_generator(&call);
    host_pass(op, host, call.arguments, keys, stack);

    first = top(stack, op.returns());
    call.results.assign(first, first + op.returns());
    for (const auto &result : call.results)
        touched.add(result, true, true);
    call.effort = effort_of(call);
    finish(due, std::move(call), &touched);
}

// --- Sizes

// How many elements the mask picks from a tensor of that size.
static int64_t picked(const Operator &op, const at::Tensor &self, const at::Tensor &mask)
{
    Aliases aliases;
    const c10::DeviceGuard guard(mask.device());
    check_reads(op, {mask}, mask.get_device());
    const int error = sim_drain(current_stream(mask.get_device()));
    C10_CUDA_CHECK(static_cast<cudaError_t>(error));
    const int64_t set = aliases.tensor(mask, false).sum().item<int64_t>();
    const auto all = c10::multiply_integers(at::infer_size(self.sizes(), mask.sizes()));
    return mask.numel() ? set * (all / mask.numel()) : 0;
}

void host_masked_select(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    const auto *first = top(stack, op.arguments());
    const at::Tensor self = first[0].toTensor(), mask = first[1].toTensor();
    const bool values = values_of(mask) >= SIM_LIKELY;
    const bool sized = values && values_of(self) < SIM_LIKELY && !sim_in_host_pass();
    const bool printed = !values && python_prints_tensor();
    if (op.arguments() != 2 || !(sized || printed)) {
        host_eager(op, keys, stack);
        return;
    }
    BelowAutograd below;
    const c10::DeviceIndex device = self.get_device();
    const at::Tensor result =
        empty_device({printed ? 0 : picked(op, self, mask)}, self.scalar_type(), device);
    Footprint touched;
    touched.add(result, true, true);
    touched.lose(op, device);
    stack->resize(stack->size() - op.arguments());
    stack->emplace_back(result);
}

// Confusion matrices and the like count what lies below `minlength`.
void host_bincount(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    const auto *first = top(stack, op.arguments());
    const at::Tensor self = first[0].toTensor();
    const at::Tensor weights = first[1].isTensor() ? first[1].toTensor() : at::Tensor();
    const int64_t length = first[2].toInt();
    if (sim_compute() == SIM_VALUES || values_of(self) == SIM_KNOWN || length <= 0 ||
        sim_in_host_pass()) {
        host_eager(op, keys, stack);
        return;
    }
    BelowAutograd below;
    const c10::DeviceIndex device = self.get_device();
    const auto weighed = weights.defined() && weights.scalar_type() == at::kFloat
                             ? at::kFloat
                             : at::kDouble;
    const at::Tensor result =
        empty_device({length}, weights.defined() ? weighed : at::kLong, device);
    Footprint touched;
    touched.add(result, true, true);
    touched.lose(op, device);
    sim_missed_read(SIM_ASSUMED);
    stack->resize(stack->size() - op.arguments());
    stack->emplace_back(result);
}

// --- Reads

void refuse(const std::string &op, const std::string &what)
{
    const std::string line = python_line();
    sim_missed_refuse();
    TORCH_CHECK(false, "simcuda: ", op, " ", line.empty() ? "" : "(" + line + ") ", what,
                sim_compute() == SIM_SHAPES
                    ? ", and ACTSWAP_SIM_COMPUTE=shapes computes none; use auto or "
                      "values (actswap rehearse --compute values)"
                    : " that ACTSWAP_SIM_COMPUTE=auto does not compute; use values "
                      "(actswap rehearse --compute values)");
}

// A number that is not there can be given as one, which no loss minds; an integer or a
// truth value would decide what the program does next.
static void check_decision(const Operator &op, const at::Tensor &read)
{
    if (is_integral(read) && read.numel() == 1 && !python_prints_tensor())
        refuse(op.name, "reads one " + std::string(toString(read.scalar_type())) +
                            " to decide by");
}

// The host code of an operator decides by it what the card allocates.
static void check_inner_read(const at::Tensor &read)
{
    if (!sim_in_host_pass())
        return;
    const enum sim_values values = values_of(read);
    if (values == SIM_UNKNOWN)
        refuse(sim_host_pass_name(), "reads numbers to decide by");
    sim_missed_read(values);
}

void host_scalar(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    const at::Tensor read = stack->back().toTensor();
    check_inner_read(read);
    const enum sim_values values = sim_in_host_pass() ? SIM_KNOWN : values_of(read);
    if (values == SIM_UNKNOWN) {
        check_decision(op, read);
        const c10::DeviceGuard guard(read.device());
        check_reads(op, {read}, read.get_device());
        const int error =
            sim_read(current_stream(read.get_device()), read.element_size());
        C10_CUDA_CHECK(static_cast<cudaError_t>(error));
        const auto type = at::dtype(read.scalar_type());
        stack->back() =
            (is_integral(read) ? at::zeros({}, type) : at::ones({}, type)).item();
    } else {
        host_real(op, keys, stack);
    }
    sim_missed_read(values);
}

static sim_element element_of(const at::Tensor &moved)
{
    sim_element element = {};
    element.known = true;
    element.bytes = moved.element_size();
    element.integers = is_integral(moved);
    if (!element.integers && element.bytes <= sizeof(element.placeholder)) {
        const at::Tensor one = at::ones({1}, at::dtype(moved.scalar_type()));
        memcpy(element.placeholder, one.const_data_ptr(), element.bytes);
    }
    return element;
}

static thread_local int moving;

Moved::Moved(const Operator &op, const at::Tensor &to, const at::Tensor &from)
{
    const bool read = from.is_cuda() && !to.is_cuda();
    if (read && !moving)
        check_inner_read(from);
    if (read && !moving && !sim_in_host_pass()) {
        const enum sim_values values = values_of(from);
        if (values == SIM_UNKNOWN)
            check_decision(op, from);
        if (values != SIM_KNOWN && !to.is_pinned())
            sim_missed_read(values);
    }
    const sim_element element = element_of(from.is_cuda() ? from : to);
    sim_element_set(&element);
    moving++;
}

Moved::~Moved()
{
    sim_element_set(nullptr);
    moving--;
}

} // namespace simtorch
