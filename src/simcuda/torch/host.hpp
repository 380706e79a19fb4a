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

// While it lives, operators that need values inside this thread's host pass may take
// them from these arguments. The outermost one counts.
class OuterCall
{
  public:
    explicit OuterCall(const Stack *arguments);
    ~OuterCall();
    OuterCall(const OuterCall &) = delete;
    OuterCall &operator=(const OuterCall &) = delete;

  private:
    const Stack *before_;
};

} // namespace simtorch

#endif
