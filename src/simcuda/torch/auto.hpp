// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_AUTO_HPP
#define SIM_TORCH_AUTO_HPP

// ACTSWAP_SIM_COMPUTE=auto: an operator is computed when all that it reads has values and
// it is cheap; else what it writes has none. docs/simcuda.md says what then happens.

#include <c10/util/SmallVector.h>

#include "operator.hpp"

namespace simtorch
{

// What one call reads and writes on the device, and how much of it.
class Footprint
{
  public:
    void add(const c10::IValue &value, bool written, bool unread);

    // The least that is known of what it reads.
    enum sim_values values() const;
    bool cheap(const Operator &op) const;

    // Queues that the operator ran and left nothing that has values, but at `kept`.
    void lose(const Operator &op, c10::DeviceIndex device, const void *kept = nullptr);
    void lose(const Operator &op, c10::DeviceIndex device, const sim_effort &effort,
              const void *kept = nullptr);

  private:
    void add_tensor(const at::Tensor &tensor, bool written, bool unread);

    c10::SmallVector<sim_access, 8> accesses_;
    size_t integers_ = 0, floats_ = 0;
    bool foreign_ = false; // a tensor that is no plain memory
};

// The host pass, and then as much of the body as is due.
void run_auto(const Operator &op, HostPass host, c10::DispatchKeySet keys, Stack *stack);

// What is known of a tensor's memory; of one on the host all is.
enum sim_values values_of(const at::Tensor &tensor);

// Whether a call that computes at once, on the calling thread, may do so: the mode
// computes it and its arguments, at the end of the stack, have values.
bool can_compute_now(const Operator &op, const Stack &stack);

bool is_integral(const at::Tensor &tensor);

// Ends the call with one line: the operator, the program's line, `what` it lacks, and the
// way out.
[[noreturn]] void refuse(const std::string &op, const std::string &what);

// bincount, whose size is known without values as long as none reaches `minlength`.
void host_bincount(const Operator &op, c10::DispatchKeySet keys, Stack *stack);

// .item() and the like (`whole`).
void host_scalar(const Operator &op, c10::DispatchKeySet keys, Stack *stack);

// The elements that a copy between host and device moves, while it lives; a copy to the
// host is a read by the program.
class Moved
{
  public:
    Moved(const Operator &op, const at::Tensor &to, const at::Tensor &from);
    ~Moved();
    Moved(const Moved &) = delete;
    Moved &operator=(const Moved &) = delete;
};

} // namespace simtorch

#endif
