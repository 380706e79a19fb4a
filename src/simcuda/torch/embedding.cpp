// SPDX-License-Identifier: Apache-2.0
#include "embedding.hpp"

#include <algorithm>

namespace simtorch
{

namespace
{

std::vector<int64_t> integers_of(const at::Tensor &tensor)
{
    const at::Tensor plain = tensor.to(at::kLong).contiguous();
    const auto *first = plain.const_data_ptr<int64_t>();
    return {first, first + plain.numel()};
}

// What a call is asked, read before the CPU's kernel takes the arguments.
struct Bags {
    explicit Bags(const Call &call)
        : indices(integers_of(tensor(call, "indices"))),
          starts(integers_of(tensor(call, "offsets"))),
          padding(argument(call, "padding_idx").toInt())
    {
        if (argument(call, "include_last_offset").toBool())
            starts.pop_back();
    }

    size_t end_of(size_t bag) const
    {
        return static_cast<size_t>(bag + 1 < starts.size() ? starts[bag + 1]
                                                           : indices.size());
    }

    std::vector<int64_t> indices, starts;
    int64_t padding;
};

void keep_bags(const Bags &bags, const at::Tensor &bag_of, const at::Tensor &counted,
               const at::Tensor &largest)
{
    for (size_t bag = 0; bag < bags.starts.size(); bag++) {
        const auto place = static_cast<int64_t>(bag);
        const auto begin = static_cast<size_t>(bags.starts[bag]), end = bags.end_of(bag);
        const auto count = end - begin -
                           std::count(bags.indices.begin() + begin,
                                      bags.indices.begin() + end, bags.padding);
        bag_of.slice(0, begin, end).fill_(place);
        counted.select(0, place).fill_(static_cast<int64_t>(count));
        if (largest.numel() && !count)
            largest.select(0, place).fill_(-1);
    }
}

} // namespace

void body_embedding_bag(Call &call)
{
    const Bags bags(call);
    const Stack results = std::move(call.results);
    const at::Tensor largest = results[3].toTensor();

    call.results = {results[0]};
    body_cpu(call);
    if (largest.numel())
        deliver(largest, call.arguments[3]);
    keep_bags(bags, results[1].toTensor(), results[2].toTensor(), largest);
}

void body_embedding_bag_backward(Call &call)
{
    const int64_t bags = tensor(call, "grad").size(0);
    at::Tensor result = call.results[0].toTensor();

    if (!bags || !tensor(call, "indices").numel()) {
        result.zero_();
        return;
    }
    const int counted = call.op.place("bag_size");
    call.arguments[counted] = call.arguments[counted].toTensor().narrow(0, 0, bags);
    body_cpu(call);
}

} // namespace simtorch
