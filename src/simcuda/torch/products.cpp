// SPDX-License-Identifier: Apache-2.0
// Matrix products. Their host pass is PyTorch's own, on a cuBLAS whose work does nothing
// (src/simcuda/standin): operand copies and workspaces are the installed version's.
#include "operator.hpp"

namespace simtorch
{

// The CPU has no kernel with an output type: operands in that type give the same product
// of the same numbers.
void body_product_dtype(Call &call)
{
    const auto dtype = call.results[0].toTensor().scalar_type();
    const std::string base = call.op.name.substr(0, call.op.name.find('.'));
    const auto plain = c10::Dispatcher::singleton().findSchemaOrThrow(base.c_str(), "");
    Stack stack;
    for (const auto &argument : plain.schema().arguments()) {
        const auto &value = call.arguments[call.op.place(argument.name().c_str())];
        stack.push_back(value.isTensor() ? value.toTensor().to(dtype) : value);
    }
    plain.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
    deliver(call.results[0], stack[0]);
}

} // namespace simtorch
