// SPDX-License-Identifier: Apache-2.0
#include "track/index.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAVES_FIRST = 16,
    LEAF_FEW = AS_LEAF_ENTRIES / 4, // so few that it may join its neighbour
    SLAB_NODES = 1023,
};

struct as_leaf {
    uint32_t count;
    uintptr_t addresses[AS_LEAF_ENTRIES];
    struct as_node *nodes[AS_LEAF_ENTRIES];
};

struct as_slab_of_nodes {
    _Alignas(sizeof(struct as_node)) struct as_slab_of_nodes *next;
    _Alignas(sizeof(struct as_node)) struct as_node nodes[SLAB_NODES];
};

_Static_assert(sizeof(struct as_node) == 64, "a block is a line of the cache");

void as_index_finish(struct as_index *index)
{
    for (uint32_t i = 0; i < index->count; i++)
        free(index->leaves[i]);
    free(index->leaves);
    free(index->firsts);
    while (index->slabs) {
        struct as_slab_of_nodes *slab = index->slabs;

        index->slabs = slab->next;
        free(slab);
    }
    *index = (struct as_index){0};
}

// --- Memory

static struct as_node *take_node(struct as_index *index)
{
    if (!index->spare) {
        struct as_slab_of_nodes *slab =
            aligned_alloc(sizeof(struct as_node), sizeof(*slab));
        if (!slab)
            return NULL;

        slab->next = index->slabs;
        index->slabs = slab;
        for (uint32_t i = SLAB_NODES; i-- > 0;) {
            slab->nodes[i].spare = index->spare;
            index->spare = &slab->nodes[i];
        }
    }
    struct as_node *node = index->spare;
    index->spare = node->spare;
    return node;
}

static void give_node(struct as_index *index, struct as_node *node)
{
    node->spare = index->spare;
    index->spare = node;
}

static bool reserve_leaf(struct as_index *index)
{
    if (index->count < index->capacity)
        return true;

    const uint32_t capacity = index->capacity ? index->capacity * 2 : LEAVES_FIRST;
    uintptr_t *firsts = realloc(index->firsts, capacity * sizeof(*firsts));
    if (firsts)
        index->firsts = firsts;
    struct as_leaf **leaves = realloc(index->leaves, capacity * sizeof(struct as_leaf *));
    if (leaves)
        index->leaves = leaves;
    if (!firsts || !leaves)
        return false;
    index->capacity = capacity;
    return true;
}

// An empty leaf behind number `at` - 1, or NULL.
static struct as_leaf *insert_leaf(struct as_index *index, uint32_t at)
{
    if (!reserve_leaf(index))
        return NULL;
    struct as_leaf *leaf = malloc(sizeof(*leaf));
    if (!leaf)
        return NULL;

    const uint32_t behind = index->count - at;
    memmove(&index->firsts[at + 1], &index->firsts[at], behind * sizeof(*index->firsts));
    memmove(&index->leaves[at + 1], &index->leaves[at],
            behind * sizeof(struct as_leaf *));
    leaf->count = 0;
    index->leaves[at] = leaf;
    index->count++;
    return leaf;
}

static void remove_leaf(struct as_index *index, uint32_t at)
{
    const uint32_t behind = index->count - at - 1;

    free(index->leaves[at]);
    memmove(&index->firsts[at], &index->firsts[at + 1], behind * sizeof(*index->firsts));
    memmove(&index->leaves[at], &index->leaves[at + 1],
            behind * sizeof(struct as_leaf *));
    index->count--;
}

// --- Search

// How many of the sorted `keys` are not above `key`. Without a branch on what it finds:
// addresses are not to be guessed.
static uint32_t count_up_to(const uintptr_t *keys, uint32_t count, uintptr_t key)
{
    const uintptr_t *base = keys;

    if (!count)
        return 0;
    while (count > 1) {
        const uint32_t half = count / 2;

        base += base[half] <= key ? half : 0;
        count -= half;
    }
    return (uint32_t)(base - keys) + (*base <= key);
}

// The leaf where `address` is, or would be; there is one.
static uint32_t leaf_of(const struct as_index *index, uintptr_t address)
{
    const uint32_t up_to = count_up_to(index->firsts, index->count, address);

    return up_to ? up_to - 1 : 0;
}

// The entry of the last block that does not begin behind `address`; false: none.
static bool last_up_to(const struct as_index *index, uintptr_t address,
                       struct as_cursor *cursor)
{
    if (!index->count)
        return false;

    cursor->leaf = leaf_of(index, address);
    const struct as_leaf *leaf = index->leaves[cursor->leaf];
    cursor->entry = count_up_to(leaf->addresses, leaf->count, address);
    return cursor->entry--;
}

struct as_node *as_index_at(const struct as_index *index, uintptr_t address)
{
    struct as_cursor cursor;
    if (!last_up_to(index, address, &cursor))
        return NULL;

