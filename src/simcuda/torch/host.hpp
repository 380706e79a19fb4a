// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_HOST_HPP
#define SIM_TORCH_HOST_HPP

// For host passes of ours: allocations as PyTorch's CUDA host code makes them.

#include "operator.hpp"

namespace simtorch
{

at::Tensor empty_like_meta(const at::Tensor &meta, c10::DeviceIndex device);
at::Tensor empty_device(c10::IntArrayRef sizes, c10::ScalarType dtype,
                        c10::DeviceIndex device);

// While it lives, whatever needs values inside this thread's host pass may take them from
// these arguments. The outermost one counts.
class OuterCall
{
  public:
    OuterCall(const Operator *op, const Stack *arguments);
    ~OuterCall();
    OuterCall(const OuterCall &) = delete;
    OuterCall &operator=(const OuterCall &) = delete;

  private:
    const Operator *op_before_;
    const Stack *before_;
};

// Whether the outer call was given what lies there: what it writes itself and what its
// host code made since has not been computed.
bool outer_call_reads(const void *address);

// Counts up and down: while above 0, single numbers that this thread copies from the host
// into a captured graph are constants of it.
void constants_count(int by);

} // namespace simtorch

#endif
