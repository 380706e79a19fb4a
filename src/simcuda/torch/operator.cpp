// SPDX-License-Identifier: Apache-2.0
#include "operator.hpp"

#include <algorithm>
#include <cstring>

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "assume.hpp"
#include "auto.hpp"
#include "check.hpp"
#include "foreign.hpp"
#include "host.hpp"
#include "random.hpp"

namespace simtorch
{

namespace
{

class InHostPass
{
  public:
    InHostPass(const Operator &op, const Stack *arguments) : outer_(&op, arguments)
    {
        sim_host_pass_enter(op.name.c_str());
    }
    ~InHostPass()
    {
        sim_host_pass_leave();
    }
    InHostPass(const InHostPass &) = delete;
    InHostPass &operator=(const InHostPass &) = delete;

  private:
    OuterCall outer_;
};

std::vector<bool> written_arguments(const c10::FunctionSchema &schema)
{
    std::vector<bool> written;
    for (const auto &argument : schema.arguments())
        written.push_back(argument.alias_info() && argument.alias_info()->isWrite());
    return written;
}

// Arguments that are written over. Other operators that write in place read first.
std::vector<bool> unread_arguments(const c10::FunctionSchema &schema)
{
    static const char *const fillers[] = {
        "aten::copy_",          "aten::fill_",          "aten::zero_",
        "aten::_foreach_copy_", "aten::_foreach_zero_", "aten::uniform_",
        "aten::normal_",        "aten::random_",        "aten::bernoulli_",
        "aten::exponential_",   "aten::cauchy_",        "aten::log_normal_",
        "aten::geometric_"};
    const bool fills = std::find(std::begin(fillers), std::end(fillers), schema.name()) !=
                       std::end(fillers);
    std::vector<bool> unread;
    for (const auto &argument : schema.arguments())
        unread.push_back(argument.alias_info() && argument.alias_info()->isWrite() &&
                         (fills || argument.kwarg_only()));
    return unread;
}

std::string full_name(const c10::OperatorName &name)
{
    return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

// On a copy, because the body may use the arguments as its stack.
void replay(const Call &captured)
{
    Call call = captured;
    read_generator(&call);
    call.body(call);
}

void call_run(void *arg)
{
    Call &call = *static_cast<Call *>(arg);
    const char *name = call.op.name.c_str();

    // Reductions split their work by the number of threads; without this the queue's
    // thread would split otherwise than the program's own, and sums would differ.
    thread_local bool ready = (at::init_num_threads(), true);
    (void)ready;
    // The thread may be the program's: its profiler and its warnings are for its own calls.
    static c10::WarningHandler said;
    c10::WarningUtils::WarningHandlerGuard quiet(&said);
    std::optional<at::DisableRecordFunctionGuard> unrecorded;
    if (at::hasCallbacks())
        unrecorded.emplace();
    try {
        BelowAutograd below;
        if (call.captured)
            replay(call);
        else
            call.body(call);
    } catch (const c10::Error &error) {
        sim_fail("the body of %s failed: %s", name, error.what_without_backtrace());
    } catch (const std::exception &error) {
        sim_fail("the body of %s failed: %s", name, error.what());
    }
}

void call_destroy(void *arg)
{
    delete static_cast<Call *>(arg);
}

bool is_cuda(const c10::IValue &value, c10::DeviceIndex *device)
{
    if (value.isTensor()) {
        const auto &tensor = value.toTensor();
        if (!tensor.defined() || !tensor.is_cuda())
            return false;
        *device = tensor.get_device();
        return true;
    }
    if (value.isTensorList() || value.isOptionalTensorList())
        for (const auto &item : value.toListRef())
            if (is_cuda(item, device))
                return true;
    return false;
}

} // namespace

BelowAutograd::BelowAutograd()
    : guard_(c10::DispatchKeySet(c10::DispatchKey::BackendSelect),
             c10::default_excluded_set |
                 c10::autograd_dispatch_keyset_with_ADInplaceOrView)
{
}

Operator::Operator(c10::OperatorHandle found, c10::DispatchKey key)
    : handle(found), name(full_name(found.operator_name())),
      real(found.getComputedKernelForDispatchKey(key)), host(host_real), body(body_cpu),
      written(written_arguments(found.schema())),
      unread(unread_arguments(found.schema())), assumes(can_assume(name))
{
    random = place("generator") >= 0;
}

int Operator::place(const char *argument) const
{
    const auto &all = handle.schema().arguments();
    for (size_t i = 0; i < all.size(); i++)
        if (all[i].name() == argument)
            return static_cast<int>(i);
    return -1;
}

const c10::IValue &argument(const Call &call, const char *name)
{
    const int place = call.op.place(name);
    TORCH_CHECK(place >= 0, "it has no argument ", name);
    return call.arguments[place];
}

at::Tensor tensor(const Call &call, const char *name)
{
    const auto &value = argument(call, name);
    return value.isTensor() ? value.toTensor() : at::Tensor();
}

int64_t integer(const Call &call, const char *name, int64_t otherwise)
{
    const auto &value = argument(call, name);
    return value.isNone() ? otherwise : value.toInt();
}

void *current_stream(c10::DeviceIndex device)
{
    return c10::cuda::getCurrentCUDAStream(device).stream();
}

c10::DeviceIndex device_of(const Stack &stack, size_t count)
{
    c10::DeviceIndex device = -1;
    for (size_t i = stack.size() - count; i < stack.size(); i++)
        if (is_cuda(stack[i], &device))
            return device;
    return c10::cuda::current_device();
}

c10::DeviceIndex device_of(const Call &call)
{
    c10::DeviceIndex device = -1;
    for (const auto *values : {&call.arguments, &call.results})
        for (const auto &value : *values)
            if (is_cuda(value, &device))
                return device;
    return c10::cuda::current_device();
}

void submit(Call call)
{
    BelowAutograd below;
    const c10::DeviceIndex device = device_of(call);
    // What this call is the last to hold is freed behind its use, as on a card.
    const Stack held = checks() ? call.arguments : Stack();
    Aliases aliases;
    for (size_t i = 0; i < call.arguments.size(); i++) {
        const bool written = i < call.op.written.size() && call.op.written[i];
        const bool unread = written && call.op.unread[i];
        call.arguments[i] = aliases.value(call.arguments[i], written, unread);
    }
    for (auto &result : call.results)
        result = aliases.value(result, true, !call.reads_results);

    // A default stream's handle is that of whichever device is current.
    const c10::DeviceGuard guard(c10::Device(c10::kCUDA, device));
    void *stream = current_stream(device);
    call.captured = sim_captures(stream);

    const auto &accesses = aliases.accesses();
    const char *name = call.op.name.c_str();
    const sim_assumption assumes = call.assumes;
    const sim_work work = {name, call_run, call_destroy, new Call(std::move(call)),
                           assumes};
    const int error = sim_submit(stream, &work, accesses.data(), accesses.size());
    if (error)
        sim_fail("%s could not be queued: error %d", name, error);
}

void host_pass(const Operator &op, HostPass host, const Stack &arguments,
               c10::DispatchKeySet keys, Stack *stack)
{
    InHostPass pass(op, &arguments);
    host(op, keys, stack);
}

void run_halves(const Operator &op, HostPass host, c10::DispatchKeySet keys, Stack *stack)
{
    if (sim_in_host_pass()) {
        host(op, keys, stack);
        return;
    }
    if (sim_compute() == SIM_AUTO || (sim_compute() == SIM_SHAPES && checks())) {
        run_auto(op, host, keys, stack);
        return;
    }
    const bool values = op.body && sim_compute() == SIM_VALUES;
    Call call = {op, op.body, {}, {}};
    if (values) {
        auto *first = top(stack, op.arguments());
        call.arguments.assign(first, first + op.arguments());
        if (op.random)
            note_generator(&call);
    }
    host_pass(op, host, call.arguments, keys, stack);
    if (values) {
        auto *first = top(stack, op.returns());
        call.results.assign(first, first + op.returns());
        submit(std::move(call));
    }
}

void Operator::operator()(const c10::OperatorHandle &, c10::DispatchKeySet keys,
                          Stack *stack)
{
    foreign_adopt();
    if (whole)
        host(*this, keys, stack);
    else
        run_halves(*this, host, keys, stack);
}

void host_real(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    op.real.callBoxed(op.handle, keys, stack);
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

static void run_cpu(Call &call)
{
    const auto &schema = call.op.handle.schema().arguments();
    std::vector<Laid> outs;
    for (size_t i = 0; i < schema.size(); i++)
        if (call.op.written[i] && schema[i].kwarg_only() && call.arguments[i].isTensor())
            outs.emplace_back(call.arguments[i].toTensor());
    if (call.op.random)
        seed_argument(call);
    call.op.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU),
                                   &call.arguments);
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

void body_cpu(Call &call)
{
    ask_for_results(&call);
    run_cpu(call);
    for (size_t i = 0; i < call.results.size(); i++)
        deliver(call.results[i], call.arguments[i]);
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
