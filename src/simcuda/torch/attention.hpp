// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_ATTENTION_HPP
#define SIM_TORCH_ATTENTION_HPP

#include "operator.hpp"

namespace simtorch
{

} // namespace simtorch

#endif
