// SPDX-License-Identifier: Apache-2.0
#include "samplers.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "cpu.hpp"
#include "philox.hpp"
#include "random.hpp"

namespace simtorch
{

namespace
{

// The result's elements as the kernels number them: the smallest stride runs fastest.
at::Tensor numbered(const at::Tensor &tensor)
{
    std::vector<int64_t> order(static_cast<size_t>(tensor.dim()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return tensor.stride(a) > tensor.stride(b);
    });
    return tensor.permute(order);
}

void put(const at::Tensor &result, const at::Tensor &flat)
{
    const at::Tensor to = numbered(result);
    to.copy_(flat.view(to.sizes()));
}

uint64_t count_of(const at::Tensor &tensor)
{
    return static_cast<uint64_t>(tensor.numel());
}

bool is_whole(const at::Tensor &tensor)
{
    return extent_bytes(tensor) <= static_cast<size_t>(std::numeric_limits<int>::max());
}

// For each element what `of_word` or, for doubles, `of_pair` makes of four random words and
// a number in them: the type that PyTorch computes in is double for doubles, else float.
template <typename Word, typename Pair>
at::Tensor drawn(const Call &call, const at::Tensor &result, Word of_word, Pair of_pair)
{
    const bool wide = result.scalar_type() == at::kDouble;
    const at::Tensor flat = at::empty({result.numel()}, wide ? at::kDouble : at::kFloat);
    const uint64_t n = count_of(result);
    if (wide) {
        double *data = flat.mutable_data_ptr<double>();
        strided_pairs(
            n, call.seed, call.offset,
            [&](uint64_t i, const Four &four, int k) { data[i] = of_pair(four, k); });
    } else {
        float *data = flat.mutable_data_ptr<float>();
        strided_words(
            n, call.seed, call.offset,
            [&](uint64_t i, const Four &four, int k) { data[i] = of_word(four, k); });
    }
    return flat;
}

template <typename From>
at::Tensor uniforms(const Call &call, const at::Tensor &result, From from)
{
    return drawn(
        call, result,
        [&](const Four &four, int k) { return from(uniform(four.word[k])); },
        [&](const Four &four, int k) {
            return from(uniform(four.word[2 * k], four.word[2 * k + 1]));
        });
}

template <typename From>
at::Tensor normals(const Call &call, const at::Tensor &result, From from)
{
    return drawn(
        call, result,
        [&](const Four &four, int k) {
            const uint32_t *pair = four.word + (k & 2);
            return from(normal(pair[0], pair[1], k & 1));
        },
        [&](const Four &four, int k) { return from(normal(four, k)); });
}

// a * b + c rounded once, as CUDA's compiler has it.
float fused(float a, float b, float c)
{
    return std::fmaf(a, b, c);
}

double fused(double a, double b, double c)
{
    return std::fma(a, b, c);
}

at::Tensor result_of(const Call &call)
{
    return call.results[0].toTensor();
}

// PyTorch cuts larger tensors into parts, each of which draws for itself: those get other
// numbers, from the CPU's kernel.
template <typename Fill> void fill_whole(Call &call, Fill fill)
{
    const at::Tensor result = result_of(call);
    if (is_whole(result))
        fill(result);
    else
        body_cpu(call);
}

void fill_normal(const Call &call, const at::Tensor &result, double mean,
                 double deviation)
{
    // A complex number is two real ones of half the variance.
    const bool complex = result.is_complex();
    const at::Tensor real = complex ? at::view_as_real(result) : result;
    const double scale = complex ? deviation / std::sqrt(2.0) : deviation;
    put(real, normals(call, real, [&](auto x) {
            using Real = decltype(x);
            return fused(x, static_cast<Real>(scale), static_cast<Real>(mean));
        }));
}

} // namespace

void body_uniform(Call &call)
{
    fill_whole(call, [&](const at::Tensor &result) {
        const auto type = at::dtype(result.scalar_type());
        const at::Tensor from =
            at::scalar_tensor(argument(call, "from").toDouble(), type);
        const at::Tensor to = at::scalar_tensor(argument(call, "to").toDouble(), type);
        const double range = (to - from).item<double>(), least = from.item<double>();
        const at::Tensor drawn = uniforms(call, result, [&](auto x) {
            using Real = decltype(x);
            return fused(x, static_cast<Real>(range), static_cast<Real>(least));
        });
        const at::Tensor rounded = drawn.to(result.scalar_type());
        put(result, at::where(rounded == to, from, rounded));
    });
}

void body_normal(Call &call)
{
    fill_whole(call, [&](const at::Tensor &result) {
        fill_normal(call, result, argument(call, "mean").toDouble(),
                    argument(call, "std").toDouble());
    });
}

// A mean or a deviation for each element.
void body_normal_of_tensors(Call &call)
{
    const at::Tensor result = result_of(call);
    const auto &mean = argument(call, "mean"), &deviation = argument(call, "std");
    if (!is_whole(result) || result.is_complex()) {
        body_cpu(call);
        return;
    }
    if (deviation.isTensor())
        expect(deviation.toTensor().ge(0), "normal expects all elements of std >= 0.0");
    fill_normal(call, result, 0, deviation.isTensor() ? 1 : deviation.toDouble());
    if (deviation.isTensor())
        result.mul_(deviation.toTensor());
    if (mean.isTensor())
        result.add_(mean.toTensor());
    else
        result.add_(at::scalar_tensor(mean.toDouble(), result.options()));
}

void body_log_normal(Call &call)
{
    fill_whole(call, [&](const at::Tensor &result) {
        const double mean = argument(call, "mean").toDouble();
        const double deviation = argument(call, "std").toDouble();
        put(result, normals(call, result, [&](auto x) {
                using Real = decltype(x);
                return std::exp(
                    fused(x, static_cast<Real>(deviation), static_cast<Real>(mean)));
            }));
    });
}

void body_exponential(Call &call)
{
    fill_whole(call, [&](const at::Tensor &result) {
        const double rate = argument(call, "lambd").toDouble();
        put(result, uniforms(call, result, [&](auto x) {
                using Real = decltype(x);
                const Real half = std::numeric_limits<Real>::epsilon() / 2;
                const Real log = x >= Real{1} - half ? -half : std::log(x);
                return Real{-1} / static_cast<Real>(rate) * log;
            }));
    });
}

void body_cauchy(Call &call)
{
    fill_whole(call, [&](const at::Tensor &result) {
        const double median = argument(call, "median").toDouble();
        const double sigma = argument(call, "sigma").toDouble();
        put(result, uniforms(call, result, [&](auto x) {
                using Real = decltype(x);
                const Real least = sizeof(Real) == sizeof(float)
                                       ? std::numeric_limits<Real>::epsilon()
                                       : 0;
                const Real inside = std::clamp(x, least, Real{1} - least);
                const Real slope =
                    std::tan(static_cast<Real>(M_PI) * (inside - Real{0.5}));
                return fused(static_cast<Real>(sigma), slope, static_cast<Real>(median));
            }));
    });
}

void body_geometric(Call &call)
{
    fill_whole(call, [&](const at::Tensor &result) {
        const double p = argument(call, "p").toDouble();
        put(result, uniforms(call, result, [&](auto x) {
                using Real = decltype(x);
                return std::ceil(std::log(x) / std::log1p(-static_cast<Real>(p)));
            }));
    });
}

// --- Bernoulli

static void bernoulli_of_tensor(const Call &call, const at::Tensor &result,
                                const at::Tensor &chances)
{
    const auto type = result.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor p = chances.to(type).expand(result.sizes());
    expect(p.ge(0).logical_and_(p.le(1)), "bernoulli expects each p to be in [0, 1]");
    const at::Tensor drawn = at::empty(result.sizes(), at::kFloat);
    float *data = drawn.mutable_data_ptr<float>();
    // One thread for four elements however many there are.
    neighbour_words(
        count_of(result), std::numeric_limits<uint64_t>::max(), call.seed, call.offset,
        [&](uint64_t i, const Four &four, int k) { data[i] = uniform(four.word[k]); });
    result.copy_(drawn.to(type) <= p);
}

void body_bernoulli(Call &call)
{
    const at::Tensor result = result_of(call);
    const bool chances = call.op.place("p") >= 0;
    const auto &p = chances ? argument(call, "p") : call.arguments[0];
    if (!is_whole(result) || result.is_complex()) {
        body_cpu(call);
        return;
    }
    if (p.isTensor()) {
        bernoulli_of_tensor(call, result, p.toTensor());
        return;
    }
    put(result, uniforms(call, result, [&](auto x) {
            using Real = decltype(x);
            return static_cast<Real>(x < static_cast<Real>(p.toDouble()));
        }));
}

// --- Integers

namespace
{

// Types whose random_() draws 64 bits.
bool is_long(at::ScalarType type)
{
    return type == at::kLong || type == at::kDouble;
}

// How many different values random_() gives, 0 for all that fit.
uint64_t all_values(at::ScalarType type)
{
    switch (type) {
    case at::kBool:
        return 2;
    case at::kByte:
        return 1 << 8;
    case at::kChar:
        return 1 << 7;
    case at::kShort:
        return 1 << 15;
    case at::kInt:
        return uint64_t{1} << 31;
    case at::kLong:
        return uint64_t{1} << 63;
    case at::kHalf:
        return (1 << 11) + 1;
    case at::kBFloat16:
        return (1 << 8) + 1;
    case at::kFloat:
        return (1 << 24) + 1;
    case at::kDouble:
        return (uint64_t{1} << 53) + 1;
    default:
        return 0;
    }
}

struct Range {
    uint64_t count;
    int64_t first;
    bool wide; // drawn from 64 bits
};

// Of random_.from with an end, random_.to and random_; nothing for the other forms.
std::optional<Range> range_of(const Call &call, at::ScalarType type)
{
    const bool has_to = call.op.place("to") >= 0;
    if (!has_to)
        return Range{all_values(type), 0, is_long(type)};
    if (argument(call, "to").isNone())
        return std::nullopt;
    const int64_t first = call.op.place("from") >= 0 ? argument(call, "from").toInt() : 0;
    const uint64_t count = static_cast<uint64_t>(argument(call, "to").toInt()) -
                           static_cast<uint64_t>(first);
    return Range{count, first, count >= uint64_t{1} << 28};
}

} // namespace

void body_random(Call &call)
{
    const at::Tensor result = result_of(call);
    const auto range = range_of(call, result.scalar_type());
    if (!is_whole(result) || !range || !range->count) {
        body_cpu(call);
        return;
    }
    const at::Tensor flat = at::empty({result.numel()}, at::kLong);
    int64_t *data = flat.mutable_data_ptr<int64_t>();
    const auto in_range = [&](uint64_t bits) {
        return static_cast<int64_t>(bits % range->count +
                                    static_cast<uint64_t>(range->first));
    };
    const uint64_t n = count_of(result);
    if (range->wide)
        strided_pairs(
            n, call.seed, call.offset, [&](uint64_t i, const Four &four, int k) {
                data[i] = in_range(static_cast<uint64_t>(four.word[2 * k]) << 32 |
                                   four.word[2 * k + 1]);
            });
    else
        strided_words(n, call.seed, call.offset,
                      [&](uint64_t i, const Four &four, int k) {
                          data[i] = in_range(four.word[k]);
                      });
    put(result, flat);
}

// --- Multinomial

namespace
{

// The categories with the largest chance / exponential number: as many as are asked for,
// all different (aten/src/ATen/native/Distributions.cpp).
void take_different(const Call &call, const at::Tensor &chances, const at::Tensor &result)
{
    const at::Tensor q = at::empty_like(chances);
    put(q, uniforms(call, q, [](auto x) {
            using Real = decltype(x);
            const Real half = std::numeric_limits<Real>::epsilon() / 2;
            return x >= Real{1} - half ? half : -std::log(x);
        }));
    const at::Tensor ratio = chances / q;
    if (result.size(-1) == 1)
        result.copy_(ratio.argmax(-1, true));
    else
        result.copy_(std::get<1>(ratio.topk(result.size(-1))));
}

// Each sample by its own thread, in rows of blocks of 128
// (aten/src/ATen/native/cuda/MultinomialKernel.cu).
void take_again(const Call &call, const at::Tensor &chances, const at::Tensor &result)
{
    const int64_t rows = chances.size(0), count = result.size(1);
    const int64_t most = 65535, width = (count + 127) / 128 * 128;
    const at::Tensor drawn = at::empty({rows, count}, at::kFloat);
    float *data = drawn.mutable_data_ptr<float>();
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < count; i++) {
            const auto thread = static_cast<uint64_t>(row % most * width + i);
            const auto round = static_cast<uint64_t>(row / most);
            const Four four = philox(call.seed, thread, call.offset / 4 + round);
            data[row * count + i] = uniform(four.word[0]);
        }
    const auto type = chances.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor wide = chances.to(type);
    const at::Tensor sums = (wide / wide.sum(1, true)).cumsum(1);
    const at::Tensor last = (wide > 0).to(at::kLong).cumsum(1).argmax(1, true);
    result.copy_(at::minimum(at::searchsorted(sums, drawn.to(type)), last));
}

} // namespace

void body_multinomial(Call &call)
{
    const at::Tensor result = result_of(call);
    const at::Tensor chances = call.arguments[0].toTensor();
    const bool again = argument(call, "replacement").toBool();
    expect(chances.ge(0).logical_and_(chances.isfinite()),
           "probability tensor contains either `inf`, `nan` or element < 0");
    expect(chances.sum(-1).gt(0),
           "invalid multinomial distribution (sum of probabilities <= 0)");
    if (!is_whole(chances)) {
        body_cpu(call);
        return;
    }
    if (!again || result.size(-1) == 1)
        take_different(call, chances, result);
    else if (chances.dim() == 1)
        take_again(call, chances.unsqueeze(0), result.unsqueeze(0));
    else
        take_again(call, chances, result);
}

} // namespace simtorch
