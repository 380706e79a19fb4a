// SPDX-License-Identifier: Apache-2.0
#include "philox.hpp"

#include <cmath>

#include <ATen/cuda/CUDAContextLight.h>

namespace simtorch
{

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

float uniform(uint32_t word)
{
    return static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
}

// 53 bits of two words.
static uint64_t mixed(uint32_t low, uint32_t high)
{
    return low ^ (static_cast<uint64_t>(high) << 21);
}

double uniform(uint32_t low, uint32_t high)
{
    return static_cast<double>(mixed(low, high)) * 0x1p-53 + 0x1p-54;
}

float normal(uint32_t u, uint32_t v, bool second)
{
    const float scale = 0x1p-32f * 6.2831855f;
    const float angle = static_cast<float>(v) * scale + scale / 2;
    const float radius = std::sqrt(-2.0f * std::log(uniform(u)));
    return radius * (second ? std::cos(angle) : std::sin(angle));
}

double normal(const Four &four, bool second)
{
    const double turns =
        static_cast<double>(mixed(four.word[2], four.word[3])) * 0x1p-52 + 0x1p-53;
    const double radius = std::sqrt(-2.0 * std::log(uniform(four.word[0], four.word[1])));
    return radius * (second ? std::cos(M_PI * turns) : std::sin(M_PI * turns));
}

uint64_t launch_threads(uint64_t n)
{
    const auto *device = at::cuda::getCurrentDeviceProperties();
    const uint64_t most =
        static_cast<uint64_t>(device->multiProcessorCount) *
        static_cast<uint64_t>(device->maxThreadsPerMultiProcessor / 256);
    return 256 * std::min(most, (n + 255) / 256);
}

} // namespace simtorch
