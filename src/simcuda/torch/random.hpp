// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_RANDOM_HPP
#define SIM_TORCH_RANDOM_HPP

// Random numbers of the device. PyTorch's own CUDA generator is (seed, offset) and is
// advanced by the host pass as on the card; bodies turn (seed, offset) into numbers, so
// that a restored generator state gives the same numbers again. The CPU's generator is
// never touched.

#include "operator.hpp"

namespace simtorch
{

// Notes the state of the generator that this call will draw from: its `generator`
// argument, or the device's default one. In a capture, where the device keeps it.
void note_generator(Call *call);

// What a replay finds there.
void read_generator(Call *call);

// Gives the call a CPU generator that is a function of (seed, offset).
void seed_argument(Call &call);
at::Generator cpu_generator(uint64_t seed, uint64_t offset);

void body_native_dropout(Call &call);
void body_fused_dropout(Call &call);
void body_masked_scale(Call &call);

} // namespace simtorch

#endif
