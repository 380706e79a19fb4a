// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>
#include <cstring>

#include "attention.hpp"
#include "auto.hpp"
#include "convolution.hpp"
#include "cpu.hpp"
#include "embedding.hpp"
#include "grouped.hpp"
#include "histogram.hpp"
#include "lists.hpp"
#include "nested.hpp"
#include "norms.hpp"
#include "random.hpp"
#include "recurrent.hpp"
#include "samplers.hpp"
#include "softmax.hpp"
#include "sparse.hpp"
#include "spatial.hpp"

namespace simtorch
{

namespace
{

enum Kind {
    REAL, // stays PyTorch's own: views, metadata, or host code made of other operators
    BODY, // PyTorch's own host pass, a body of ours
    RANDOM, // the same, drawing from the device's default generator
    HOST, // a host pass of ours, the CPU kernel as the body
    CLOSED, // host code that calls a closed library: as HOST, by what the Meta kernel says
    BOTH, // both of ours
    WHOLE, // the host pass is all of it
    READ, // the same; where everything has values it stays PyTorch's own
};

// The same in docs/operators.md.
const char *const kinds[] = {
    "PyTorch's own",
    "own body",
    "own body",
    "CPU kernel, own host pass",
    "CPU kernel, own host pass",
    "own body, own host pass",
    "own host code",
    "PyTorch's own",
};

// PyTorch's own code for a number, which it would read from the tensor.
void host_masked_fill(const Operator &op, c10::DispatchKeySet, Stack *stack)
{
    BelowAutograd below;
    auto *first = top(stack, op.arguments());
    const int64_t dimensions = first[2].toTensor().dim();
    TORCH_CHECK(!dimensions,
                "masked_fill_ only supports a 0-dimensional value tensor, "
                "but got tensor with ",
                dimensions, " dimension(s).");
    first[0].toTensor().masked_fill_(first[1].toTensor(), 0);
    stack->resize(stack->size() - op.arguments() + 1);
}

constexpr auto CUDA = c10::DispatchKey::CUDA;

struct Row {
    const char *name; // with its overload, or without for all; "fft_*" is a prefix
    Kind kind;
    HostPass host = host_real;
    Body body = body_cpu;
};

// Ordered by kind; the first row that fits counts.
const Row rows[] = {
    // Metadata and memory only.
    {"empty", REAL},
    {"empty_strided", REAL},
    {"_efficientzerotensor", REAL},
    {"as_strided", REAL},
    {"set_", REAL},
    {"resize_", REAL},
    {"record_stream", REAL},
    {"is_pinned", REAL},
    {"_pin_memory", REAL},
    {"is_set_to", REAL},
    {"_has_same_storage_numel", REAL},
    // Host code that calls other operators and decides.
    {"_use_cudnn_ctc_loss", REAL},
    {"_use_miopen_ctc_loss", REAL},
    {"_embedding_bag_backward", REAL},
    {"index_fill_.int_Tensor", REAL},
    {"isin", REAL},
    {"_nested_tensor_from_mask*", REAL},
    {"_to_sparse*", REAL},
    {"_fused_sdp_choice", REAL},
    {"_scaled_dot_product_flash_attention", REAL},
    {"_scaled_dot_product_flash_attention_backward", REAL},
    {"_scaled_dot_product_efficient_attention", REAL},
    {"_scaled_dot_product_efficient_attention_backward", REAL},
    {"_scaled_dot_product_cudnn_attention", REAL},
    {"_scaled_dot_product_cudnn_attention_backward", REAL},

    {"copy_", WHOLE, host_copy},
    {"_nested_from_padded", WHOLE, host_nested_from_padded},
    // A copy to the host and a wait, both real.
    {"_local_scalar_dense", READ, host_scalar},

    // On a cuBLAS that does nothing, PyTorch's own (products.cpp).
    {"mm.dtype", BODY, host_real, body_product_dtype},
    {"mm.dtype_out", BODY, host_real, body_product_dtype},
    {"addmm.dtype", BODY, host_real, body_product_dtype},
    {"addmm.dtype_out", BODY, host_real, body_product_dtype},
    {"bmm.dtype", BODY, host_real, body_product_dtype},
    {"bmm.dtype_out", BODY, host_real, body_product_dtype},
    {"baddbmm.dtype", BODY, host_real, body_product_dtype},
    {"baddbmm.dtype_out", BODY, host_real, body_product_dtype},
    {"mm", BODY},
    {"addmm", BODY},
    {"bmm", BODY},
    {"baddbmm", BODY},
    {"addmv", BODY},
    {"dot", BODY},
    {"vdot", BODY},

    {"_scaled_grouped_mm", BOTH, host_scaled_grouped, body_scaled_grouped},
    {"_scaled_grouped_mm_v2", BOTH, host_scaled_grouped, body_scaled_grouped},

    {"convolution", HOST, host_convolution},
    {"convolution_backward", HOST, host_convolution_backward},
    {"cudnn_batch_norm", BOTH, host_cudnn_batch_norm, body_cudnn_batch_norm},
    {"cudnn_batch_norm_backward", BOTH, host_cudnn_batch_norm_backward,
     body_cudnn_batch_norm_backward},

    // cuFFT, cuSOLVER, cuBLAS's triangular solvers.
    {"_fft_*", CLOSED},
    {"_cholesky_solve_helper", CLOSED},
    {"cholesky*", CLOSED},
    {"_linalg_*", CLOSED},
    {"linalg_*", CLOSED},
    {"geqrf", CLOSED},
    {"ormqr", CLOSED},
    {"triangular_solve", CLOSED},

    // Compiled at run time by NVRTC.
    {"special_*", CLOSED},
    {"digamma", CLOSED},
    {"erfc", CLOSED},
    {"erfinv", CLOSED},
    {"exp2", CLOSED},
    {"gcd", CLOSED},
    {"i0", CLOSED},
    {"kaiser_window", CLOSED},
    {"lcm", CLOSED},
    {"lgamma", CLOSED},
    {"mvlgamma", CLOSED},
    {"polygamma", CLOSED},
    {"prod", CLOSED},
    {"sinc", CLOSED},

    // Host code that reads a value for its kernel's arguments.
    {"histc", CLOSED, host_real, body_histc},
    {"mode", CLOSED},
    {"masked_fill_.Tensor", HOST, host_masked_fill},
    {"searchsorted", CLOSED},

    {"equal", WHOLE, host_eager},
    {"_unique", WHOLE, host_eager},
    {"segment_reduce", WHOLE, host_eager},
    {"nonzero", WHOLE, host_eager},
    {"masked_select", WHOLE, host_masked_select},
    {"_unique2", WHOLE, host_eager},
    {"unique_dim", WHOLE, host_eager},
    {"unique_consecutive", WHOLE, host_eager},
    {"unique_dim_consecutive", WHOLE, host_eager},
    {"bincount", WHOLE, host_bincount},
    {"repeat_interleave", WHOLE, host_eager},

    {"_native_batch_norm_legit", BODY, host_real, body_cpu_lenient},
    {"native_batch_norm", BODY, host_real, body_cpu_lenient},
    {"_batch_norm_with_update", BODY, host_real, body_cpu_lenient},
    {"_embedding_bag", BODY, host_real, body_embedding_bag},
    {"_embedding_bag_forward_only", BODY, host_real, body_embedding_bag},
    {"_embedding_bag_dense_backward", BODY, host_real, body_embedding_bag_backward},
    {"relu", BODY, host_real, body_relu},
    {"_foreach_mul_.Scalar", BODY, host_real, body_multiply_lists},
    {"_foreach_mul_.ScalarList", BODY, host_real, body_multiply_lists},
    {"native_batch_norm_backward", BODY, host_real, body_batch_norm_backward},
    {"batch_norm_backward", BODY, host_real, body_batch_norm_backward},
    {"native_layer_norm_backward", BODY, host_real, body_norm_backward},
    {"native_group_norm_backward", BODY, host_real, body_norm_backward},
    {"_fused_rms_norm_backward", BODY, host_real, body_rms_norm_backward},
    {"log_sigmoid_backward", BODY, host_real, body_log_sigmoid_backward},

    {"_softmax", BODY, host_real, body_softmax},
    {"_log_softmax", BODY, host_real, body_softmax},
    {"_softmax_backward_data", BODY, host_real, body_softmax_backward},
    {"_log_softmax_backward_data", BODY, host_real, body_softmax_backward},
    {"batch_norm_stats", BODY, host_real, body_batch_norm_stats},
    {"batch_norm_elemt", BODY, host_real, body_batch_norm_elemt},
    {"batch_norm_backward_reduce", BODY, host_real, body_batch_norm_backward_reduce},
    {"batch_norm_backward_elemt", BODY, host_real, body_batch_norm_backward_elemt},
    {"batch_norm_gather_stats", BODY, host_real, body_batch_norm_gather_stats},
    {"batch_norm_gather_stats_with_counts", BODY, host_real,
     body_batch_norm_gather_stats},

    {"_conv_depthwise2d", BODY, host_real, body_depthwise},
    {"conv_depthwise3d", BODY, host_real, body_depthwise},
    {"_cudnn_ctc_loss", BOTH, host_cudnn_ctc_loss, body_cudnn_ctc_loss},
    {"cudnn_grid_sampler", BOTH, host_grid_sampler, body_grid_sampler},
    {"cudnn_grid_sampler_backward", BOTH, host_grid_sampler, body_grid_sampler_backward},
    {"cudnn_affine_grid_generator", BOTH, host_affine_grid, body_affine_grid},
    {"cudnn_affine_grid_generator_backward", BOTH, host_affine_grid,
     body_affine_grid_backward},

    {"lstm", WHOLE, host_recurrent},
    {"gru", WHOLE, host_recurrent},
    {"rnn_tanh", WHOLE, host_recurrent},
    {"rnn_relu", WHOLE, host_recurrent},
    {"_cudnn_rnn", BOTH, host_cudnn_rnn, body_cudnn_rnn},
    {"_cudnn_rnn_backward", BOTH, host_cudnn_rnn_backward, body_cudnn_rnn_backward},
    {"_cudnn_rnn_flatten_weight", WHOLE, host_flatten_weight},
    {"_cudnn_init_dropout_state", WHOLE, host_dropout_state},
    {"_thnn_fused_lstm_cell", BODY, host_real, body_lstm_cell},
    {"_thnn_fused_lstm_cell_backward_impl", BODY, host_real, body_lstm_cell_backward},
    {"_thnn_fused_gru_cell", BODY, host_real, body_gru_cell},
    {"_thnn_fused_gru_cell_backward", BODY, host_real, body_gru_cell_backward},

    {"uniform_", BODY, host_real, body_uniform},
    {"normal_", BODY, host_real, body_normal},
    {"normal", BODY, host_real, body_normal_of_tensors},
    {"log_normal_", BODY, host_real, body_log_normal},
    {"exponential_", BODY, host_real, body_exponential},
    {"cauchy_", BODY, host_real, body_cauchy},
    {"geometric_", BODY, host_real, body_geometric},
    {"bernoulli", BODY, host_real, body_bernoulli},
    {"random_", BODY, host_real, body_random},
    {"multinomial", BODY, host_real, body_multinomial},
    {"native_dropout", RANDOM, host_real, body_native_dropout},
    {"_fused_dropout", RANDOM, host_real, body_fused_dropout},
    {"_masked_scale", BODY, host_real, body_masked_scale},

    {"_efficient_attention_forward", RANDOM, host_real, body_efficient_forward},
    {"_efficient_attention_backward", BODY, host_real, body_efficient_backward},
    {"_flash_attention_forward", RANDOM, host_real, body_flash_forward},
    {"_flash_attention_backward", BODY, host_real, body_flash_backward},
    {"_cudnn_attention_forward", RANDOM, host_cudnn_forward, body_cudnn_forward},
    {"_cudnn_attention_backward", BOTH, host_cudnn_backward, body_cudnn_backward},
};

// A row without an overload stands for all of them and for the in-place form.
bool fits(const Row &row, const std::string &plain, const std::string &base)
{
    const size_t length = strlen(row.name);
    if (row.name[length - 1] == '*')
        return plain.compare(0, length - 1, row.name, length - 1) == 0;
    return plain == row.name || base == row.name || base == row.name + std::string("_");
}

const Row *find_row(const std::string &plain)
{
    const std::string base = plain.substr(0, plain.find('.'));
    for (const auto &row : rows)
        if (fits(row, plain, base))
            return &row;
    return nullptr;
}

// A result that shares memory with an argument that is not written: a view.
bool makes_view(const c10::FunctionSchema &schema)
{
    const auto &returns = schema.returns();
    return std::any_of(returns.begin(), returns.end(), [](const auto &result) {
        return result.alias_info() && !result.alias_info()->isWrite();
    });
}

bool has_cpu_kernel(const c10::OperatorHandle &handle)
{
    for (auto key : {c10::DispatchKey::CPU, c10::DispatchKey::CompositeExplicitAutograd,
                     c10::DispatchKey::CompositeImplicitAutograd})
        if (handle.hasKernelForDispatchKey(key))
            return true;
    return false;
}

// The name with its overload, without the namespace.
std::string full_name(const c10::OperatorHandle &handle)
{
    const auto &name = handle.operator_name();
    const std::string plain = name.name.substr(strlen("aten::"));
    return name.overload_name.empty() ? plain : plain + "." + name.overload_name;
}

c10::OperatorName name_of(const std::string &full)
{
    const size_t dot = full.find('.');
    return {"aten::" + full.substr(0, dot), dot == full.npos ? "" : full.substr(dot + 1)};
}

bool stays_real(const Row &row)
{
    return row.kind == REAL || (row.kind == READ && sim_compute() != SIM_AUTO);
}

// Convolutions, linear algebra, attention.
bool is_heavy(const Row &row)
{
    return row.kind == HOST || row.kind == CLOSED || row.kind == BOTH ||
           row.kind == RANDOM || strstr(row.name, "attention");
}

bool grows_faster(const std::string &name)
{
    for (const char *part : {"mm", "addmv", "dot", "conv", "cdist", "ctc", "lstm", "gru",
                             "rnn", "trilinear"})
        if (name.find(part) != std::string::npos)
            return true;
    return false;
}

} // namespace

std::vector<Place> places()
{
    std::vector<Place> found;
    for (const auto &name :
         c10::Dispatcher::singleton().getRegistrationsForDispatchKey(CUDA))
        if (!name.name.compare(0, 6, "aten::"))
            found.push_back({name, CUDA});
    // One kernel for all devices, which launches or asks a closed library itself.
    for (const char *name :
         {"copy_", "convolution", "ldexp.Tensor", "ldexp.out", "ldexp_"})
        found.push_back({name_of(name), CUDA});
    for (const char *name :
         {"lstm.input", "lstm.data", "gru.input", "gru.data", "rnn_tanh.input",
          "rnn_tanh.data", "rnn_relu.input", "rnn_relu.data"})
        for (const auto key : {CUDA, c10::DispatchKey::AutogradCUDA})
            found.push_back({name_of(name), key});
    found.push_back({name_of("_cudnn_rnn"), c10::DispatchKey::AutocastCUDA});
    for (const auto &name : nested_operators())
        found.push_back({name_of(name), c10::DispatchKey::NestedTensorCUDA});
    for (const auto key : {c10::DispatchKey::SparseCUDA, c10::DispatchKey::SparseCsrCUDA})
        for (const auto &name : sparse_operators(key))
            found.push_back({name, key});
    return found;
}

const char *kind_of(const c10::OperatorHandle &handle)
{
    const Row *row = find_row(full_name(handle));
    const char *const by_cpu = "CPU kernel";
    if (!row)
        return makes_view(handle.schema()) ? kinds[REAL]
               : has_cpu_kernel(handle)    ? by_cpu
                                           : "missing";
    if (row->kind == BODY && row->body == body_cpu)
        return by_cpu;
    return kinds[row->kind];
}

// Where one of the tensors may, or must, be on the host.
static bool mixes(const Row &row)
{
    static const char *const names[] = {"copy_",
                                        "masked_select",
                                        "_cudnn_ctc_loss",
                                        "lstm",
                                        "gru",
                                        "rnn_tanh",
                                        "rnn_relu",
                                        "_local_scalar_dense",
                                        "_nested_from_padded"};
    return std::any_of(std::begin(names), std::end(names),
                       [&](const char *name) { return !strcmp(name, row.name); });
}

// An operator whose host code is all that there is.
static std::unique_ptr<Operator> whole(const c10::OperatorHandle &handle,
                                       c10::DispatchKey key, HostPass host)
{
    auto made = std::make_unique<Operator>(handle, key);
    made->whole = true;
    made->host = host;
    return made;
}

std::unique_ptr<Operator> operator_for(const c10::OperatorHandle &handle,
                                       c10::DispatchKey key)
{
    if (key == c10::DispatchKey::SparseCUDA || key == c10::DispatchKey::SparseCsrCUDA)
        return handle.hasKernelForDispatchKey(key) ? whole(handle, key, host_sparse)
                                                   : nullptr;
    if (key == c10::DispatchKey::AutocastCUDA)
        return whole(handle, key, host_cudnn_rnn_autocast);
    const std::string full = full_name(handle);
    if (key == c10::DispatchKey::NestedTensorCUDA)
        return whole(handle, key, nested_host(full));
    const Row *row = find_row(full);
    if (row ? stays_real(*row) : makes_view(handle.schema()))
        return nullptr;
    const bool closed = row && row->kind == CLOSED;

    const bool computes = row || has_cpu_kernel(handle);
    if (!computes && sim_compute() == SIM_VALUES)
        return whole(handle, key, host_missing);
    auto made = std::make_unique<Operator>(handle);
    if (!computes)
        made->body = nullptr;
    made->heavy = (row && is_heavy(*row)) || grows_faster(full);
    if (row) {
        made->host = row->host;
        made->body = row->body;
        made->whole = row->kind == WHOLE || row->kind == READ;
        made->random |= row->kind == RANDOM;
        made->together = (closed || row->host != host_real) && !mixes(*row);
    }
    if (made->body)
        made->into = form_into(handle);
    if (closed) {
        made->whole = !handle.hasKernelForDispatchKey(c10::DispatchKey::Meta);
        made->host = made->whole ? host_eager : host_meta;
    }
    return made;
}

} // namespace simtorch
