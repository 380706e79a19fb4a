// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_SAMPLERS_HPP
#define SIM_TORCH_SAMPLERS_HPP

// Operators that draw random numbers, by the formulas of PyTorch's CUDA kernels. Which of
// them give the numbers of a card is in docs/simcuda.md.

#include "operator.hpp"

namespace simtorch
{

void body_uniform(Call &call);
void body_normal(Call &call);
void body_normal_of_tensors(Call &call);
void body_log_normal(Call &call);
void body_exponential(Call &call);
void body_cauchy(Call &call);
void body_geometric(Call &call);
void body_bernoulli(Call &call);
void body_random(Call &call);
void body_multinomial(Call &call);

} // namespace simtorch

#endif
