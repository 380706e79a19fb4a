// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_TREE_H
#define AS_TRACK_TREE_H

// Live blocks in treaps ordered by address: one structure finds a block by its first
// byte and by any other. Nodes lie in one array and name each other by index, 0 being
// none, so that an event costs no allocation of its own and a walk over all is one over
// an array.
//
// Thread-safety: none; the ledger's lock.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct as_node {
    uintptr_t address;
    size_t bytes; // 0: not in use
    uint64_t generation;
    void *stream;
    uint64_t saved_ns; // when it was saved and not used since, or 0
    uint32_t left, right;
    uint32_t priority;
    uint32_t block; // that it was made in: as_place_block()
    uint32_t stack; // that saved it, or 0
    uint8_t device;
    uint8_t category;
    uint8_t phase; // that it was born in
    bool expected : 1; // its free will be ours
    bool inferred : 1; // nobody said its category
    bool held : 1; // a tensor of the script was seen to hold it
};

struct as_tree {
    struct as_node *nodes;
    uint32_t count, capacity; // count includes the unused node 0
    uint32_t spare; // list of nodes given back, through `left`
    uint32_t random;
};

void as_tree_init(struct as_tree *tree);
void as_tree_finish(struct as_tree *tree);
void as_tree_clear(struct as_tree *tree);

// A node that holds nothing yet. 0: no memory.
uint32_t as_tree_take(struct as_tree *tree);
void as_tree_give(struct as_tree *tree, uint32_t index);

// Adds a node whose address is filled in to the treap below `root`.
void as_tree_insert(struct as_tree *tree, uint32_t *root, uint32_t index);

// The link that leads to the block beginning at `address`, or to 0.
uint32_t *as_tree_link(struct as_tree *tree, uint32_t *root, uintptr_t address);
void as_tree_unlink(struct as_tree *tree, uint32_t *link);

// The block that holds `address`, or NULL.
struct as_node *as_tree_find(struct as_tree *tree, uint32_t root, uintptr_t address);

// The first block that begins at `address` or behind it, or NULL.
struct as_node *as_tree_next(struct as_tree *tree, uint32_t root, uintptr_t address);

#endif
