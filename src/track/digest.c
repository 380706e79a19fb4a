// SPDX-License-Identifier: Apache-2.0
#include "track/digest.h"

#include <string.h>

static const uint64_t prime1 = UINT64_C(0x9E3779B185EBCA87);
static const uint64_t prime2 = UINT64_C(0xC2B2AE3D27D4EB4F);
static const uint64_t prime3 = UINT64_C(0x165667B19E3779F9);
static const uint64_t prime4 = UINT64_C(0x85EBCA77C2B2AE63);
static const uint64_t prime5 = UINT64_C(0x27D4EB2F165667C5);

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static uint64_t load64(const unsigned char *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static uint64_t mix(uint64_t lane, uint64_t input)
{
    return rotate(lane + input * prime2, 31) * prime1;
}

static void add_stripe(struct as_digest *digest, const unsigned char *stripe)
{
    for (int i = 0; i < 4; i++)
        digest->lanes[i] = mix(digest->lanes[i], load64(stripe + 8 * (size_t)i));
}

void as_digest_start(struct as_digest *digest)
{
    *digest = (struct as_digest){
        .lanes = {prime1 + prime2, prime2, 0, -prime1},
    };
}

void as_digest_add(struct as_digest *digest, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    const size_t waiting = digest->total_bytes % sizeof(digest->rest);

    digest->total_bytes += bytes;
    if (waiting) {
        size_t fill = sizeof(digest->rest) - waiting;

        if (fill > bytes)
            fill = bytes;
        memcpy(digest->rest + waiting, at, fill);
        at += fill;
        bytes -= fill;
        if (waiting + fill < sizeof(digest->rest))
            return;
        add_stripe(digest, digest->rest);
    }
    for (; bytes >= sizeof(digest->rest); bytes -= sizeof(digest->rest)) {
        add_stripe(digest, at);
        at += sizeof(digest->rest);
    }
    if (bytes)
        memcpy(digest->rest, at, bytes);
}

static uint64_t join_lanes(const struct as_digest *digest)
{
    const uint64_t *lanes = digest->lanes;
    uint64_t hash = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) +
                    rotate(lanes[3], 18);

    for (int i = 0; i < 4; i++)
        hash = (hash ^ mix(0, lanes[i])) * prime1 + prime4;
    return hash;
}

static uint64_t add_rest(uint64_t hash, const unsigned char *at, size_t bytes)
{
    for (; bytes >= 8; bytes -= 8, at += 8)
        hash = rotate(hash ^ mix(0, load64(at)), 27) * prime1 + prime4;
    if (bytes >= 4) {
        uint32_t word;

        memcpy(&word, at, sizeof(word));
        hash = rotate(hash ^ word * prime1, 23) * prime2 + prime3;
        bytes -= 4;
        at += 4;
    }
    for (; bytes; bytes--, at++)
        hash = rotate(hash ^ *at * prime5, 11) * prime1;
    return hash;
}

uint64_t as_digest_value(const struct as_digest *digest)
{
    uint64_t hash =
        digest->total_bytes < sizeof(digest->rest) ? prime5 : join_lanes(digest);

    hash = add_rest(hash + digest->total_bytes, digest->rest,
                    digest->total_bytes % sizeof(digest->rest));
    hash = (hash ^ hash >> 33) * prime2;
    hash = (hash ^ hash >> 29) * prime3;
    return hash ^ hash >> 32;
}
