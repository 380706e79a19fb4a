// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>

#include <ATen/SequenceNumber.h>
#include <c10/core/GradMode.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/autograd/function.h>

#include "auto.hpp"
#include "watch.hpp"
#include "where.hpp"

namespace simtorch
{

namespace
{

// --- Memory

void note_block(const c10::cuda::CUDACachingAllocator::TraceEntry &entry)
{
    using Entry = c10::cuda::CUDACachingAllocator::TraceEntry;
    if (entry.action_ != Entry::ALLOC && entry.action_ != Entry::FREE_REQUESTED)
        return;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    sim_check_block(reinterpret_cast<const void *>(entry.addr_), entry.size_,
                    entry.action_ == Entry::ALLOC);
}

// The allocator takes nobody on before it has its devices.
void watch_allocator()
{
    static std::atomic<bool> watched;
    auto *allocator = c10::cuda::CUDACachingAllocator::get();
    if (!watched && allocator->initialized() && !watched.exchange(true))
        allocator->attachAllocatorTraceTracker(note_block);
}

// --- Lines: an operator of a backward, where no Python runs, is said to be of the line
// whose forward it belongs to.

constexpr size_t NODES = 1 << 16;

struct Forward {
    uint64_t number; // of the node + 1
    const char *line;
};

std::mutex lock; // of `forwards` and `backwards`
Forward forwards[NODES];
std::unordered_map<std::string, std::string> backwards;

void note_forward(const char *line)
{
    const uint64_t next = at::sequence_number::peek();
    if (!line || !next || !c10::GradMode::is_enabled())
        return;
    const std::lock_guard<std::mutex> guard(lock);
    Forward &forward = forwards[(next - 1) % NODES];
    if (forward.number != next)
        forward = {next, line};
}

const char *backward_line(torch::autograd::Node &node)
{
    const uint64_t number = node.sequence_nr() + 1;
    const std::lock_guard<std::mutex> guard(lock);
    const Forward &forward = forwards[(number - 1) % NODES];
    const bool known = number && forward.number == number;
    std::string text = "backward of " + (known ? forward.line : node.name());
    auto &kept = backwards[text];
    if (kept.empty())
        kept = text;
    return kept.c_str();
}

const char *line()
{
    watch_allocator();
    return line_of_call();
}

} // namespace

const char *line_of_call()
{
    const auto node = torch::autograd::get_current_node();
    const char *own = program_line();
    if (!node)
        note_forward(own);
    return !own && node ? backward_line(*node) : own;
}

bool checks()
{
    static const bool on = [] {
        sim_races races = {};
        (void)sim_compute(); // the settings are read
        sim_races_get(&races);
        return races.checked;
    }();
    return on;
}

void check_start()
{
    if (!checks())
        return;
    sim_check_lines(line);
    watch_host();
}

void check_reads(const Operator &op, const Stack &arguments, c10::DeviceIndex device)
{
    if (!checks())
        return;
    Footprint read;
    for (const auto &argument : arguments)
        read.add(argument, false, false);
    read.lose(op, device, sim_effort());
}

} // namespace simtorch
