// SPDX-License-Identifier: Apache-2.0
// The host pass of matrix products. The card's own calls cuBLAS, which is closed; what it
// allocates around that call is made here from PyTorch's public source.
#include "host.hpp"

#include <cstring>

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/core/DeviceGuard.h>

namespace simtorch
{

namespace
{

// cuBLAS takes an operand as it is if one of its two dimensions is contiguous; PyTorch
// copies any other (prepare_matrix_for_cublas in ATen/native/cuda/Blas.cpp).
at::Tensor operand_copy(const at::Tensor &operand)
{
    const int64_t d = operand.dim();
    if (d < 2 || operand.numel() == 0)
        return at::Tensor();
    const int64_t rows = operand.size(d - 2), columns = operand.size(d - 1);
    const int64_t row = operand.stride(d - 2), column = operand.stride(d - 1);
    const bool by_columns = row == 1 && column >= std::max<int64_t>(1, rows);
    const bool by_rows = column == 1 && row >= std::max<int64_t>(1, columns);
    if (by_columns || by_rows || (d == 2 && operand.is_non_overlapping_and_dense()))
        return at::Tensor();
    return empty_device(operand.sizes(), operand.scalar_type(), operand.get_device());
}

// cublasLt is chosen for a bias that is one row added to a whole product
// (isInputCompliesAddmmCudaLt in the same file).
bool by_lt(const Operator &op, const c10::IValue *arguments)
{
    if (op.name.compare(0, 11, "aten::addmm") &&
        op.name.find("_activation") == op.name.npos)
        return false;
    const at::Tensor &bias = arguments[0].toTensor(), &mat2 = arguments[2].toTensor();
    return bias.dim() == 1 && bias.is_contiguous() && mat2.dim() == 2 &&
           bias.size(0) == mat2.size(1) && mat2.size(0) > 1 && mat2.size(1) > 1;
}

size_t workspace_bytes(const Operator &op, const c10::IValue *arguments)
{
    return by_lt(op, arguments) ? at::cuda::getCUDABlasLtWorkspaceSize()
                                : at::cuda::getChosenWorkspaceSize();
}

// With TORCH_CUBLAS_WORKSPACE_CACHE=1 a workspace stays for its thread and stream.
void keep_workspace(size_t bytes, void *stream)
{
    thread_local std::vector<std::pair<void *, c10::DataPtr>> kept;
    for (const auto &known : kept)
        if (known.first == stream)
            return;
    kept.emplace_back(stream, at::cuda::allocateCUDABlasWorkspace(bytes));
}

} // namespace

void host_product(const Operator &op, c10::DispatchKeySet keys, Stack *stack)
{
    const size_t count = op.arguments();
    const Stack given(stack->end() - static_cast<ptrdiff_t>(count), stack->end());
    const c10::DeviceIndex device = device_of(given, count);
    c10::DeviceGuard guard(c10::Device(c10::kCUDA, device));

    host_meta(op, keys, stack);
    const auto &result = top(stack, 1)->toTensor();
    if (result.numel() == 0)
        return;
    std::vector<at::Tensor> copies;
    for (const char *name : {"self", "mat1", "mat2", "batch1", "batch2", "mat"}) {
        const int place = op.place(name);
        const bool added = !strcmp(name, "self") && op.place("mat2") == 2;
        if (place >= 0 && !added && given[place].isTensor())
            copies.push_back(operand_copy(given[place].toTensor()));
    }
    const size_t bytes = workspace_bytes(op, given.data());
    if (at::cuda::isCUDABlasWorkspaceCachingEnabled())
        keep_workspace(bytes, current_stream(device));
    else
        at::cuda::allocateCUDABlasWorkspace(bytes);
}

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
