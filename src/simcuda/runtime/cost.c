// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/cost.h"

#include "simcuda/runtime/device.h"

// On the host, in ns. Tiny kernels back to back on one stream take 2.6 us each on an A100
// and 2.4 on an H200, where the host is what limits; replayed from a graph, where it is the
// device, 1.34 and 1.26 (te42kyfo/gpu-benches, gpu-small-kernels). An operator of PyTorch
// takes 7 us on tiny tensors (flagos-ai/FlagGems issue 4812). Event record 1.6 on average,
// the least of cudaMemcpyAsync 3.4, of cudaMemsetAsync 2.8 (ryujaehun/pytorch-gpu-benchmark
// issue 6).
enum {
    KERNEL_NS = 1300, // on the device, beside what its work takes
    HOST_OPERATOR_NS = 7000,
    HOST_COPY_NS = 3400,
    HOST_FILL_NS = 2800,
};

// Pageable memory against pinned: 10.0 of 25.7 GB/s in, 10.8 of 25.8 out on an A100-SXM4
// (32 MB); 5.5 of 12.35 in on a V100 (rapidsai/dask-cuda issue 98).
static const double pageable_share = 0.4;

static uint64_t at_rate(double amount, double per_s)
{
    return per_s > 0 ? (uint64_t)(amount * 1e9 / per_s) : 0;
}

static const struct as_gpu *gpu(void)
{
    return sim_device_current()->gpu;
}

static uint64_t kernel_ns(double bytes)
{
    return KERNEL_NS + at_rate(bytes, (double)gpu()->bandwidth_bytes_per_s);
}

// --- Arithmetic

// fp64 against fp32, by compute capability: results of a multiply-add per clock and
// multiprocessor (CUDA C++ Programming Guide, arithmetic instructions).
static double fp64_flops(const struct as_gpu *card)
{
    const bool whole = card->minor == 0 && card->major != 12; // 7.0, 8.0, 9.0, 10.0
    const double share = whole ? 2 : card->major < 8 ? 32 : 64;

    return (double)card->fp32_flops / share;
}

// fp8 and int8 are twice as fast as half wherever there are units for them.
static double flops_at(const struct as_gpu *card, enum sim_rate rate)
{
    const bool has_bf16 = card->major >= 8;
    const bool has_fp8 = card->major > 8 || (card->major == 8 && card->minor == 9);
    const bool has_int8 = card->major * 10 + card->minor >= 75;
    const double fp32 = (double)card->fp32_flops, half = (double)card->half_flops;

    switch (rate) {
    case SIM_RATE_FP64:
        return fp64_flops(card);
    case SIM_RATE_FP32:
        break;
    case SIM_RATE_TF32:
        return card->tf32_flops ? (double)card->tf32_flops : fp32;
    case SIM_RATE_FP16:
        return half;
    case SIM_RATE_BF16:
        return has_bf16 ? half : fp32;
    case SIM_RATE_FP8:
        return has_fp8 ? 2 * half : half;
    case SIM_RATE_INT8:
        return has_int8 ? 2 * half : fp32;
    }
    return fp32;
}

struct sim_effort sim_effort_of(const struct sim_access *accesses, size_t count)
{
    struct sim_effort effort = {.kernels = 1};

    for (size_t i = 0; i < count; i++)
        effort.bytes += (double)accesses[i].bytes;
    return effort;
}

// Arithmetic and memory at the same time: the slower of the two counts.
struct sim_cost sim_cost_work(const struct sim_effort *effort)
{
    const uint64_t bytes_ns =
        at_rate(effort->bytes, (double)gpu()->bandwidth_bytes_per_s);
    const uint64_t flops_ns = at_rate(effort->flops, flops_at(gpu(), effort->rate));

    if (!effort->kernels)
        return (struct sim_cost){0};
    return (struct sim_cost){
        .engine = SIM_KERNELS,
        .ns = effort->kernels * (uint64_t)KERNEL_NS +
              (flops_ns > bytes_ns ? flops_ns : bytes_ns),
        .unknown = effort->unknown,
        .host_ns = effort->dispatched ? HOST_OPERATOR_NS : SIM_HOST_LAUNCH_NS,
    };
}

struct sim_cost sim_cost_launch(const struct sim_lost *writes)
{
    struct sim_effort effort = sim_effort_of(writes->accesses, writes->count);

    effort.unknown = true;
    return sim_cost_work(&effort);
}

// --- Copies

static bool on_host(const struct sim_location *location)
{
    return location->place != SIM_DEVICE;
}

static struct sim_cost copy_within(const struct sim_location *to,
                                   const struct sim_location *from, size_t bytes)
{
    if (to->device == from->device)
        return (struct sim_cost){.engine = SIM_KERNELS,
                                 .ns = kernel_ns(2 * (double)bytes)};

    // Through the host, as where no other link is known.
    const double out = (double)sim_device(from->device)->gpu->d2h_bytes_per_s;
    const double in = (double)sim_device(to->device)->gpu->h2d_bytes_per_s;

    return (struct sim_cost){.engine = SIM_COPY_PEER,
                             .peer = from->device,
                             .ns = at_rate((double)bytes, out < in ? out : in)};
}

static struct sim_cost copy_across(const struct sim_location *to,
                                   const struct sim_location *from, size_t bytes,
                                   bool staged)
{
    const bool in = on_host(from), pageable = (in ? from : to)->place == SIM_PAGEABLE;
    const struct as_gpu *card = sim_device(in ? to->device : from->device)->gpu;
    const double link = (double)(in ? card->h2d_bytes_per_s : card->d2h_bytes_per_s);
    const uint64_t ns = at_rate((double)bytes, pageable ? pageable_share * link : link);

    return (struct sim_cost){
        .engine = in ? SIM_COPY_IN : SIM_COPY_OUT,
        .ns = ns,
        .host_beside_ns = staged ? ns : 0,
    };
}

struct sim_cost sim_cost_copy(const struct sim_location *to,
                              const struct sim_location *from, size_t bytes, bool staged)
{
    struct sim_cost cost = {.ns = 0};

    if (on_host(to) && on_host(from))
        cost.ns = at_rate((double)bytes, pageable_share * (double)gpu()->h2d_bytes_per_s);
    else if (on_host(to) || on_host(from))
        cost = copy_across(to, from, bytes, staged);
    else
        cost = copy_within(to, from, bytes);
    cost.host_ns = HOST_COPY_NS;
    return cost;
}

struct sim_cost sim_cost_fill(size_t bytes, bool on_device)
{
    const struct sim_cost cost = {
        .engine = SIM_KERNELS, .ns = kernel_ns((double)bytes), .host_ns = HOST_FILL_NS};

    return on_device ? cost : (struct sim_cost){.host_ns = HOST_FILL_NS};
}
