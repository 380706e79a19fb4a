// SPDX-License-Identifier: Apache-2.0
#include "histogram.hpp"

#include <algorithm>

#include <ATen/ops/zeros.h>

namespace simtorch
{

// Integers are placed by integers: (value - low) * bins / (high - low), the highest value
// in the last bin. Equal bounds stand for those of the values, and one more each way if
// these are equal, too: PyTorch's documentation of histc.
static at::Tensor count(const at::Tensor &values, int64_t bins, int64_t low, int64_t high)
{
    const at::Tensor flat = values.to(at::kLong).contiguous().flatten();
    const auto *const first = flat.const_data_ptr<int64_t>(),
                      *last = first + flat.numel();
    at::Tensor counted = at::zeros({bins}, at::kLong);
    auto *const counts = counted.mutable_data_ptr<int64_t>();

    if (low == high && first != last) {
        low = *std::min_element(first, last);
        high = *std::max_element(first, last);
    }
    if (low == high) {
        low--;
        high++;
    }
    for (const auto *value = first; value != last; value++)
        if (*value >= low && *value <= high)
            counts[std::min((*value - low) * bins / (high - low), bins - 1)]++;
    return counted;
}

void body_histc(Call &call)
{
    const at::Tensor values = tensor(call, "self");

    if (values.is_floating_point()) {
        body_cpu(call);
        return;
    }
    const at::Tensor counted = count(values, argument(call, "bins").toInt(),
                                     argument(call, "min").toScalar().toLong(),
                                     argument(call, "max").toScalar().toLong());
    deliver(call.results[0], counted.to(values.scalar_type()));
}

} // namespace simtorch
