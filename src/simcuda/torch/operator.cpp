// SPDX-License-Identifier: Apache-2.0
#include "operator.hpp"

#include <algorithm>
#include <cstring>

#include <ATen/Parallel.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "assume.hpp"
#include "auto.hpp"
#include "check.hpp"
#include "cpu.hpp"
#include "effort.hpp"
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

struct Queued {
    Call call;
    const char *line; // of the program, if it may refuse; or NULL
};

// Whether a kernel may find numbers that it cannot do with: indices, labels, chances.
bool may_refuse(const Call &call)
{
    bool integers = false;
    const auto look = [&](const at::Tensor &tensor) {
        integers |= tensor.defined() &&
                    c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
    };
    for (const auto &value : call.arguments) {
        if (value.isTensor())
            look(value.toTensor());
        else if (value.isTensorList() || value.isOptionalTensorList())
            for (const auto &item : value.toListRef())
                if (item.isTensor())
                    look(item.toTensor());
    }
    return integers || call.op.random;
}

// The call that this thread is submitting, and what it refused.
struct Submitting {
    explicit Submitting(const Queued *submitted) : call(submitted), before(innermost)
    {
        innermost = this;
    }
    ~Submitting()
    {
        innermost = before;
    }
    Submitting(const Submitting &) = delete;
    Submitting &operator=(const Submitting &) = delete;

    static thread_local Submitting *innermost;
    const Queued *call;
    Submitting *before;
    std::exception_ptr thrown;
};

thread_local Submitting *Submitting::innermost;

std::string message_of(const std::exception_ptr &thrown)
{
    try {
        std::rethrow_exception(thrown);
    } catch (const c10::Error &error) {
        return error.what_without_backtrace();
    } catch (const std::exception &error) {
        return error.what();
    }
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
    auto *queued = static_cast<Queued *>(arg);
    Call &call = queued->call;
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
    // Some CPU kernels (of recurrent networks) are others where no gradient is asked for, and
    // whose turn it is to wait says nothing about that.
    const c10::InferenceMode plain(false);
    try {
        BelowAutograd below;
        if (call.captured)
            replay(call);
        else
            call.body(call);
    } catch (const Refused &refused) {
        Submitting *within = Submitting::innermost;
        const std::string line =
            queued->line ? " (" + std::string(queued->line) + ")" : "";
        if (within && within->call == queued)
            within->thrown = refused.thrown;
        else
            sim_assert((name + line + ": " + message_of(refused.thrown)).c_str());
    } catch (const std::exception &) {
        sim_fail("the body of %s failed: %s", name,
                 message_of(std::current_exception()).c_str());
    }
}

void call_destroy(void *arg)
{
    delete static_cast<Queued *>(arg);
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
      written(written_arguments(found.schema())), arithmetic(arithmetic_of(name)),
      picks(picks_of(name)), unread(unread_arguments(found.schema())),
      assumes(can_assume(name))
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
    const sim_effort effort =
        call.effort ? *call.effort : effort_of(accesses.data(), accesses.size());
    const char *line = may_refuse(call) ? line_of_call() : nullptr;
    auto *queued = new Queued{std::move(call), line};
    const sim_work work = {name, call_run, call_destroy, queued, assumes, &effort};
    const Submitting submitting(queued);
    const int error = sim_submit(stream, &work, accesses.data(), accesses.size());
    if (submitting.thrown)
        std::rethrow_exception(submitting.thrown);
    if (sim_asserted())
        C10_CUDA_CHECK(cudaErrorAssert);
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
    if (sim_compute() != SIM_VALUES) {
        run_auto(op, host, keys, stack);
        return;
    }
    Call call = {op, op.body, {}, {}};
    auto *first = top(stack, op.arguments());
    call.arguments.assign(first, first + op.arguments());
    if (op.random)
        note_generator(&call);
    host_pass(op, host, call.arguments, keys, stack);
    first = top(stack, op.returns());
    call.results.assign(first, first + op.returns());
    call.effort = effort_of(call);
    submit(std::move(call));
}

void Operator::operator()(const c10::OperatorHandle &, c10::DispatchKeySet keys,
                          Stack *stack)
{
    foreign_adopt();
    if (together)
        check_together(*this, *stack);
    if (whole)
        host(*this, keys, stack);
    else
        run_halves(*this, host, keys, stack);
}

void check_together(const Operator &op, const Stack &stack)
{
    const auto &schema = op.handle.schema().arguments();
    std::optional<c10::Device> device;
    const auto check = [&](const c10::IValue &value, const std::string &argument) {
        if (value.isTensor() && value.toTensor().defined() && value.toTensor().dim())
            c10::impl::check_and_update_common_device(device, value.toTensor(),
                                                      op.name.c_str(), argument.c_str());
    };
    for (size_t i = 0; i < schema.size(); i++) {
        const auto &value = stack[stack.size() - schema.size() + i];
        check(value, schema[i].name());
        if (value.isTensorList() || value.isOptionalTensorList())
            for (const auto &item : value.toListRef())
                check(item, schema[i].name());
    }
}

void host_real(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    op.real.callBoxed(op.handle, keys, stack);
}

} // namespace simtorch
