// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/cost.h"

#include "simcuda/runtime/device.h"

// Back-to-back tiny kernels on one stream, time per kernel, A100 2.6 and H200 2.4 us
// (te42kyfo/gpu-benches, gpu-small-kernels).
enum { LAUNCH_NS = 2500 };

static uint64_t at_rate(size_t bytes, uint64_t bytes_per_s)
{
    return LAUNCH_NS + (uint64_t)((double)bytes * 1e9 / (double)bytes_per_s);
}

uint64_t sim_cost_copy(bool to_device, bool from_device, size_t bytes)
{
    const struct as_gpu *gpu = sim_device_current()->gpu;

    if (to_device && from_device)
        return at_rate(2 * bytes, gpu->bandwidth_bytes_per_s);
    return at_rate(bytes, from_device ? gpu->d2h_bytes_per_s : gpu->h2d_bytes_per_s);
}

uint64_t sim_cost_fill(size_t bytes)
{
    return at_rate(bytes, sim_device_current()->gpu->bandwidth_bytes_per_s);
}

uint64_t sim_cost_launch(void)
{
    return LAUNCH_NS;
}

uint64_t sim_cost_access(size_t bytes)
{
    return at_rate(bytes, sim_device_current()->gpu->bandwidth_bytes_per_s);
}
