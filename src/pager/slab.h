// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_SLAB_H
#define AS_PAGER_SLAB_H

// Pinned host memory, taken from the device's runtime in exact sizes and kept.
//
// The first step makes the buffers; later ones reuse them by best fit, as pinning costs
// more than a step. The cap is a share of this machine's memory, except on a simulated
// device that computes nothing: there nothing is touched, and no cap applies but one from
// the settings. A buffer that comes back may still be read or written by a copy: it
// carries the event of the last one, and whoever copies into it next waits for that on
// the device (as_edge_host_reuse), never on the host.
//
// Thread-safety: every function may be called from any thread. No lock is held over a
// CUDA call.

#include <stddef.h>
#include <stdint.h>

struct as_settings;
struct as_slab;

// Belongs to the caller from as_slab_take() to as_slab_give().
struct as_buffer {
    void *host;
    size_t bytes; // at least what was asked for
    void *event; // of the last copy that used it, or NULL
    int device; // of that event
};

// NULL: out of memory. Nothing is pinned and no file is read before the first take.
struct as_slab *as_slab_create(const struct as_settings *settings);

// Frees all buffers, which must have been given back. The caller has waited for all
// copies and took the events out with as_slab_event().
void as_slab_destroy(struct as_slab *slab);

// -ENOMEM: the cap is reached and no free buffer fits, or the runtime refused.
int as_slab_take(struct as_slab *slab, size_t bytes, struct as_buffer *buffer);
void as_slab_give(struct as_slab *slab, const struct as_buffer *buffer);

// Takes the event out of any free buffer that has one, for the end. NULL: none is left.
void *as_slab_event(struct as_slab *slab);

struct as_slab_totals {
    uint64_t bytes, peak_bytes;
    uint64_t cap_bytes; // 0 before the first take, UINT64_MAX: none
};

void as_slab_totals(struct as_slab *slab, struct as_slab_totals *totals);

#endif
