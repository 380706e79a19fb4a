// SPDX-License-Identifier: Apache-2.0
// Operators of lists of tensors.
#include "lists.hpp"

#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>

namespace simtorch
{

void body_multiply_lists(Call &call)
{
    const auto &given = call.arguments[1];
    auto tensors = call.arguments[0].toTensorVector();
    for (size_t i = 0; i < tensors.size(); i++) {
        const at::Scalar by =
            given.isList() ? given.toListRef()[i].toScalar() : given.toScalar();
        at::mul_out(tensors[i], tensors[i], at::native::wrapped_scalar_tensor(by));
    }
}

} // namespace simtorch
