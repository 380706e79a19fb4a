// SPDX-License-Identifier: Apache-2.0
#include "track/tree.h"

#include <stdlib.h>

enum { NODES_FIRST = 1024 };

void as_tree_init(struct as_tree *tree)
{
    *tree = (struct as_tree){.count = 1, .random = 2463534242};
}

void as_tree_finish(struct as_tree *tree)
{
    free(tree->nodes);
}

void as_tree_clear(struct as_tree *tree)
{
    tree->count = 1;
    tree->spare = 0;
}

uint32_t as_tree_take(struct as_tree *tree)
{
    const uint32_t spare = tree->spare;
    if (spare) {
        tree->spare = tree->nodes[spare].left;
        return spare;
    }
    if (tree->count >= tree->capacity) {
        const uint32_t capacity = tree->capacity ? tree->capacity * 2 : NODES_FIRST;
        struct as_node *nodes = realloc(tree->nodes, capacity * sizeof(*nodes));

        if (!nodes)
            return 0;
        tree->nodes = nodes;
        tree->capacity = capacity;
    }
    return tree->count++;
}

void as_tree_give(struct as_tree *tree, uint32_t index)
{
    tree->nodes[index].bytes = 0;
    tree->nodes[index].left = tree->spare;
    tree->spare = index;
}

static uint32_t random_priority(struct as_tree *tree)
{
    uint32_t x = tree->random; // Marsaglia's xorshift

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    tree->random = x;
    return x;
}

void as_tree_insert(struct as_tree *tree, uint32_t *root, uint32_t index)
{
    struct as_node *nodes = tree->nodes;
    const uintptr_t address = nodes[index].address;
    uint32_t *link = root;

    nodes[index].priority = random_priority(tree);
    while (*link && nodes[*link].priority >= nodes[index].priority)
        link = address < nodes[*link].address ? &nodes[*link].left : &nodes[*link].right;

    // What was there is split by address below the new node.
    uint32_t at = *link;
    uint32_t *left = &nodes[index].left, *right = &nodes[index].right;
    *link = index;
    while (at) {
        if (nodes[at].address < address) {
            *left = at;
            left = &nodes[at].right;
            at = *left;
        } else {
            *right = at;
            right = &nodes[at].left;
            at = *right;
        }
    }
    *left = *right = 0;
}

uint32_t *as_tree_link(struct as_tree *tree, uint32_t *root, uintptr_t address)
{
    struct as_node *nodes = tree->nodes;
    uint32_t *link = root;

    while (*link && nodes[*link].address != address)
        link = address < nodes[*link].address ? &nodes[*link].left : &nodes[*link].right;
    return link;
}

void as_tree_unlink(struct as_tree *tree, uint32_t *link)
{
    struct as_node *nodes = tree->nodes;
    uint32_t left = nodes[*link].left, right = nodes[*link].right;

    while (left && right) {
        if (nodes[left].priority > nodes[right].priority) {
            *link = left;
            link = &nodes[left].right;
            left = *link;
        } else {
            *link = right;
            link = &nodes[right].left;
            right = *link;
        }
    }
    *link = left ? left : right;
}

struct as_node *as_tree_find(struct as_tree *tree, uint32_t root, uintptr_t address)
{
    struct as_node *nodes = tree->nodes, *below = NULL;

    for (uint32_t at = root; at;) {
        if (nodes[at].address <= address) {
            below = &nodes[at];
            at = nodes[at].right;
        } else {
            at = nodes[at].left;
        }
    }
    return below && address - below->address < below->bytes ? below : NULL;
}

struct as_node *as_tree_next(struct as_tree *tree, uint32_t root, uintptr_t address)
{
    struct as_node *nodes = tree->nodes, *above = NULL;

    for (uint32_t at = root; at;) {
        if (nodes[at].address >= address) {
            above = &nodes[at];
            at = nodes[at].left;
        } else {
            at = nodes[at].right;
        }
    }
    return above;
}
