// SPDX-License-Identifier: Apache-2.0
#include "effort.hpp"

#include <algorithm>
#include <cstring>

#include <ATen/Context.h>

namespace simtorch
{

// A multiply-add is two operations.
struct Arithmetic {
    const char *name; // without an overload; "linalg_*" is a prefix
    double (*flops)(const Call &call); // NULL: nobody knows
    at::Float32Op tf32; // which setting of PyTorch lets fp32 be rounded
};

namespace
{

double elements(const at::Tensor &tensor)
{
    return static_cast<double>(tensor.numel());
}

at::Tensor first_of(const Call &call, std::initializer_list<const char *> names)
{
    for (const char *name : names)
        if (call.op.place(name) >= 0)
            if (const at::Tensor found = tensor(call, name); found.defined())
                return found;
    return {};
}

at::Tensor operand(const Call &call)
{
    return first_of(call, {"query", "input", "mat1", "batch1", "mat", "self"});
}

// --- Products

// Every number on the left meets each column on the right; of a grouped product whose right
// side is one matrix, the columns of its own group.
double product_flops(const Call &call)
{
    const at::Tensor a = operand(call);
    const at::Tensor b = first_of(call, {"mat2", "batch2", "vec", "tensor", "other"});
    const auto columns = b.dim() > 1 ? static_cast<double>(b.size(-1)) : 1.0;
    const auto groups = a.dim() == 3 && b.dim() == 2 ? static_cast<double>(a.size(0)) : 1;
    return groups ? 2 * elements(a) * columns / groups : 0;
}

// --- Convolutions

bool is_transposed(const Call &call)
{
    const int place = call.op.place("transposed");
    if (place >= 0)
        return call.arguments[static_cast<size_t>(place)].toBool();
    return call.op.name.find("transpose") != std::string::npos;
}

// Each number of the one side (the input, if transposed, else the output) meets all the
// weights of its channel.
double convolution_flops(const Call &call, const at::Tensor &input,
                         const at::Tensor &output)
{
    const at::Tensor weight = tensor(call, "weight");
    if (!weight.size(0))
        return 0;
    const double side = elements(is_transposed(call) ? input : output);
    return 2 * side * elements(weight) / static_cast<double>(weight.size(0));
}

double convolution_forward(const Call &call)
{
    if (call.results.empty())
        return 0;
    return convolution_flops(call, operand(call), call.results[0].toTensor());
}

// One such product each for the input's and the weight's gradient.
double convolution_backward(const Call &call)
{
    const auto mask = argument(call, "output_mask").toBoolList();
    const double one =
        convolution_flops(call, tensor(call, "input"), tensor(call, "grad_output"));
    return one * (static_cast<double>(mask.get(0)) + static_cast<double>(mask.get(1)));
}

// --- Attention: 2 (d_qk + d_v) operations for each pair of query and key, half of the
// pairs under a causal mask; backward 2.5 times that (Dao-AILab/flash-attention,
// hopper/benchmark_attn.py).

// How many keys each query meets. Of packed sequences the mean: their lengths are values.
double keys_met(const Call &call, size_t along)
{
    const at::Tensor key = tensor(call, "key");
    const at::Tensor ends =
        first_of(call, {"cum_seq_k", "cu_seqlens_k"}); // one more than sequences
    if (!ends.defined() || ends.numel() < 2)
        return static_cast<double>(key.size(static_cast<int64_t>(along)));
    const int64_t all = key.dim() == 3 ? key.size(0) : key.size(0) * key.size(1);
    return static_cast<double>(all) / static_cast<double>(ends.numel() - 1);
}

bool is_causal(const Call &call)
{
    if (call.op.place("is_causal") >= 0)
        return argument(call, "is_causal").toBool();
    return integer(call, "custom_mask_type", 0) != 0;
}

double window(const Call &call, double keys)
{
    if (call.op.place("window_size_left") < 0)
        return keys;
    const auto before = static_cast<double>(integer(call, "window_size_left", -1));
    const auto behind = static_cast<double>(integer(call, "window_size_right", -1));
    return before < 0 || behind < 0 ? keys : std::min(keys, before + behind + 1);
}

double attention_flops(const Call &call, size_t along)
{
    const at::Tensor query = tensor(call, "query");
    if (!query.numel())
        return 0;
    const double depth = static_cast<double>(query.size(-1));
    const double all = depth + static_cast<double>(tensor(call, "value").size(-1));
    const double keys = keys_met(call, along), met = window(call, keys);
    const double share = is_causal(call) && met >= keys ? 0.5 : 1;
    return share * 2 * elements(query) / depth * met * all;
}

// Heads behind the sequence, and before it.
double attention_forward(const Call &call)
{
    return attention_flops(call, 1);
}

double attention_backward(const Call &call)
{
    return 2.5 * attention_flops(call, 1);
}

double cudnn_attention_forward(const Call &call)
{
    return attention_flops(call, 2);
}

double cudnn_attention_backward(const Call &call)
{
    return 2.5 * attention_flops(call, 2);
}

// --- Recurrent layers: each step of each sequence meets all weights.

double recurrent_forward(const Call &call)
{
    const at::Tensor input = tensor(call, "input");
    double weights = 0;
    for (const at::Tensor &weight : argument(call, "weight").toTensorVector())
        weights += weight.dim() > 1 ? elements(weight) : 0;
    return input.size(-1)
               ? 2 * elements(input) / static_cast<double>(input.size(-1)) * weights
               : 0;
}

double recurrent_backward(const Call &call)
{
    return 2 * recurrent_forward(call);
}

// Its bytes are all.
double no_flops(const Call &)
{
    return 0;
}

constexpr auto MATMUL = at::Float32Op::MATMUL, CONV = at::Float32Op::CONV,
               RNN = at::Float32Op::RNN, NEVER = at::Float32Op::ALL;

const Arithmetic rows[] = {
    {"mm", product_flops, MATMUL},
    {"addmm", product_flops, MATMUL},
    {"bmm", product_flops, MATMUL},
    {"baddbmm", product_flops, MATMUL},
    {"addbmm", product_flops, MATMUL},
    {"addmv", product_flops, MATMUL},
    {"mv", product_flops, MATMUL},
    {"dot", product_flops, MATMUL},
    {"vdot", product_flops, MATMUL},
    {"_addmm_activation", product_flops, MATMUL},
    {"_int_mm", product_flops, MATMUL},
    {"_scaled_mm", product_flops, MATMUL},
    {"_scaled_mm_v2", product_flops, MATMUL},
    {"_grouped_mm", product_flops, MATMUL},
    {"_scaled_grouped_mm", product_flops, MATMUL},
    {"_scaled_grouped_mm_v2", product_flops, MATMUL},
    {"convolution", convolution_forward, CONV},
    {"cudnn_convolution", convolution_forward, CONV},
    {"cudnn_convolution_transpose", convolution_forward, CONV},
    {"cudnn_convolution_relu", convolution_forward, CONV},
    {"_conv_depthwise2d", convolution_forward, NEVER},
    {"conv_depthwise3d", convolution_forward, NEVER},
    {"slow_conv3d_forward", convolution_forward, MATMUL},
    {"_slow_conv2d_forward", convolution_forward, MATMUL},
    {"slow_conv_dilated2d", convolution_forward, MATMUL},
    {"slow_conv_dilated3d", convolution_forward, MATMUL},
    {"slow_conv_transpose2d", convolution_forward, MATMUL},
    {"slow_conv_transpose3d", convolution_forward, MATMUL},
    {"convolution_backward", convolution_backward, CONV},
    {"_flash_attention_forward", attention_forward, NEVER},
    {"_flash_attention_backward", attention_backward, NEVER},
    {"_efficient_attention_forward", attention_forward, NEVER},
    {"_efficient_attention_backward", attention_backward, NEVER},
    {"_cudnn_attention_forward", cudnn_attention_forward, NEVER},
    {"_cudnn_attention_backward", cudnn_attention_backward, NEVER},
    {"_cudnn_rnn", recurrent_forward, RNN},
    {"_cudnn_rnn_backward", recurrent_backward, RNN},
    // Closed libraries whose algorithms are not published, and others that no count of
    // bytes describes.
    {"linalg_vector_norm", no_flops, NEVER},
    {"linalg_cross", no_flops, NEVER},
    {"linalg_*", nullptr, NEVER},
    {"_linalg_*", nullptr, NEVER},
    {"cholesky*", nullptr, NEVER},
    {"_cholesky*", nullptr, NEVER},
    {"triangular_solve", nullptr, NEVER},
    {"geqrf", nullptr, NEVER},
    {"ormqr", nullptr, NEVER},
    {"lu_*", nullptr, NEVER},
    {"_cdist*", nullptr, NEVER},
    {"_ctc*", nullptr, NEVER},
    {"_cudnn_ctc*", nullptr, NEVER},
    {"_slow_conv2d_backward", nullptr, NEVER},
};

bool fits(const char *row, const std::string &name)
{
    const size_t length = strlen(row);
    if (row[length - 1] == '*')
        return name.compare(0, length - 1, row, length - 1) == 0;
    return name == row || name == row + std::string("_");
}

// --- At which rate

bool is_tf32(at::Float32Op setting)
{
    switch (setting) {
    case MATMUL:
        return at::globalContext().allowTF32CuBLAS();
    case CONV:
    case RNN:
        return at::globalContext().allowTF32CuDNN(setting);
    default:
        return false;
    }
}

sim_rate rate_of(c10::ScalarType type, at::Float32Op setting)
{
    switch (type) {
    case at::kDouble:
    case at::kComplexDouble:
        return SIM_RATE_FP64;
    case at::kHalf:
    case at::kComplexHalf:
        return SIM_RATE_FP16;
    case at::kBFloat16:
        return SIM_RATE_BF16;
    case at::kChar:
    case at::kByte:
        return SIM_RATE_INT8;
    default:
        if (c10::isFloat8Type(type))
            return SIM_RATE_FP8;
        return is_tf32(setting) ? SIM_RATE_TF32 : SIM_RATE_FP32;
    }
}

// A product of complex numbers is four of real ones.
void add_arithmetic(sim_effort *effort, const Call &call)
{
    const Arithmetic *how = call.op.arithmetic;
    if (!how)
        return;
    effort->unknown = !how->flops;
    if (effort->unknown)
        return;
    const auto type = operand(call).scalar_type();
    effort->flops = how->flops(call) * (c10::isComplexType(type) ? 4 : 1);
    effort->rate = rate_of(type, how->tf32);
}

// --- Bytes

// A tensor that is expanded, or has gaps, has fewer of its own.
double own_bytes(const at::Tensor &tensor)
{
    double bytes = static_cast<double>(tensor.element_size());
    for (int64_t d = 0; d < tensor.dim(); d++)
        if (tensor.stride(d) || !tensor.size(d))
            bytes *= static_cast<double>(tensor.size(d));
    return std::min(bytes, static_cast<double>(extent_bytes(tensor)));
}

// Each place counts once: x * x reads x once, and what is written in place is a result, too.
class Bytes
{
  public:
    void add(const c10::IValue &value, double times)
    {
        if (value.isTensor())
            add_tensor(value.toTensor(), times);
        else if (value.isTensorList() || value.isOptionalTensorList())
            for (const auto &item : value.toListRef())
                if (item.isTensor())
                    add_tensor(item.toTensor(), times);
    }

