// SPDX-License-Identifier: Apache-2.0
#include "core/gpu.h"

#include <strings.h>

#include "core/settings.h"

// Sources, by letter in the rows below. Each figure was read in public material or is
// derived from one that was; nothing here was measured by us.
//
//   [P] what a program printed on the card: torch's get_device_properties, deviceQuery,
//       nvidia-smi -q, PyTorch's out-of-memory message (public logs). Several drivers give
//       several sizes of memory; the commonest recent one was taken.
//   [S] stas00/ml-engineering, accelerator and network READMEs
//   [L] karpathy/llm.c mfu.h, scaled by cores and clock
//   [M] a magazine's table (Linux Format, May 2025)
//   [F] Lightning fabric throughput.py
//   [T] the installed PyTorch's device_info.py, or pytorch/torchtitan utils.py
//   [C] measured host copies: NVIDIA/nvbandwidth README and issues 15, 23, 53;
//       te42kyfo/gpu-benches; stas00 network README (8x H200)
//   [D] derived here: bandwidth = 2 x memory clock x bus / 8
//   [?] widely known, not found in what was read
//
// context_bytes is total - free after the first tensor under lazy module loading:
// A100 481 MiB (stas00/ml-engineering, training/performance), RTX 6000 Ada 426 MiB
// (unslothai/unsloth-zoo 1053), RTX 3090 256 MiB, bare (invoke-ai/InvokeAI 9413), an
// unnamed card 287047680 bytes (pytorch/pytorch 86509). Cards that nobody published
// take the figure of their nearest relative, and say so.
#define MIB(n) ((uint64_t)(n) << 20)
#define GIGA(n) ((uint64_t)((n)*1e9))
#define TERA(n) ((uint64_t)((n)*1e12))

