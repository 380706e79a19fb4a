// SPDX-License-Identifier: Apache-2.0
#include "track/physical.h"

// Without it uthash ends the user's run when memory is short.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

// Nothing is mapped in smaller parts.
#define GRANULARITY ((uint64_t)2 << 20)

struct piece {
    uint64_t handle, born;
    unsigned holds, maps;
    UT_hash_handle hh; // while it is held
};

struct mapping {
    uint64_t address, born;
    size_t bytes;
    struct piece *piece;
    UT_hash_handle hh;
};

struct as_physical {
    pthread_mutex_t lock;
    uint64_t stamp; // of the youngest
    struct piece *held; // by handle
    struct mapping *mappings; // by address
};

struct as_physical *as_physical_create(void)
{
    struct as_physical *physical = calloc(1, sizeof(*physical));

    if (physical)
        pthread_mutex_init(&physical->lock, NULL);
    return physical;
}

// --- With the lock held

static void unhold(struct as_physical *physical, struct piece *piece)
{
    HASH_DEL(physical->held, piece);
    piece->holds = 0;
}

// The piece if that was its last use, or NULL.
static struct piece *unmap(struct as_physical *physical, struct mapping *mapping)
{
    struct piece *const piece = mapping->piece;

    HASH_DEL(physical->mappings, mapping);
    free(mapping);
    return --piece->maps == 0 && !piece->holds ? piece : NULL;
}

void as_physical_destroy(struct as_physical *physical)
{
    if (!physical)
        return;
    struct piece *piece = physical->held, *next_piece;
    struct mapping *mapping = physical->mappings, *next;

    HASH_CLEAR(hh, physical->held);
    HASH_CLEAR(hh, physical->mappings);
    for (; piece; piece = next_piece) {
        next_piece = piece->hh.next;
        piece->holds = 0;
        if (!piece->maps)
            free(piece);
    }
    for (; mapping; mapping = next) {
        next = mapping->hh.next;
        if (--mapping->piece->maps == 0)
            free(mapping->piece);
        free(mapping);
    }
    pthread_mutex_destroy(&physical->lock);
    free(physical);
}

uint64_t as_physical_stamp(const struct as_physical *physical)
{
    return __atomic_load_n(&physical->stamp, __ATOMIC_ACQUIRE);
}

static uint64_t next_stamp(struct as_physical *physical)
{
    return __atomic_add_fetch(&physical->stamp, 1, __ATOMIC_RELEASE);
}

static struct piece *find(struct as_physical *physical, uint64_t handle)
{
    struct piece *piece;

    HASH_FIND(hh, physical->held, &handle, sizeof(handle), piece);
    return piece;
}

static struct mapping *find_mapping(struct as_physical *physical, uint64_t address)
{
    struct mapping *mapping;

    HASH_FIND(hh, physical->mappings, &address, sizeof(address), mapping);
    return mapping;
}

static bool hold(struct as_physical *physical, struct piece *piece, uint64_t handle)
{
    piece->handle = handle;
    HASH_ADD(hh, physical->held, handle, sizeof(piece->handle), piece);
    piece->holds = piece->hh.tbl != NULL; // how uthash says that it had no memory
    return piece->hh.tbl;
}

// Nobody knows the piece any more.
static void tell(struct piece *piece, const struct as_physical_sink *sink)
{
    if (!piece)
        return;
    sink->gone(sink->context, piece);
    free(piece);
}

const void *as_physical_add(struct as_physical *physical, uint64_t handle,
                            const struct as_physical_sink *sink)
{
    struct piece *piece = calloc(1, sizeof(*piece));

    if (!piece)
        return NULL;
    pthread_mutex_lock(&physical->lock);
    struct piece *before = find(physical, handle);
    if (before) // its last release is not told yet
        unhold(physical, before);
    if (before && before->maps)
        before = NULL;
    piece->born = next_stamp(physical);
    if (!hold(physical, piece, handle)) {
        free(piece);
        piece = NULL;
    }
    pthread_mutex_unlock(&physical->lock);
    tell(before, sink);
    return piece;
}

void as_physical_retain(struct as_physical *physical, uint64_t handle, uint64_t address)
{
    pthread_mutex_lock(&physical->lock);
    struct mapping *mapping = physical->mappings;
    struct piece *const piece = find(physical, handle);

    if (piece)
        piece->holds++;
    while (!piece && mapping && address - mapping->address >= mapping->bytes)
        mapping = mapping->hh.next;
    // What another value holds stays known by that one.
    if (!piece && mapping && !mapping->piece->holds)
        hold(physical, mapping->piece, handle);
    pthread_mutex_unlock(&physical->lock);
}

void as_physical_release(struct as_physical *physical, uint64_t handle, uint64_t stamp,
                         const struct as_physical_sink *sink)
{
    pthread_mutex_lock(&physical->lock);
    struct piece *piece = find(physical, handle);
    if (piece && piece->born > stamp)
        piece = NULL;
    if (piece && --piece->holds == 0)
        unhold(physical, piece);
    const bool gone = piece && !piece->holds && !piece->maps;
    pthread_mutex_unlock(&physical->lock);
    tell(gone ? piece : NULL, sink);
}

void as_physical_map(struct as_physical *physical, uint64_t address, size_t bytes,
                     uint64_t handle, const struct as_physical_sink *sink)
{
    struct mapping *mapping = calloc(1, sizeof(*mapping));
    struct piece *before = NULL;

    if (!mapping)
        return;
    pthread_mutex_lock(&physical->lock);
    struct mapping *const older = find_mapping(physical, address);
    if (older) // that it is unmapped is not told yet
        before = unmap(physical, older);
    mapping->address = address;
    mapping->bytes = bytes;
    mapping->born = next_stamp(physical);
    mapping->piece = find(physical, handle);
    if (mapping->piece)
        HASH_ADD(hh, physical->mappings, address, sizeof(mapping->address), mapping);
    if (mapping->hh.tbl)
        mapping->piece->maps++;
    else
        free(mapping);
    pthread_mutex_unlock(&physical->lock);
    tell(before, sink);
}

void as_physical_unmap(struct as_physical *physical, uint64_t address, size_t bytes,
                       uint64_t stamp, const struct as_physical_sink *sink)
{
    for (uint64_t at = address; at - address < bytes;) {
        struct piece *gone = NULL;

        pthread_mutex_lock(&physical->lock);
        struct mapping *const mapping = find_mapping(physical, at);
        at += mapping ? mapping->bytes : GRANULARITY;
        if (mapping && mapping->born <= stamp)
            gone = unmap(physical, mapping);
        pthread_mutex_unlock(&physical->lock);
        tell(gone, sink);
    }
}
