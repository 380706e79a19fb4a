// SPDX-License-Identifier: Apache-2.0
#include "track/place.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2 * AS_PLACES, TEXT_MOST = 4 << 20, DEPTH_MAX = 32 };

struct block {
    uint64_t number;
    char *name; // or NULL
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[AS_PLACES]; // from 1
static uint32_t block_count = 1;
static uint16_t slots[SLOTS]; // of blocks, by number; 0: free
static char *stacks[AS_PLACES]; // from 1
static uint32_t stack_count = 1;
static size_t text_bytes_kept;
static __thread uint32_t now __attribute__((tls_model("initial-exec")));
static __thread unsigned depth __attribute__((tls_model("initial-exec")));
static __thread uint32_t outer[DEPTH_MAX] __attribute__((tls_model("initial-exec")));

// Under the lock. 0: no room.
static uint32_t find_block(uint64_t number)
{
    uint32_t slot = (uint32_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % SLOTS;

    for (; slots[slot]; slot = (slot + 1) % SLOTS) {
        if (blocks[slots[slot]].number == number)
            return slots[slot];
    }
    if (block_count == AS_PLACES)
        return 0;
    blocks[block_count].number = number;
    slots[slot] = (uint16_t)block_count;
    return block_count++;
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
    if (block && copy) {
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
    if (blocks[block].name)
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

// Under the lock. 0: it is not there.
static uint32_t find_stack(const char *frames)
{
    for (uint32_t i = 1; i < stack_count; i++) {
        if (strcmp(stacks[i], frames) == 0)
            return i;
    }
    return 0;
}

uint32_t as_place_keep_stack(const char *frames)
{
    const size_t bytes = strlen(frames) + 1;
    char *copy = NULL;

    pthread_mutex_lock(&lock);
    uint32_t stack = find_stack(frames);
    if (!stack && stack_count < AS_PLACES && text_bytes_kept + bytes <= TEXT_MOST)
        copy = malloc(bytes);
    if (copy) {
        memcpy(copy, frames, bytes);
        text_bytes_kept += bytes;
        stack = stack_count++;
        stacks[stack] = copy;
    }
    pthread_mutex_unlock(&lock);
    return stack;
}

const char *as_place_stack(uint32_t stack)
{
    pthread_mutex_lock(&lock);
    const char *frames = stack < stack_count ? stacks[stack] : NULL;
    pthread_mutex_unlock(&lock);
    return frames;
}
