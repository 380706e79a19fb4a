// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_EMBEDDING_HPP
#define SIM_TORCH_EMBEDDING_HPP

#include "operator.hpp"

namespace simtorch
{

// The device always keeps which bag an index belongs to and how many count in each bag,
// with a place for the last offset; the CPU leaves out what its own backward does without.
void body_embedding_bag(Call &call);
void body_embedding_bag_backward(Call &call);

} // namespace simtorch

#endif
