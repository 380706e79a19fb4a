// SPDX-License-Identifier: Apache-2.0
#include "random.hpp"

#include <cmath>
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>

namespace simtorch
{

void note_generator(Call *call)
{
    const int place = call->op.place("generator");
    at::Generator generator;
    if (place >= 0 && call->arguments[place].isGenerator())
        generator = call->arguments[place].toGenerator();
    else
        generator = at::cuda::detail::getDefaultCUDAGenerator(
            device_of(call->arguments, call->arguments.size()));
    const std::lock_guard<std::mutex> lock(generator.mutex());
    const auto state = generator.get<at::CUDAGeneratorImpl>()->philox_cuda_state(0);
    if (state.captured_) {
        call->seed_at = state.seed_.ptr;
        call->offset_at = state.offset_.ptr;
        call->offset = state.offset_intragraph_;
    } else {
        call->seed = state.seed_.val;
        call->offset = state.offset_.val;
    }
}

void read_generator(Call *call)
{
    if (!call->seed_at)
        return;
    call->seed = static_cast<uint64_t>(*call->seed_at);
    call->offset += static_cast<uint64_t>(*call->offset_at);
}

// splitmix64's finaliser over both words.
at::Generator cpu_generator(uint64_t seed, uint64_t offset)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + offset + 0x632be59bd9b4e019u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return at::make_generator<at::CPUGeneratorImpl>(z ^ (z >> 31));
}

void seed_argument(Call &call)
{
    const int place = call.op.place("generator");
    if (place >= 0)
        call.arguments[place] = cpu_generator(call.seed, call.offset);
}

// --- Philox4x32-10, as cuRAND documents its generator (Salmon et al., SC 2011)

namespace
{

struct Four {
    uint32_t word[4];
};

Four philox(uint64_t seed, uint64_t subsequence, uint64_t block)
{
    uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
    uint32_t c2 = static_cast<uint32_t>(subsequence);
    uint32_t c3 = static_cast<uint32_t>(subsequence >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t product0 = uint64_t{0xd2511f53} * c0;
        const uint64_t product1 = uint64_t{0xcd9e8d57} * c2;
        c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
        c1 = static_cast<uint32_t>(product1);
        c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
        c3 = static_cast<uint32_t>(product0);
        key0 += 0x9e3779b9;
        key1 += 0xbb67ae85;
    }
    return {{c0, c1, c2, c3}};
}

// (0, 1], as curand_uniform.
float uniform(uint32_t word)
{
    return static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
}

// Box-Muller on two words, as curand_normal2: `second` picks which of the pair.
float normal(uint32_t u, uint32_t v, bool second)
{
    const float scale = 0x1p-32f * 6.2831855f;
    const float angle = static_cast<float>(v) * scale + scale / 2;
    const float radius = std::sqrt(-2.0f * std::log(uniform(u)));
    return radius * (second ? std::cos(angle) : std::sin(angle));
}

// The threads of a launch over n elements (calc_execution_policy in
// ATen/native/cuda/DistributionTemplates.h; dropout uses the same).
uint64_t launch_threads(uint64_t n)
{
    const auto *device = at::cuda::getCurrentDeviceProperties();
    const uint64_t most =
        static_cast<uint64_t>(device->multiProcessorCount) *
        static_cast<uint64_t>(device->maxThreadsPerMultiProcessor / 256);
    return 256 * std::min(most, (n + 255) / 256);
}

// Calls put(i, words, k) for each element: words[k] is its random word. Thread t of the
// launch makes elements t, t + threads, t + 2 * threads, ... from consecutive words.
template <typename Put>
void strided_words(uint64_t n, uint64_t seed, uint64_t offset, Put put)
{
    const uint64_t threads = launch_threads(n);
    for (uint64_t t = 0; t < std::min(n, threads); t++)
        for (uint64_t i = t, j = 0; i < n; j++) {
            const Four four = philox(seed, t, offset / 4 + j);
            for (int k = 0; k < 4 && i < n; k++, i += threads)
                put(i, four.word, k);
        }
}

// The same for launches in which a thread makes four neighbours at once.
template <typename Put>
void neighbour_words(uint64_t n, uint64_t seed, uint64_t offset, Put put)
{
    const uint64_t threads = launch_threads(n);
    for (uint64_t first = 0; first < n; first += 4) {
        const uint64_t group = first / 4;
        const Four four = philox(seed, group % threads, offset / 4 + group / threads);
        for (int k = 0; k < 4; k++)
            put(first + static_cast<uint64_t>(k), four.word, k);
    }
}

bool plain_floats(const at::Tensor &tensor)
{
    return tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
}

// Keeps where uniform < keep. The vectorised kernel is taken as PyTorch takes it for
// dense tensors of a multiple of four elements.
void keep_mask(bool *mask, uint64_t n, float keep, uint64_t seed, uint64_t offset)
{
    const auto put = [&](uint64_t i, const uint32_t *words, int k) {
        mask[i] = uniform(words[k]) < keep;
    };
    if (n % 4 == 0)
        neighbour_words(n, seed, offset, put);
    else
        strided_words(n, seed, offset, put);
}

at::Tensor dropped(const at::Tensor &input, const at::Tensor &mask, double scale)
{
    return input.to(at::kFloat).mul(mask).mul(scale);
}

} // namespace