const struct as_gpu as_gpu_table[] = {
    {
        .name = "rtx3060",
        .label = "RTX 3060 12GB",
        .product = "NVIDIA GeForce RTX 3060",
        .total_bytes = MIB(12044), // [P] to a MiB; 11931 with a desktop
        .major = 8,
        .minor = 6,
        .multiprocessors = 28, // [P]
        .clock_mhz = 1777, // [L]
        .memory_bus_bits = 192, // [?]
        .memory_clock_mhz = 7501, // [?]
        .l2_bytes = MIB(3), // [?]
        .bandwidth_bytes_per_s = GIGA(360), // [D]
        .fp32_flops = TERA(12.7), // [L]
        .tf32_flops = TERA(12.7), // [L]
        .half_flops = TERA(25.5), // [L]
        .h2d_bytes_per_s = GIGA(25.9), // [C] PCIe 4 reference
        .d2h_bytes_per_s = GIGA(25.9), // as h2d: not found
        .context_bytes = MIB(256), // RTX 3090's
    },
    {
        .name = "t4",
        .label = "T4 16GB",
        .product = "Tesla T4",
        .total_bytes = 15843721216, // [P] 15110 MiB; 14930 to 15109 with other drivers
        .major = 7,
        .minor = 5,
        .multiprocessors = 40,
        .clock_mhz = 1590, // [P]
        .memory_bus_bits = 256, // [P]
        .memory_clock_mhz = 5001, // [P]
        .l2_bytes = MIB(4), // [P]
        .bandwidth_bytes_per_s = GIGA(320), // [D]
        .fp32_flops = TERA(8.1), // [F]
        .half_flops = TERA(65), // [F] fp16 only
        .h2d_bytes_per_s = GIGA(6.3), // [C] in a cloud VM
        .d2h_bytes_per_s = GIGA(6.6), // [C]
        .context_bytes = 287047680, // the unnamed card's
    },
    {
        .name = "rtx4070ti-super",
        .label = "RTX 4070 Ti SUPER 16GB",
        .product = "NVIDIA GeForce RTX 4070 Ti SUPER",
        .total_bytes = MIB(15974), // [P] to a MiB; 15934 seen
        .major = 8,
        .minor = 9,
        .multiprocessors = 66, // [P]
        .clock_mhz = 2610, // [L]
        .memory_bus_bits = 256, // [?]
        .memory_clock_mhz = 10501, // [?]
        .l2_bytes = MIB(48), // [P]
        .bandwidth_bytes_per_s = GIGA(672), // [D]
        .fp32_flops = TERA(44.1), // [L]
        .tf32_flops = TERA(44.1), // [L]
        .half_flops = TERA(88.2), // [L]
        .h2d_bytes_per_s = GIGA(25.9), // [C] PCIe 4 reference
        .d2h_bytes_per_s = GIGA(25.9), // as h2d: not found
        .context_bytes = MIB(426), // RTX 6000 Ada's
    },
    {
        .name = "rtx4080",
        .label = "RTX 4080 16GB",
        .product = "NVIDIA GeForce RTX 4080",
        .total_bytes = MIB(16049), // [P] to a MiB
        .major = 8,
        .minor = 9,
        .multiprocessors = 76, // [P]
        .clock_mhz = 2505, // [L]
        .memory_bus_bits = 256, // [?]
        .memory_clock_mhz = 11202, // [?]
        .l2_bytes = MIB(64), // [?]
        .bandwidth_bytes_per_s = GIGA(717), // [D]
        .fp32_flops = TERA(48.8), // [L]
        .tf32_flops = TERA(48.8), // [L]
        .half_flops = TERA(97.5), // [L]
        .h2d_bytes_per_s = GIGA(25.9), // [C] PCIe 4 reference
        .d2h_bytes_per_s = GIGA(25.9), // as h2d: not found
        .context_bytes = MIB(426), // RTX 6000 Ada's
    },
    {
        .name = "v100-16gb",
        .label = "V100 16GB",
        .product = "Tesla V100-SXM2-16GB",
        .total_bytes = 16928342016, // [P] 16144 MiB; 16128 to 16160 seen
        .major = 7,
        .minor = 0,
        .multiprocessors = 80,
        .clock_mhz = 1530, // [P]
        .memory_bus_bits = 4096, // [P]
        .memory_clock_mhz = 877, // [P]
        .l2_bytes = MIB(6), // [P]
        .bandwidth_bytes_per_s = GIGA(898), // [D]
        .fp32_flops = TERA(15.7), // [F]
        .half_flops = TERA(125), // [F] fp16 only
        .h2d_bytes_per_s = GIGA(12.35), // [C] PCIe 3, V100 PCIe
        .d2h_bytes_per_s = GIGA(13.1), // [C] PCIe 3, another host
        .context_bytes = 287047680, // the unnamed card's; 1343 MiB before lazy loading
    },
    {
        .name = "l4",
        .label = "L4 24GB",
        .product = "NVIDIA L4",
        .total_bytes = 23612293120, // [P] 22518 MiB
        .major = 8,
        .minor = 9,
        .multiprocessors = 58,
        .clock_mhz = 2040, // [P]
        .memory_bus_bits = 192, // [P]
        .memory_clock_mhz = 6251, // [P]
        .l2_bytes = MIB(48), // [P]
        .bandwidth_bytes_per_s = GIGA(300), // [D]
        .fp32_flops = TERA(30.3), // [T]
        .tf32_flops = TERA(60), // [T] half of the sparse value printed there
        .half_flops = TERA(121), // [T] likewise
        .h2d_bytes_per_s = GIGA(25.9), // [C] PCIe 4 reference
        .d2h_bytes_per_s = GIGA(25.9), // as h2d: not found
        .context_bytes = MIB(426), // RTX 6000 Ada's
    },
    {
        .name = "a10g",
        .label = "A10G 24GB",
        .product = "NVIDIA A10G",
        .total_bytes = MIB(22587), // [P] torch 2.15, CUDA 13; to a MiB
        .major = 8,
        .minor = 6,
        .multiprocessors = 80,
        .clock_mhz = 1710, // [?]
        .memory_bus_bits = 384, // [?]
        .memory_clock_mhz = 6251, // [?]
        .l2_bytes = MIB(6), // [?]
        .bandwidth_bytes_per_s = GIGA(600), // [D]
        .fp32_flops = TERA(31.2), // A10's sheet; the A10G's own was not found
        .tf32_flops = TERA(62.5), // [D] half of the next, as on every Ampere card
        .half_flops = TERA(125), // A10's sheet; llm-analysis says 70
        .h2d_bytes_per_s = GIGA(25.9), // [C] PCIe 4 reference
        .d2h_bytes_per_s = GIGA(25.9), // as h2d: not found
        .context_bytes = MIB(256), // RTX 3090's
    },
    {
        .name = "rtx4090",
        .label = "RTX 4090 24GB",
        .product = "NVIDIA GeForce RTX 4090",
        .total_bytes = 25250627584, // [P] 24081 MiB; 24207 and more on Windows
        .major = 8,
        .minor = 9,
        .multiprocessors = 128,
        .clock_mhz = 2520, // [P]
        .memory_bus_bits = 384, // [P]
        .memory_clock_mhz = 10501, // [P]
        .l2_bytes = MIB(72), // [P]
        .bandwidth_bytes_per_s = GIGA(1008), // [D]
        .fp32_flops = TERA(82.6), // [L]
        .tf32_flops = TERA(82.6), // [L]
        .half_flops = TERA(165.2), // [L] fp32 accumulation
        .h2d_bytes_per_s = GIGA(26.4), // [C] 23.9 to 26.4
        .d2h_bytes_per_s = GIGA(27.1), // [C] 26.3 to 27.1
        .context_bytes = MIB(426), // RTX 6000 Ada's
    },
    {
        .name = "a5000",
        .label = "RTX A5000 24GB",
        .product = "NVIDIA RTX A5000",
        .total_bytes = MIB(24138), // [P] to a MiB; 24114 seen
        .major = 8,
        .minor = 6,
        .multiprocessors = 64, // [P]
        .clock_mhz = 1695, // [L]
        .memory_bus_bits = 384, // [?]
        .memory_clock_mhz = 8001, // [?]
        .l2_bytes = MIB(6), // [P]
        .bandwidth_bytes_per_s = GIGA(768), // [D]
        .fp32_flops = TERA(27.8), // [L]
        .tf32_flops = TERA(27.8), // [L]
        .half_flops = TERA(55.5), // [L]
        .h2d_bytes_per_s = GIGA(25.9), // [C] PCIe 4 reference
        .d2h_bytes_per_s = GIGA(25.9), // as h2d: not found
        .context_bytes = MIB(256), // RTX 3090's
    },
    {
        .name = "rtx3090",
        .label = "RTX 3090 24GB",
        .product = "NVIDIA GeForce RTX 3090",
        .total_bytes = 25447170048, // [P] 24268 MiB; 24238 to 24265 seen
        .major = 8,
        .minor = 6,
        .multiprocessors = 82,
        .clock_mhz = 1695, // [P]
        .memory_bus_bits = 384, // [P]
        .memory_clock_mhz = 9751, // [P]
        .l2_bytes = MIB(6), // [P]
        .bandwidth_bytes_per_s = GIGA(936), // [D]
        .fp32_flops = TERA(35.6), // [L]
        .tf32_flops = TERA(35.6), // [L]
        .half_flops = TERA(71.2), // [L]
        .h2d_bytes_per_s = GIGA(25.9), // [C] PCIe 4 reference
        .d2h_bytes_per_s = GIGA(25.9), // as h2d: not found
        .context_bytes = MIB(256),
    },
    {
        .name = "rtx5090",
        .label = "RTX 5090 32GB",
        .product = "NVIDIA GeForce RTX 5090",
        .total_bytes = MIB(32123), // [P] 31.37 GiB
        .major = 12,
        .minor = 0,
        .multiprocessors = 170, // [M]
        .clock_mhz = 2407, // [M]
        .memory_bus_bits = 512, // [M]
        .memory_clock_mhz = 14001, // [D]
        .l2_bytes = MIB(96), // [M]
        .bandwidth_bytes_per_s = GIGA(1792), // [M]
        .fp32_flops = TERA(104.8), // [D] multiprocessors x 256 x clock
        .tf32_flops = TERA(104.8), // as on the RTX 4090
        .half_flops = TERA(209.5), // likewise
        .h2d_bytes_per_s = GIGA(55.43), // H200's, PCIe 5
        .d2h_bytes_per_s = GIGA(55.06), // H200's, PCIe 5
        .context_bytes = MIB(426), // RTX 6000 Ada's
    },
    {
        .name = "v100-32gb",
        .label = "V100 32GB",
        .product = "Tesla V100-PCIE-32GB",
        .total_bytes = 34072559616, // [P] 32494 MiB; the SXM2 card's was not found
        .major = 7,
        .minor = 0,
        .multiprocessors = 80,
        .clock_mhz = 1380, // [P]
        .memory_bus_bits = 4096, // [P]
        .memory_clock_mhz = 877, // [P]
        .l2_bytes = MIB(6), // [P]
        .bandwidth_bytes_per_s = GIGA(898), // [D]
        .fp32_flops = TERA(14.1), // [F]
        .half_flops = TERA(112), // [F] fp16 only
        .h2d_bytes_per_s = GIGA(12.35), // [C]
        .d2h_bytes_per_s = GIGA(13.1), // [C] another PCIe 3 host
        .context_bytes = 287047680, // the unnamed card's
    },
    {
        .name = "a100-40gb",
        .label = "A100 40GB",
        .product = "NVIDIA A100-SXM4-40GB",
        .total_bytes = MIB(40536), // [P] to a MiB
        .major = 8,
        .minor = 0,
        .multiprocessors = 108,
        .clock_mhz = 1410, // [P]
        .memory_bus_bits = 5120, // [P]
        .memory_clock_mhz = 1215, // [P]
        .l2_bytes = MIB(40), // [P]
        .bandwidth_bytes_per_s = GIGA(1555), // [D]
        .fp32_flops = TERA(19.5), // [S] [T]
        .tf32_flops = TERA(156), // [S] [T]
        .half_flops = TERA(312), // [S] [T]
        .h2d_bytes_per_s = GIGA(26.1), // [C]
        .d2h_bytes_per_s = GIGA(25.6), // [C]
        .context_bytes = MIB(481), // the 80 GB card's
    },
    {
        .name = "l40s",
        .label = "L40S 48GB",
        .product = "NVIDIA L40S",
        .total_bytes = 47576711168, // [P] 45373 MiB; 45589 seen
        .major = 8,
        .minor = 9,
        .multiprocessors = 142,
        .clock_mhz = 2520, // [P]
        .memory_bus_bits = 384, // [P]
        .memory_clock_mhz = 9001, // [P]
        .l2_bytes = MIB(96), // [P]
        .bandwidth_bytes_per_s = GIGA(864), // [D]
        .fp32_flops = TERA(91.6), // [S]
        .tf32_flops = TERA(183), // [S]
        .half_flops = TERA(362), // [S]
        .h2d_bytes_per_s = GIGA(25.9), // [C] PCIe 4 reference
        .d2h_bytes_per_s = GIGA(25.9), // as h2d: not found
        .context_bytes = MIB(426), // RTX 6000 Ada's
    },
    {
        .name = "a40",
        .label = "A40 48GB",
        .product = "NVIDIA A40",
        .total_bytes = MIB(45416), // [P] to a MiB
        .major = 8,
        .minor = 6,
        .multiprocessors = 84, // [P]
        .clock_mhz = 1740, // [?]
        .memory_bus_bits = 384, // [?]
        .memory_clock_mhz = 7251, // [?]
        .l2_bytes = MIB(6), // [?]
        .bandwidth_bytes_per_s = GIGA(696), // [D]
        .fp32_flops = TERA(37.4), // [D] multiprocessors x 256 x clock
        .tf32_flops = TERA(74.8), // [D] half of the next
        .half_flops = TERA(149.7), // [D] the A6000's by clock
        .h2d_bytes_per_s = GIGA(25.9), // [C] PCIe 4 reference
        .d2h_bytes_per_s = GIGA(25.9), // as h2d: not found
        .context_bytes = MIB(256), // RTX 3090's
    },
    {
        .name = "rtx6000ada",
        .label = "RTX 6000 Ada 48GB",
        .product = "NVIDIA RTX 6000 Ada Generation",
        .total_bytes = MIB(48622), // [P] to a MiB
        .major = 8,
        .minor = 9,
        .multiprocessors = 142, // [P]
        .clock_mhz = 2505, // [L]
        .memory_bus_bits = 384, // [?]
        .memory_clock_mhz = 10001, // [?]
        .l2_bytes = MIB(96), // [?]
        .bandwidth_bytes_per_s = GIGA(960), // [D]
        .fp32_flops = TERA(91.1), // [L]
        .tf32_flops = TERA(91.1), // [L]
        .half_flops = TERA(182.2), // [L]
        .h2d_bytes_per_s = GIGA(25.9), // [C] PCIe 4 reference
        .d2h_bytes_per_s = GIGA(25.9), // as h2d: not found
        .context_bytes = MIB(426),
    },
    {
        .name = "a6000",
        .label = "RTX A6000 48GB",
        .product = "NVIDIA RTX A6000",
        .total_bytes = 51160023040, // [P] 48790 MiB, ECC off
        .major = 8,
        .minor = 6,
        .multiprocessors = 84,
        .clock_mhz = 1800, // [P]
        .memory_bus_bits = 384, // [P]
        .memory_clock_mhz = 8001, // [P]
        .l2_bytes = MIB(6), // [P]
        .bandwidth_bytes_per_s = GIGA(768), // [D]
        .fp32_flops = TERA(38.7), // [T]
        .tf32_flops = TERA(77.4), // [T]
        .half_flops = TERA(154.8), // [T]; 77.4 in [L] is less than was measured
        .h2d_bytes_per_s = GIGA(25.9), // [C] PCIe 4 reference
        .d2h_bytes_per_s = GIGA(25.9), // as h2d: not found
        .context_bytes = MIB(256), // RTX 3090's
    },
    {
        .name = "h100-pcie",
        .label = "H100 PCIe 80GB",
        .product = "NVIDIA H100 PCIe",
        .total_bytes = MIB(81008), // [P] to a MiB
        .major = 9,
        .minor = 0,
        .multiprocessors = 114, // [P]
        .clock_mhz = 1755, // [P]
        .memory_bus_bits = 5120, // [P]
        .memory_clock_mhz = 1593, // [P]
        .l2_bytes = MIB(50), // [P]
        .bandwidth_bytes_per_s = GIGA(2039), // [D]
        .fp32_flops = TERA(51.2), // [S]
        .tf32_flops = TERA(378), // [S] [L]
        .half_flops = TERA(756), // [S] [L]
        .h2d_bytes_per_s = GIGA(55.43), // [C] H200, PCIe 5
        .d2h_bytes_per_s = GIGA(55.06), // [C] H200, PCIe 5
        .context_bytes = MIB(481), // A100's
    },
    {
        .name = "h100-80gb",
        .label = "H100 80GB",
        .product = "NVIDIA H100 80GB HBM3",
        .total_bytes = 85028896768, // [P] 81090 MiB; 81079 to 81106 seen
        .major = 9,
        .minor = 0,
        .multiprocessors = 132,
        .clock_mhz = 1980, // [P]; the sheet's peaks are at 1830
        .memory_bus_bits = 5120, // [P]
        .memory_clock_mhz = 2619, // [P]
        .l2_bytes = MIB(50), // [P]
        .bandwidth_bytes_per_s = GIGA(3352), // [D]
        .fp32_flops = TERA(66.9), // [S]
        .tf32_flops = TERA(494.5), // [S]
        .half_flops = TERA(989), // [S]
        .h2d_bytes_per_s = GIGA(55.43), // [C] H200, PCIe 5
        .d2h_bytes_per_s = GIGA(55.06), // [C] H200, PCIe 5
        .context_bytes = MIB(481), // A100's
    },
    {
        .name = "a100-80gb",
        .label = "A100 80GB",
        .product = "NVIDIA A100-SXM4-80GB",
        .total_bytes = 85100068864, // [P] 81158 MiB; 81050 to 81152 seen
        .major = 8,
        .minor = 0,
        .multiprocessors = 108,
        .clock_mhz = 1410, // [P]
        .memory_bus_bits = 5120, // [P]
        .memory_clock_mhz = 1593, // [P]
        .l2_bytes = MIB(40), // [P]
        .bandwidth_bytes_per_s = GIGA(2039), // [D]; quoted 2000 to 2048
        .fp32_flops = TERA(19.5), // [S] [T]
        .tf32_flops = TERA(156), // [S] [T]
        .half_flops = TERA(312), // [S] [T]
        .h2d_bytes_per_s = GIGA(25.7), // [C]
        .d2h_bytes_per_s = GIGA(25.8), // [C]
        .context_bytes = MIB(481),
    },
    {
        .name = "gh200",
        .label = "GH200 96GB",
        .product = "NVIDIA GH200 480GB", // [?]
        .total_bytes = 102005473280, // [P] 97280 MiB
        .major = 9,
        .minor = 0,
        .multiprocessors = 132,
        .clock_mhz = 1980, // [P]
        .memory_bus_bits = 6144, // [P]
        .memory_clock_mhz = 2619, // [P]
        .l2_bytes = MIB(60), // [P]
        .bandwidth_bytes_per_s = GIGA(4023), // [D]
        .fp32_flops = TERA(66.9), // [S]
        .tf32_flops = TERA(494.5), // [S]
        .half_flops = TERA(989), // [S]
        .h2d_bytes_per_s = GIGA(346), // [C] NVLink-C2C, copy engine
        .d2h_bytes_per_s = GIGA(294), // [C] "about 15 % less"
        .context_bytes = MIB(481), // A100's
        .coherent = true, // "address translation services", public tuning guide
    },
    {
        .name = "h200",
        .label = "H200 141GB",
        .product = "NVIDIA H200",
        .total_bytes = MIB(143156), // [P] to a MiB
        .major = 9,
        .minor = 0,
        .multiprocessors = 132,
        .clock_mhz = 1980, // [?]
        .memory_bus_bits = 6144, // GH200's: not found
        .memory_clock_mhz = 3125, // [D] from the two others
        .l2_bytes = MIB(60), // [P]; [S] says 50
        .bandwidth_bytes_per_s = GIGA(4800), // [S]
        .fp32_flops = TERA(66.9), // [S]
        .tf32_flops = TERA(494.5), // [S]
        .half_flops = TERA(989), // [S]
        .h2d_bytes_per_s = GIGA(55.43), // [C]
        .d2h_bytes_per_s = GIGA(55.06), // [C]
        .context_bytes = MIB(481), // A100's
    },
    {
        .name = "b200",
        .label = "B200 192GB",
        .product = "NVIDIA B200",
        .total_bytes = MIB(182642), // [P] to a MiB; 182631 seen
        .major = 10,
        .minor = 0,
        .multiprocessors = 148,
        .clock_mhz = 1965, // [P]
        .memory_bus_bits = 7680, // [P]
        .memory_clock_mhz = 3996, // [P]
        .l2_bytes = MIB(126), // [P]
        .bandwidth_bytes_per_s = GIGA(7672), // [D]; sheets say 7700 to 8000
        .fp32_flops = TERA(75), // [S]; 80 elsewhere
        .tf32_flops = TERA(1125), // [S]
        .half_flops = TERA(2250), // [S]
        .h2d_bytes_per_s = GIGA(55.43), // H200's: not found
        .d2h_bytes_per_s = GIGA(55.06), // H200's: not found
        .context_bytes = MIB(481), // A100's
    },
    {.name = NULL},
};

enum { GPUS = sizeof(as_gpu_table) / sizeof(as_gpu_table[0]) };

const struct as_gpu *as_gpu_find(const char *name, const char **nearest)
{
    const char *names[GPUS];

    for (size_t i = 0; i < GPUS; i++) {
        names[i] = as_gpu_table[i].name;
        if (names[i] && !strcasecmp(names[i], name))
            return &as_gpu_table[i];
    }
    if (nearest)
        *nearest = as_settings_nearest(name, names);
    return NULL;
}
