// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_EFFORT_HPP
#define SIM_TORCH_EFFORT_HPP

// What an operator's call asks of the card, for the virtual clock: the arithmetic of those
// whose time it decides (products, convolutions, attention, recurrent layers), and the
// bytes of all.

#include "operator.hpp"

namespace simtorch
{

// How an operator's arithmetic is counted, by its full name. NULL: not at all.
const struct Arithmetic *arithmetic_of(const std::string &name);

// True if it uses a part of its first tensor only, as large as the others at most.
bool picks_of(const std::string &name);

// With the call's arguments and results as the device has them.
sim_effort effort_of(const Call &call);

// One kernel for the bytes.
sim_effort effort_of(const sim_access *accesses, size_t count);

} // namespace simtorch

#endif