    const struct as_leaf *leaf = index->leaves[cursor.leaf];
    return leaf->addresses[cursor.entry] == address ? leaf->nodes[cursor.entry] : NULL;
}

struct as_node *as_index_find(const struct as_index *index, uintptr_t address)
{
    struct as_cursor cursor;
    if (!last_up_to(index, address, &cursor))
        return NULL;

    struct as_node *node = index->leaves[cursor.leaf]->nodes[cursor.entry];
    return address - node->address < node->bytes ? node : NULL;
}

struct as_cursor as_index_seek(const struct as_index *index, uintptr_t address)
{
    if (!address || !index->count)
        return (struct as_cursor){0};

    const uint32_t at = leaf_of(index, address);
    const struct as_leaf *leaf = index->leaves[at];
    return (struct as_cursor){at, count_up_to(leaf->addresses, leaf->count, address - 1)};
}

struct as_node *as_index_next(const struct as_index *index, struct as_cursor *cursor)
{
    if (cursor->leaf < index->count &&
        cursor->entry == index->leaves[cursor->leaf]->count)
        *cursor = (struct as_cursor){.leaf = cursor->leaf + 1};
    if (cursor->leaf >= index->count)
        return NULL;
    return index->leaves[cursor->leaf]->nodes[cursor->entry++];
}

// --- Change

static void copy_entries(struct as_leaf *to, uint32_t at, const struct as_leaf *from,
                         uint32_t first, uint32_t count)
{
    memmove(&to->addresses[at], &from->addresses[first], count * sizeof(*to->addresses));
    memmove(&to->nodes[at], &from->nodes[first], count * sizeof(struct as_node *));
}

// Makes room in the full leaf `at`; false: no memory. The last leaf, where a rising
// series of addresses goes, is left full.
static bool split(struct as_index *index, uint32_t at, uint32_t entry)
{
    const bool rising = at + 1 == index->count && entry == AS_LEAF_ENTRIES;
    const uint32_t kept = rising ? AS_LEAF_ENTRIES - 1 : AS_LEAF_ENTRIES / 2;
    struct as_leaf *right = insert_leaf(index, at + 1);
    if (!right)
        return false;

    struct as_leaf *left = index->leaves[at];
    right->count = left->count - kept;
    copy_entries(right, 0, left, kept, right->count);
    left->count = kept;
    index->firsts[at + 1] = right->addresses[0];
    return true;
}

// Makes room for the new block; false: no memory.
static bool insert(struct as_index *index, struct as_node *node)
{
    if (!index->count && !insert_leaf(index, 0))
        return false;

    uint32_t at = leaf_of(index, node->address);
    struct as_leaf *leaf = index->leaves[at];
    uint32_t entry = count_up_to(leaf->addresses, leaf->count, node->address);
    if (leaf->count == AS_LEAF_ENTRIES) {
        if (!split(index, at, entry))
            return false;
        at = leaf_of(index, node->address);
        leaf = index->leaves[at];
        entry = count_up_to(leaf->addresses, leaf->count, node->address);
    }
    copy_entries(leaf, entry + 1, leaf, entry, leaf->count - entry);
    leaf->addresses[entry] = node->address;
    leaf->nodes[entry] = node;
    leaf->count++;
    index->firsts[at] = leaf->addresses[0];
    return true;
}

struct as_node *as_index_take(struct as_index *index, uintptr_t address)
{
    struct as_node *node = as_index_at(index, address);
    if (node)
        return node;
    node = take_node(index);
    if (!node)
        return NULL;

    *node = (struct as_node){.address = address};
    if (insert(index, node))
        return node;
    give_node(index, node);
    return NULL;
}

// Two leaves that are nearly empty become one.
static void join(struct as_index *index, uint32_t at)
{
    if (at + 1 >= index->count)
        return;
    struct as_leaf *left = index->leaves[at], *right = index->leaves[at + 1];
    if (left->count + right->count > AS_LEAF_ENTRIES / 2)
        return;

    copy_entries(left, left->count, right, 0, right->count);
    left->count += right->count;
    remove_leaf(index, at + 1);
}

void as_index_remove(struct as_index *index, struct as_node *node)
{
    const uint32_t at = leaf_of(index, node->address);
    struct as_leaf *leaf = index->leaves[at];
    const uint32_t entry = count_up_to(leaf->addresses, leaf->count, node->address);

    copy_entries(leaf, entry - 1, leaf, entry, leaf->count - entry);
    leaf->count--;
    give_node(index, node);
    if (!leaf->count) {
        remove_leaf(index, at);
        return;
    }
    index->firsts[at] = leaf->addresses[0];
    if (leaf->count < LEAF_FEW) {
        join(index, at);
        if (at)
            join(index, at - 1);
    }
}
