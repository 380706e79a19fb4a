// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_PHYSICAL_H
#define AS_TRACK_PHYSICAL_H

// Physical device memory of the driver's virtual memory management: it lives as long as a
// handle holds it or an address is mapped to it. A piece is known by a key of its own, as
// the driver may hand out a handle's value again while the memory behind it is mapped.
//
// Told after the driver confirmed; another thread may meanwhile have been given what this
// one gave back. So a call that ends something takes a stamp before the driver is asked, and
// ends only what is older.
//
// Thread-safety: every function may be called from any thread.

#include <stddef.h>
#include <stdint.h>

struct as_physical;

struct as_physical *as_physical_create(void);
void as_physical_destroy(struct as_physical *physical);

// Is told the key of each piece that is gone, without a lock held.
typedef void as_physical_gone(void *context, const void *key);

struct as_physical_sink {
    as_physical_gone *gone;
    void *context;
};

uint64_t as_physical_stamp(const struct as_physical *physical);

// A piece with one hold; its key. NULL: no memory, and then the piece is not known.
const void *as_physical_add(struct as_physical *physical, uint64_t handle,
                            const struct as_physical_sink *sink);

// One more hold of what is mapped at the address, by the same value or by another.
void as_physical_retain(struct as_physical *physical, uint64_t handle, uint64_t address);

// What is not known changes nothing. The stamp is from before the driver was asked.
void as_physical_release(struct as_physical *physical, uint64_t handle, uint64_t stamp,
                         const struct as_physical_sink *sink);
void as_physical_map(struct as_physical *physical, uint64_t address, size_t bytes,
                     uint64_t handle, const struct as_physical_sink *sink);

// All whole mappings in the range.
void as_physical_unmap(struct as_physical *physical, uint64_t address, size_t bytes,
                       uint64_t stamp, const struct as_physical_sink *sink);

#endif
