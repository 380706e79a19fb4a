// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_DIGEST_H
#define AS_TRACK_DIGEST_H

// XXH64 with seed 0 (the public xxHash specification), fed piece by piece: equal bytes
// give equal digests however they were cut.
//
// Thread-safety: a digest belongs to one thread at a time.

#include <stddef.h>
#include <stdint.h>

struct as_digest {
    uint64_t lanes[4];
    uint64_t total_bytes;
    unsigned char rest[32]; // total_bytes % 32 of them wait for more
};

void as_digest_start(struct as_digest *digest);
void as_digest_add(struct as_digest *digest, const void *data, size_t bytes);
uint64_t as_digest_value(const struct as_digest *digest);

#endif
