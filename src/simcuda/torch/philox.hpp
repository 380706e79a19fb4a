// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_PHILOX_HPP
#define SIM_TORCH_PHILOX_HPP

// Philox4x32-10 (Salmon et al., SC 2011) as cuRAND documents its generator, and which
// thread of a launch draws which word: ATen/native/cuda/DistributionTemplates.h.

#include <algorithm>
#include <cstdint>

namespace simtorch
{

struct Four {
    uint32_t word[4];
};

Four philox(uint64_t seed, uint64_t subsequence, uint64_t block);

// (0, 1], as curand_uniform and curand_uniform2_double.
float uniform(uint32_t word);
double uniform(uint32_t low, uint32_t high);

// Box-Muller on two words, as curand_normal2: `second` picks which of the pair.
float normal(uint32_t u, uint32_t v, bool second);
// The same on four, as curand_normal2_double.
double normal(const Four &four, bool second);

// The threads of a launch over n elements (calc_execution_policy; dropout uses the same).
uint64_t launch_threads(uint64_t n);

// Calls put(i, four, k) for each element: four.word[k] is its random word. Thread t of the
// launch makes elements t, t + threads, t + 2 * threads, ... from consecutive words.
template <typename Put>
void strided_words(uint64_t n, uint64_t seed, uint64_t offset, Put put)
{
    const uint64_t threads = launch_threads(n);
    for (uint64_t t = 0; t < std::min(n, threads); t++)
        for (uint64_t i = t, j = 0; i < n; j++) {
            const Four four = philox(seed, t, offset / 4 + j);
            for (int k = 0; k < 4 && i < n; k++, i += threads)
                put(i, four, k);
        }
}

// The same where an element takes two words: k is 0 or 1.
template <typename Put>
void strided_pairs(uint64_t n, uint64_t seed, uint64_t offset, Put put)
{
    const uint64_t threads = launch_threads(n);
    for (uint64_t t = 0; t < std::min(n, threads); t++)
        for (uint64_t i = t, j = 0; i < n; j++) {
            const Four four = philox(seed, t, offset / 4 + j);
            for (int k = 0; k < 2 && i < n; k++, i += threads)
                put(i, four, k);
        }
}

// The same for launches of `threads` threads in which each makes four neighbours at once.
template <typename Put>
void neighbour_words(uint64_t n, uint64_t threads, uint64_t seed, uint64_t offset,
                     Put put)
{
    for (uint64_t first = 0; first < n; first += 4) {
        const uint64_t group = first / 4;
        const Four four = philox(seed, group % threads, offset / 4 + group / threads);
        for (int k = 0; k < 4 && first + static_cast<uint64_t>(k) < n; k++)
            put(first + static_cast<uint64_t>(k), four, k);
    }
}

} // namespace simtorch

#endif
