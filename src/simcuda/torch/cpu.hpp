// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_CPU_HPP
#define SIM_TORCH_CPU_HPP

// PyTorch's CPU kernel as a body.

#include <exception>

#include "operator.hpp"

namespace simtorch
{

// What the CPU's kernel threw at the arguments: the program gets it where it runs within
// the call, as it would on the CPU.
struct Refused : std::exception {
    std::exception_ptr thrown = std::current_exception();
};

} // namespace simtorch

#endif
