// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_SPARSE_HPP
#define SIM_TORCH_SPARSE_HPP

// Sparse tensors (COO, CSR, CSC, BSR, BSC). Most of PyTorch's code for them is made of
// operators on their indices and values and stays as it is; what launches kernels of its
// own, or asks cuSPARSE, computes at once on the CPU, as the size of its result depends
// on values.

#include "operator.hpp"

namespace simtorch
{

// The operators that need this, by their names at the SparseCUDA and SparseCsrCUDA keys.
std::vector<c10::OperatorName> sparse_operators(c10::DispatchKey key);

// `whole`. Under shapes only results that are dense can be allocated.
void host_sparse(const Operator &op, c10::DispatchKeySet keys, Stack *stack);

} // namespace simtorch

#endif
