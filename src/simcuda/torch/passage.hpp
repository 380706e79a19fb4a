// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_PASSAGE_HPP
#define SIM_TORCH_PASSAGE_HPP

#include <utility>
#include <vector>

#include "operator.hpp"

namespace simtorch
{

bool is_sparse(const at::Tensor &tensor);

// The dense tensors that a sparse one consists of, without autograd; a dense one itself.
std::vector<at::Tensor> parts_of(const at::Tensor &tensor);

// One call that computes at once, on the calling thread: its tensors, sparse ones too,
// become aliases on the CPU, and what comes out is allocated on the device and filled in
// stream order. Tensors that are on the host already are passed as they are.
//
// Thread-safety: none; for one call.
class Passage
{
  public:
    explicit Passage(c10::DeviceIndex device) : device_(device)
    {
    }

    // Waits for the stream, calls the operator, and replaces the arguments on the stack by
    // the device's results. Below autograd.
    void run(const Operator &op, Stack *stack);

  private:
    c10::IValue to_host(const c10::IValue &value, bool written);
    c10::IValue to_device(const c10::IValue &computed);
    at::Tensor to_host(const at::Tensor &device, bool written);
    at::Tensor to_device(const at::Tensor &host);
    at::Tensor dense_to_device(const at::Tensor &host);
    void set_parts(const at::Tensor &device, const at::Tensor &host);

    c10::DeviceIndex device_;
    Aliases aliases_;
    std::vector<std::pair<at::Tensor, at::Tensor>> pairs_, written_;
    Stack computed_, wanted_; // what was computed, and where the device wants it
};

} // namespace simtorch

#endif
