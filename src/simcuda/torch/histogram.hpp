// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_HISTOGRAM_HPP
#define SIM_TORCH_HISTOGRAM_HPP

#include "operator.hpp"

namespace simtorch
{

// The CPU counts no integers.
void body_histc(Call &call);

} // namespace simtorch

#endif
