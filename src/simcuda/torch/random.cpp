// SPDX-License-Identifier: Apache-2.0
#include "random.hpp"

#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>

#include "philox.hpp"

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

// --- Dropout

namespace
{

// Keeps where uniform < keep. The vectorised kernel is taken as PyTorch takes it for
// dense tensors of a multiple of four elements.
void keep_mask(bool *mask, uint64_t n, float keep, uint64_t seed, uint64_t offset)
{
    const auto put = [&](uint64_t i, const Four &four, int k) {
        mask[i] = uniform(four.word[k]) < keep;
    };
    if (n % 4 == 0)
        neighbour_words(n, launch_threads(n), seed, offset, put);
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

} // namespace simtorch
