// SPDX-License-Identifier: Apache-2.0
#include "track/place.h"

// Without it uthash ends the user's run when memory is short.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 4 << 20, DEPTH_MAX = 32 };

struct block {
    uint64_t number;
    char *name; // or NULL
    UT_hash_handle hh;
};

struct stack {
    char *frames;
    UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[AS_PLACES], *blocks_by_number; // from 1
static struct stack stacks[AS_PLACES], *stacks_by_frames; // from 1
static uint32_t block_count = 1, stack_count = 1;
static size_t text_bytes_kept;
static __thread uint32_t now __attribute__((tls_model("initial-exec")));
static __thread unsigned depth __attribute__((tls_model("initial-exec")));
static __thread uint32_t outer[DEPTH_MAX] __attribute__((tls_model("initial-exec")));

// Under the lock.
static uint32_t find_block(uint64_t number)
{
    struct block *block;

    HASH_FIND(hh, blocks_by_number, &number, sizeof(number), block);
    if (block)
        return (uint32_t)(block - blocks);
    if (block_count == AS_PLACE_FURTHER)
        return AS_PLACE_FURTHER;
    block = &blocks[block_count];
    block->number = number;
    HASH_ADD(hh, blocks_by_number, number, sizeof(number), block);
    return block->hh.tbl ? block_count++ : AS_PLACE_FURTHER; // no table: no memory
}

uint32_t as_place_of(uint64_t number)
{
    pthread_mutex_lock(&lock);
    const uint32_t block = find_block(number);
    pthread_mutex_unlock(&lock);
    return block;
}

void as_place_name(uint64_t number, const char *name)
{
    char *copy = strdup(name);
    char *old = copy;

    pthread_mutex_lock(&lock);
    const uint32_t block = find_block(number);
    if (block != AS_PLACE_FURTHER && copy) {
        old = blocks[block].name;
        blocks[block].name = copy;
    }
    pthread_mutex_unlock(&lock);
    free(old);
}

void as_place_text(uint32_t block, char *text, size_t text_bytes)
{
    *text = '\0';
    if (!block || block >= AS_PLACES)
        return;
    pthread_mutex_lock(&lock);
    if (block == AS_PLACE_FURTHER)
        snprintf(text, text_bytes, "further blocks");
    else if (blocks[block].name)
        snprintf(text, text_bytes, "%s", blocks[block].name);
    else
        snprintf(text, text_bytes, "block %llu",
                 (unsigned long long)blocks[block].number);
    pthread_mutex_unlock(&lock);
}

uint32_t as_place_now(void)
{
    return now;
}

void as_place_set(uint32_t block)
{
    now = block;
}

void as_place_enter(uint64_t number)
{
    if (depth < DEPTH_MAX)
        outer[depth] = now;
    depth++;
    now = as_place_of(number);
}

void as_place_leave(void)
{
    if (!depth)
        return;
    depth--;
    if (depth < DEPTH_MAX)
        now = outer[depth];
}

// Under the lock: the same frames are not there. Takes `copy` unless it returns
// AS_PLACE_FURTHER.
static uint32_t add_stack(char *copy, size_t length)
{
    struct stack *stack = &stacks[stack_count];

    if (stack_count == AS_PLACE_FURTHER || text_bytes_kept + length > TEXT_MOST)
        return AS_PLACE_FURTHER;
    stack->frames = copy;
    HASH_ADD_KEYPTR(hh, stacks_by_frames, copy, length, stack);
    if (!stack->hh.tbl) { // no memory
        stack->frames = NULL;
        return AS_PLACE_FURTHER;
    }
    text_bytes_kept += length;
    return stack_count++;
}

uint32_t as_place_keep_stack(const char *frames)
{
    char *copy = frames ? strdup(frames) : NULL;
    if (!copy)
        return AS_PLACE_FURTHER;

    const size_t length = strlen(copy);
    struct stack *stack;
    uint32_t place;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, stacks_by_frames, copy, length, stack);
    place = stack ? (uint32_t)(stack - stacks) : add_stack(copy, length);
    if (!stack && place != AS_PLACE_FURTHER)
        copy = NULL;
    pthread_mutex_unlock(&lock);
    free(copy);
    return place;
}

const char *as_place_stack(uint32_t stack)
{
    if (stack == AS_PLACE_FURTHER)
        return "(further call sites)";
    pthread_mutex_lock(&lock);
    const char *frames = stack < stack_count ? stacks[stack].frames : NULL;
    pthread_mutex_unlock(&lock);
    return frames;
}
