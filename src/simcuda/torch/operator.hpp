// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_OPERATOR_HPP
#define SIM_TORCH_OPERATOR_HPP

// What an operator does on the simulated device.
//
// A call on CUDA tensors has two halves. The *host pass* runs on the calling thread and
// makes the allocations of the card: as a rule PyTorch's own CUDA host code, whose
// launches do nothing meanwhile. The *body* runs later from the queue, in stream
// order, and computes: as a rule PyTorch's CPU kernel on aliases of the device's bytes.
// With ACTSWAP_SIM_COMPUTE=shapes there is no body, with auto it runs where it is cheap
// (auto.hpp), so all modes allocate alike.
//
// Operators whose host code cannot run (it calls a closed library, or needs a value from
// the device) have a host pass of ours; operators that a CPU kernel cannot stand for
// (attention, random numbers) have a body of ours. Both are named in table.cpp.

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

#include "alias.hpp"

namespace simtorch
{

using Stack = std::vector<c10::IValue>;

struct Operator;
struct Call;
struct Arithmetic; // effort.cpp

// Replaces the arguments at the end of the stack by the results, as a boxed kernel does.
using HostPass = void (*)(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
using Body = void (*)(Call &call);

// One submitted call, on aliases.
struct Call {
    const Operator &op;
    Body body;
    Stack arguments; // a body may use it as its stack
    Stack results; // the device's results, for the body to fill
    uint64_t seed = 0, offset = 0; // of the device's generator before it, if op.random
    // If it is captured: where a replay finds the seed, and what to add to the offset.
    const int64_t *seed_at = nullptr, *offset_at = nullptr;
    bool captured = false; // its body runs at each replay
    sim_assumption assumes = SIM_ASSUMES_NOTHING; // mode auto
    bool reads_results = false; // as they are before it
    std::optional<sim_effort> effort = std::nullopt; // none: one kernel for its bytes
};

struct Operator : c10::OperatorKernel {
    explicit Operator(c10::OperatorHandle found,
                      c10::DispatchKey key = c10::DispatchKey::CUDA);

    // The boxed kernel that the dispatcher calls for CUDA tensors.
    void operator()(const c10::OperatorHandle &, c10::DispatchKeySet keys, Stack *stack);

    size_t arguments() const
    {
        return handle.schema().arguments().size();
    }
    size_t returns() const
    {
        return handle.schema().returns().size();
    }
    // The place of an argument by its schema name, or -1.
    int place(const char *argument) const;

    c10::OperatorHandle handle;
    std::string name; // "aten::add.Tensor"
    c10::SafeKernelFunction real;
    HostPass host;
    Body body; // NULL: nothing to compute
    std::optional<c10::OperatorHandle> into; // for body_cpu (cpu.hpp)
    bool whole = false; // `host` is all of it: decides itself what is computed, and when
    bool random = false;
    bool together = false; // all its tensors must be on the device: nobody else looks
    std::vector<bool> written; // by argument
    // For the virtual clock.
    const Arithmetic *arithmetic;
    bool picks; // reads or writes a part of its first tensor only
    // For mode auto.
    std::vector<bool> unread; // by argument: written without being read
    bool heavy = false; // its work grows faster than its bytes
    bool assumes = false; // there is a rule for it in assume.cpp
};

// --- Host passes

// PyTorch's own CUDA kernel.
void host_real(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
// The Meta kernel says what the results are; they are allocated, nothing else is.
void host_meta(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
// For operators whose sizes depend on values (`whole`): computes at once on the CPU, then
// allocates what came out.
void host_eager(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
// The same for masked_select, whose size only depends on the mask.
void host_masked_select(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
// For operators without a body (`whole`): an error that names it.
void host_missing(const Operator &op, c10::DispatchKeySet keys, Stack *stack);
// copy_ (`whole`).
void host_copy(const Operator &op, c10::DispatchKeySet keys, Stack *stack);

// --- Bodies

// The CPU kernel of the same operator.
void body_cpu(Call &call);
// The same where the CPU leaves empty what the device keeps and never reads.
void body_cpu_lenient(Call &call);
// A matrix product with an output type of its own.
void body_product_dtype(Call &call);

// --- For writing them

// Dispatch as inside a CPU kernel: below autograd, autocast and every mode.
class BelowAutograd
{
  public:
    BelowAutograd();

  private:
    c10::impl::ForceDispatchKeyGuard guard_;
};

// The stream that the call's device works on now.
void *current_stream(c10::DeviceIndex device);
// The device of the first CUDA tensor in the last `count` values, or the current one.
c10::DeviceIndex device_of(const Stack &stack, size_t count);
c10::DeviceIndex device_of(const Call &call);
// Copies what a CPU kernel returned into the alias of the device's result, unless it is
// the same memory. Throws when the two do not fit.
void deliver(const c10::IValue &result, const c10::IValue &computed);
// Queues the call: its arguments and results, so far as the device has them, become
// aliases here.
void submit(Call call);
// The host pass alone; takes the arguments from the stack and leaves the results there.
void host_pass(const Operator &op, HostPass host, const Stack &arguments,
               c10::DispatchKeySet keys, Stack *stack);
// The host pass and then the body, unless this is inside another host pass.
void run_halves(const Operator &op, HostPass host, c10::DispatchKeySet keys,
                Stack *stack);

// An argument by its schema name; a tensor that was not given is undefined.
const c10::IValue &argument(const Call &call, const char *name);
at::Tensor tensor(const Call &call, const char *name);
int64_t integer(const Call &call, const char *name, int64_t otherwise);

// Throws what PyTorch's own CUDA kernels throw if the tensors are not on one device. A
// number (a tensor without dimensions) may be on the host.
void check_together(const Operator &op, const Stack &stack);

// The values at the end of the stack.
inline c10::IValue *top(Stack *stack, size_t count)
{
    return stack->data() + (stack->size() - count);
}

} // namespace simtorch

#endif
