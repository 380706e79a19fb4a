// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_INDEX_H
#define AS_TRACK_INDEX_H

// Live blocks in order of address: one structure finds a block by its first byte and by
// any other. A B+ tree of two levels: sorted leaves of at most AS_LEAF_ENTRIES blocks, and
// above them one sorted array of what each leaf begins with. A search so touches a few
// lines of contiguous memory, where a binary tree would miss the cache at every level.
//
// Blocks stay where they are until they are removed; their memory is then used for others.
//
// Thread-safety: none; the ledger's locks.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AS_LEAF_ENTRIES = 128 };

// All of it is used by an event: one line of the cache.
struct as_node {
    uintptr_t address;
    size_t bytes; // 0: new
    uint64_t generation;
    void *stream;
    uint64_t saved_ns; // when it was saved and not used since, or 0
    struct as_node *spare; // the next one, while not in use
    uint32_t block; // that it was made in: as_place_block()
    uint32_t stack; // that saved it, or 0
    uint8_t category;
    uint8_t phase; // that it was born in
    bool expected : 1; // its free will be ours
    bool inferred : 1; // nobody said its category
    bool held : 1; // a tensor of the script was seen to hold it
};

struct as_leaf;
struct as_slab_of_nodes;

struct as_index {
    uintptr_t *firsts; // the first address of each leaf
    struct as_leaf **leaves;
    uint32_t count, capacity; // of leaves
    struct as_node *spare;
    struct as_slab_of_nodes *slabs;
};

// All zero is an index of nothing; finish leaves it so.
void as_index_finish(struct as_index *index);

// The block that begins at `address`: the one that is there, or a new one with only its
// address filled in. NULL: no memory.
struct as_node *as_index_take(struct as_index *index, uintptr_t address);

// The block that begins at `address`, or NULL.
struct as_node *as_index_at(const struct as_index *index, uintptr_t address);

// The block that holds `address`, or NULL.
struct as_node *as_index_find(const struct as_index *index, uintptr_t address);

void as_index_remove(struct as_index *index, struct as_node *node);

// A position between blocks: one that nothing was added or removed behind. All zero: in
// front of the first.
struct as_cursor {
    uint32_t leaf, entry;
};

// In front of the first block that begins at `address` or behind it.
struct as_cursor as_index_seek(const struct as_index *index, uintptr_t address);

// The block behind the cursor, which moves past it; NULL at the end.
struct as_node *as_index_next(const struct as_index *index, struct as_cursor *cursor);

#endif
