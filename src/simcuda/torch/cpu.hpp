// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_CPU_HPP
#define SIM_TORCH_CPU_HPP

// PyTorch's CPU kernel as a body.

#include <exception>
#include <optional>

#include "operator.hpp"

namespace simtorch
{

// What the CPU's kernel threw at the arguments: the program gets it where it runs within
// the call, as it would on the CPU.
struct Refused : std::exception {
    std::exception_ptr thrown = std::current_exception();
};

// Under `values` refuses, as a CPU kernel does, unless it is true of all elements.
void expect(const at::Tensor &valid, const char *otherwise);

// The form of the operator that computes the same into a tensor that it is given, as its
// last argument: nothing is allocated on the host, and nothing copied.
std::optional<c10::OperatorHandle> form_into(const c10::OperatorHandle &handle);
void body_relu(Call &call);

} // namespace simtorch

#endif
