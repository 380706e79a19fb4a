// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/ranges.h"

#include <assert.h>
#include <stdlib.h>

static size_t largest_below(const struct sim_range *range)
{
    return range ? range->largest_free : 0;
}

static void update(struct sim_range *range)
{
    size_t largest = range->used ? 0 : range->bytes;

    const size_t left = largest_below(range->left), right = largest_below(range->right);

    if (left > largest)
        largest = left;
    if (right > largest)
        largest = right;
    range->largest_free = largest;
}

// Ranges that start below `start` go left, the others right.
static void split(struct sim_range *root, uintptr_t start, struct sim_range **left,
                  struct sim_range **right)
{
    if (!root) {
        *left = *right = NULL;
    } else if (root->start < start) {
        split(root->right, start, &root->right, right);
        update(root);
        *left = root;
    } else {
        split(root->left, start, left, &root->left);
        update(root);
        *right = root;
    }
}

static struct sim_range *join(struct sim_range *left, struct sim_range *right)
{
    if (!left || !right)
        return left ? left : right;
    if (left->priority > right->priority) {
        left->right = join(left->right, right);
        update(left);
        return left;
    }
    right->left = join(left, right->left);
    update(right);
    return right;
}

static uint32_t next_priority(struct sim_ranges *ranges)
{
    uint32_t x = ranges->seed ? ranges->seed : 2463534242u;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return ranges->seed = x;
}

static struct sim_range *create(struct sim_ranges *ranges, uintptr_t start, size_t bytes,
                                bool used)
{
    struct sim_range *range = calloc(1, sizeof(*range));

    if (!range)
        return NULL;
    range->start = start;
    range->bytes = range->asked_bytes = bytes;
    range->used = used;
    range->priority = next_priority(ranges);
    update(range);
    return range;
}

static void enter(struct sim_ranges *ranges, struct sim_range *range)
{
    struct sim_range *left, *right;

    split(ranges->root, range->start, &left, &right);
    ranges->root = join(join(left, range), right);
}

static void take_out(struct sim_ranges *ranges, struct sim_range *range)
{
    struct sim_range *left, *middle, *right;

    split(ranges->root, range->start, &left, &right);
    split(right, range->start + 1, &middle, &right);
    assert(middle == range);
    ranges->root = join(left, right);
}

// The last range that starts at or below the address.
static struct sim_range *floor_of(const struct sim_ranges *ranges, uintptr_t address)
{
    struct sim_range *best = NULL;

    for (struct sim_range *at = ranges->root; at;) {
        if (at->start <= address) {
            best = at;
            at = at->right;
        } else {
            at = at->left;
        }
    }
    return best;
}

// Updates the sums on the way from the root to `start`.
static void refresh(struct sim_range *root, uintptr_t start)
{
    if (!root)
        return;
    if (start < root->start)
        refresh(root->left, start);
    else if (start > root->start)
        refresh(root->right, start);
    update(root);
}

static struct sim_range *first_fit(struct sim_range *root, size_t bytes)
{
    while (root && root->largest_free >= bytes) {
        if (largest_below(root->left) >= bytes)
            root = root->left;
        else if (!root->used && root->bytes >= bytes)
            return root;
        else
            root = root->right;
    }
    return NULL;
}

bool sim_ranges_add_free(struct sim_ranges *ranges, uintptr_t start, size_t bytes)
{
    struct sim_range *range = create(ranges, start, bytes, false);

    if (!range)
        return false;
    enter(ranges, range);
    return true;
}

struct sim_range *sim_ranges_take(struct sim_ranges *ranges, size_t bytes)
{
    struct sim_range *range = first_fit(ranges->root, bytes);

    if (!range)
        return NULL;
    if (range->bytes > bytes) {
        struct sim_range *rest =
            create(ranges, range->start + bytes, range->bytes - bytes, false);

        if (!rest)
            return NULL;
        range->bytes = bytes;
        refresh(ranges->root, range->start);
        enter(ranges, rest);
    }
    range->used = true;
    range->asked_bytes = bytes;
    refresh(ranges->root, range->start);
    ranges->used_bytes += bytes;
    return range;
}

void sim_ranges_give(struct sim_ranges *ranges, struct sim_range *range)
{
    struct sim_range *before = floor_of(ranges, range->start - 1);
    struct sim_range *after = floor_of(ranges, range->start + range->bytes);

    ranges->used_bytes -= range->bytes;
    range->used = false;
    if (after != range && !after->used && after->start == range->start + range->bytes) {
        take_out(ranges, after);
        range->bytes += after->bytes;
        free(after);
    }
    if (before && !before->used && before->start + before->bytes == range->start) {
        take_out(ranges, range);
        before->bytes += range->bytes;
        free(range);
        range = before;
    }
    refresh(ranges->root, range->start);
}

struct sim_range *sim_ranges_insert(struct sim_ranges *ranges, uintptr_t start,
                                    size_t bytes)
{
    const struct sim_range *below = floor_of(ranges, start + bytes - 1);

    if (below && below->start + below->bytes > start)
        return NULL;

    struct sim_range *range = create(ranges, start, bytes, true);

    if (!range)
        return NULL;
    enter(ranges, range);
    ranges->used_bytes += bytes;
    return range;
}

void sim_ranges_remove(struct sim_ranges *ranges, struct sim_range *range)
{
    take_out(ranges, range);
    ranges->used_bytes -= range->bytes;
    free(range);
}

struct sim_range *sim_ranges_find(const struct sim_ranges *ranges, uintptr_t address)
{
    struct sim_range *range = floor_of(ranges, address);

    if (!range || !range->used || address - range->start >= range->bytes)
        return NULL;
    return range;
}

struct sim_range *sim_ranges_from(const struct sim_ranges *ranges, uintptr_t address)
{
    struct sim_range *best = NULL;

    for (struct sim_range *at = ranges->root; at;) {
        if (address < at->start + at->bytes) {
            best = at;
            at = at->left;
        } else {
            at = at->right;
        }
    }
    return best;
}
