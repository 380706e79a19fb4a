// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_TABLE_HPP
#define SIM_TORCH_TABLE_HPP

#include <memory>
#include <vector>

#include "operator.hpp"

namespace simtorch
{

struct Place {
    c10::OperatorName name;
    c10::DispatchKey key;
};

// Where kernels of ours may stand: every aten operator with a CUDA kernel, and the few
// whose code for all devices needs one.
std::vector<Place> places();

// The kernel for an operator at a key, or NULL where PyTorch's own one stays: operators
// that only look at metadata, or are made of others; in `shapes` also everything whose
// host code is PyTorch's own.
std::unique_ptr<Operator> operator_for(const c10::OperatorHandle &handle,
                                       c10::DispatchKey key);

// What an operator does on the simulated device, in words.
const char *kind_of(const c10::OperatorHandle &handle);

} // namespace simtorch

#endif
