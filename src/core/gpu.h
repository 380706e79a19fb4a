// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CORE_GPU_H
#define AS_CORE_GPU_H

// The one table of GPUs. Each figure has its source beside it in gpu.c.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct as_gpu {
    const char *name; // as users type it: "h100-80gb"
    const char *label; // for tables: "H100 80GB"
    const char *product; // as the driver reports it
    uint64_t total_bytes; // totalGlobalMem as the driver reports it
    int major, minor; // compute capability
    int multiprocessors;
    int clock_mhz; // boost
    int memory_bus_bits;
    int memory_clock_mhz;
    uint64_t l2_bytes;
    uint64_t bandwidth_bytes_per_s;
    uint64_t fp32_flops, tf32_flops, half_flops; // dense peaks, 0: none
    uint64_t h2d_bytes_per_s, d2h_bytes_per_s; // pinned, one direction
    uint64_t context_bytes;
    bool coherent; // with the host's memory, by its page tables
};

// NULL-terminated in as_gpu_table[n].name. Ordered by total_bytes.
extern const struct as_gpu as_gpu_table[];

// Case does not matter. NULL: unknown; *nearest then names the most similar entry.
const struct as_gpu *as_gpu_find(const char *name, const char **nearest);

#endif