void body_native_dropout(Call &call)
{
    const at::Tensor input = call.arguments[0].toTensor();
    const double p = call.arguments[1].toDouble();
    const bool train = call.arguments[2].isNone() || call.arguments[2].toBool();
    const at::Tensor output = call.results[0].toTensor(),
                     mask = call.results[1].toTensor();
    if (input.numel() == 0)
        return;
    if (!train || p == 0) {
        output.copy_(input);
        mask.fill_(true);
        return;
    }
    keep_mask(mask.mutable_data_ptr<bool>(), static_cast<uint64_t>(mask.numel()),
              static_cast<float>(1 - p), call.seed, call.offset);
    output.copy_(dropped(input, mask, p < 1 ? 1 / (1 - p) : 0));
}

void body_fused_dropout(Call &call)
{
    const at::Tensor input = call.arguments[0].toTensor();
    const double keep = call.arguments[1].toDouble();
    const at::Tensor mask = call.results[1].toTensor();
    if (input.numel() == 0)
        return;
    keep_mask(reinterpret_cast<bool *>(mask.mutable_data_ptr<uint8_t>()),
              static_cast<uint64_t>(mask.numel()), static_cast<float>(keep), call.seed,
              call.offset);
    call.results[0].toTensor().copy_(dropped(input, mask, 1 / keep));
}

void body_masked_scale(Call &call)
{
    call.results[0].toTensor().copy_(dropped(tensor(call, "self"), tensor(call, "mask"),
                                             argument(call, "scale").toDouble()));
}

void body_uniform(Call &call)
{
    const at::Tensor self = call.arguments[0].toTensor();
    if (!plain_floats(self)) {
        body_cpu(call);
        return;
    }
    const float from = static_cast<float>(call.arguments[1].toDouble());
    const float range = static_cast<float>(call.arguments[2].toDouble()) - from;
    float *data = self.mutable_data_ptr<float>();
    strided_words(static_cast<uint64_t>(self.numel()), call.seed, call.offset,
                  [&](uint64_t i, const uint32_t *words, int k) {
                      const float x = uniform(words[k]);
                      data[i] = (x == 1.0f ? 0.0f : x) * range + from;
                  });
}

void body_normal(Call &call)
{
    const at::Tensor self = call.arguments[0].toTensor();
    if (!plain_floats(self)) {
        body_cpu(call);
        return;
    }
    const float mean = static_cast<float>(call.arguments[1].toDouble());
    const float deviation = static_cast<float>(call.arguments[2].toDouble());
    float *data = self.mutable_data_ptr<float>();
    strided_words(static_cast<uint64_t>(self.numel()), call.seed, call.offset,
                  [&](uint64_t i, const uint32_t *words, int k) {
                      const uint32_t *pair = words + (k & 2);
                      data[i] = normal(pair[0], pair[1], k & 1) * deviation + mean;
                  });
}

} // namespace simtorch