    double sum = 0, largest = 0;

  private:
    void add_tensor(const at::Tensor &tensor, double times)
    {
        if (!tensor.defined() || !tensor.is_cuda() || tensor.layout() != c10::kStrided ||
            tensor._is_zerotensor())
            return;
        const void *address = tensor.const_data_ptr();
        const size_t looked_at = std::min(seen_.size(), SEEN_MAX);
        const auto end = seen_.begin() + static_cast<ptrdiff_t>(looked_at);
        if (std::find(seen_.begin(), end, address) != end)
            return;
        seen_.push_back(address);
        const double bytes = own_bytes(tensor);
        sum += times * bytes;
        largest = std::max(largest, bytes);
    }

    static constexpr size_t SEEN_MAX = 8; // lists hold other tensors each time
    c10::SmallVector<const void *, SEEN_MAX> seen_;
};

} // namespace

bool picks_of(const std::string &name)
{
    static const char *const pickers[] = {
        "aten::embedding", "aten::_embedding_bag",  "aten::_embedding_bag_forward_only",
        "aten::index",     "aten::index_select",    "aten::gather",
        "aten::take",      "aten::index_add",       "aten::index_copy",
        "aten::index_put", "aten::_index_put_impl", "aten::index_fill",
        "aten::scatter",   "aten::scatter_add",     "aten::scatter_reduce",
        "aten::put",       "aten::embedding_renorm"};
    std::string base = name.substr(0, name.find('.'));
    if (base.back() == '_')
        base.pop_back();
    return std::find(std::begin(pickers), std::end(pickers), base) != std::end(pickers);
}

// An argument that is written without being read is touched once, others that are written
// twice.
static void add_bytes(sim_effort *effort, const Call &call)
{
    Bytes first, rest;
    bool picks = call.op.picks;
    for (size_t i = 0; i < call.arguments.size(); i++) {
        const bool written = i < call.op.written.size() && call.op.written[i];
        const double times = written && !call.op.unread[i] ? 2 : 1;
        (picks ? first : rest).add(call.arguments[i], times);
        picks = picks && !call.arguments[i].isTensor();
    }
    for (size_t i = 0; i < call.results.size(); i++)
        if (!call.op.picks || call.op.written.empty() || !call.op.written[0])
            rest.add(call.results[i], 1);
    const double times = first.largest > 0 ? first.sum / first.largest : 0;
    effort->bytes = rest.sum + times * std::min(first.largest, rest.largest);
}

const Arithmetic *arithmetic_of(const std::string &name)
{
    const std::string base = name.substr(0, name.find('.'));
    if (base.compare(0, 6, "aten::") != 0)
        return nullptr;
    for (const auto &row : rows)
        if (fits(row.name, base.substr(6)))
            return &row;
    return nullptr;
}

sim_effort effort_of(const Call &call)
{
    sim_effort effort = {};
    effort.kernels = 1;
    effort.dispatched = true;
    add_arithmetic(&effort, call);
    add_bytes(&effort, call);
    return effort;
}

sim_effort effort_of(const sim_access *accesses, size_t count)
{
    sim_effort effort = {};
    effort.kernels = 1;
    effort.dispatched = true;
    for (size_t i = 0; i < count; i++)
        effort.bytes += static_cast<double>(accesses[i].bytes);
    return effort;
}

} // namespace simtorch
