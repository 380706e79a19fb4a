// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_SLAB_H
#define AS_PAGER_SLAB_H

// Pinned host memory, taken from the device's runtime in exact sizes and kept.
//
// The first step makes the buffers; later ones reuse them by best fit, as pinning costs
// more than a step. Where sizes change from step to step, what fits badly is taken once
// enough is free, so that little more is pinned than a step takes (2.2 times it for sizes
// by chance). Only when the cap is reached and sizes have changed, so that requests
// find no room, buffers go that nobody has taken for a while (as_slab_spare). The cap is a share of this machine's memory, except on a simulated
// device that computes nothing: there nothing is touched, and no cap applies but one from
// the settings. A buffer that comes back may still be read or written by a copy: it
// carries the event of the last one, and whoever copies into it next waits for that on
// the device (as_edge_host_reuse), never on the host.
//
// Thread-safety: every function may be called from any thread. No lock is held over a
// CUDA call.

#include <stdbool.h>
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
    uint64_t used; // the slab's: when it was taken last
};

// NULL: out of memory. Nothing is pinned and no file is read before the first take.
struct as_slab *as_slab_create(const struct as_settings *settings);

// Frees all buffers, which must have been given back. The caller has waited for all
// copies and took the events out with as_slab_event().
void as_slab_destroy(struct as_slab *slab);

// -ENOMEM: the cap is reached and no free buffer fits, or the runtime refused.
int as_slab_take(struct as_slab *slab, size_t bytes, struct as_buffer *buffer);
// The same, of what is free already: nothing is pinned.
int as_slab_reuse(struct as_slab *slab, size_t bytes, struct as_buffer *buffer);

// The buffer, which was taken, was freed for good.
void as_slab_forget(struct as_slab *slab, const struct as_buffer *buffer);

// Whether `bytes` more may be pinned now; `alone`: if all else were given back.
bool as_slab_fits(struct as_slab *slab, size_t bytes, bool alone);

void as_slab_give(struct as_slab *slab, const struct as_buffer *buffer);

// Takes a free buffer out of the slab for good, for the caller to free when its event has
// passed. There is one while requests of this step were refused at the cap, and a free
// buffer was taken in none of the last AS_SLAB_IDLE_STEPS steps: a loop over fewer kinds of
// steps than that pins nothing twice.
enum { AS_SLAB_IDLE_STEPS = 4 };
bool as_slab_spare(struct as_slab *slab, struct as_buffer *buffer);
bool as_slab_has_spare(struct as_slab *slab);

// A step is over.
void as_slab_step(struct as_slab *slab);

// Takes the event out of any free buffer that has one, for the end. NULL: none is left.
void *as_slab_event(struct as_slab *slab);

struct as_slab_totals {
    uint64_t bytes, peak_bytes;
    uint64_t cap_bytes; // 0 before the first take, UINT64_MAX: none
};

void as_slab_totals(struct as_slab *slab, struct as_slab_totals *totals);

#endif
