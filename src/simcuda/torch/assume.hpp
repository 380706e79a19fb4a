// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_ASSUME_HPP
#define SIM_TORCH_ASSUME_HPP

// What is taken for granted of numbers that mode `auto` does not compute: that they are
// finite, that checks of them pass, that an index is the first one. With this the control
// flow of ordinary training scripts goes on; sizes never rest on it.

#include <optional>

#include "operator.hpp"

namespace simtorch
{

enum class Fill {
    nothing, // has no values
    zero,
    one,
    count, // 0, 1, 2, ... along a dimension
    draw, // of the numbers below a bound, each as likely
    same, // keeps what it is: written in place
};

struct Assumed {
    // By result. An operator that writes in place: by argument that it writes, in order.
    std::vector<Fill> fills;
    int64_t number = -1; // of Fill::count the dimension, of Fill::draw the bound
    bool likely = false; // SIM_ASSUMES_LIKELY
};

// What the operator leaves when it reads numbers that were not computed, if anything.
std::optional<Assumed> assume(const Operator &op, const Stack &arguments);

// True if the operator has a rule at all.
bool can_assume(const std::string &name);

// Fills one alias.
void fill(const at::Tensor &alias, Fill how, int64_t number, at::Generator generator);

} // namespace simtorch

#endif
