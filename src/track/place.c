// SPDX-License-Identifier: Apache-2.0
#include "track/place.h"

// Without it uthash ends the user's run when memory is short.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32 };

struct block {
    uint64_t number;
    char *name; // or NULL
    _Atomic uint64_t kinds[AS_PLACE_WORDS]; // hashes of its first words, 0: fewer
    UT_hash_handle hh;
};

struct word {
    const char *text;
    int bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[AS_PLACES], *blocks_by_number; // from 1
static uint32_t block_count = 1;

struct level {
    uint64_t number;
    uint32_t place, outer;
};

static __thread struct {
    uint32_t now;
    unsigned depth, deeper; // levels, and what is entered inside of the last of them
    unsigned again; // 1 + the depth that what is run again begins in, 0: none is
    struct level levels[DEPTH_MAX];
} run __attribute__((tls_model("initial-exec")));

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

// The first word of `name` without its dot, "*" for a number; *rest begins the next one.
// The last word that counts is all that is left.
static struct word first_word(const char *name, bool last, const char **rest)
{
    const size_t bytes = last ? strlen(name) : strcspn(name, ".");
    const bool is_number = bytes && strspn(name, "0123456789") == bytes;

    *rest = name + bytes + (name[bytes] == '.');
    return is_number ? (struct word){"*", 1} : (struct word){name, (int)bytes};
}

// FNV-1a of what the name begins with, one word more each.
static void note_kinds(struct block *block, const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (unsigned n = 0; n < AS_PLACE_WORDS; n++) {
        const bool over = !*name;
        const struct word word = first_word(name, n + 1 == AS_PLACE_WORDS, &name);

        for (int i = 0; i < word.bytes; i++)
            hash = (hash ^ (unsigned char)word.text[i]) * UINT64_C(1099511628211);
        hash = (hash ^ '.') * UINT64_C(1099511628211);
        atomic_store_explicit(&block->kinds[n], over ? 0 : hash | 1,
                              memory_order_relaxed);
    }
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
        note_kinds(&blocks[block], copy);
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
        snprintf(text, text_bytes, "(further modules)");
    else if (blocks[block].name)
        snprintf(text, text_bytes, "%s", blocks[block].name);
    else
        snprintf(text, text_bytes, "block %llu",
                 (unsigned long long)blocks[block].number);
    pthread_mutex_unlock(&lock);
}

unsigned as_place_shared(uint32_t one, uint32_t two)
{
    unsigned n = 0;

    if (one >= AS_PLACES || two >= AS_PLACES)
        return 0;
    for (; n < AS_PLACE_WORDS; n++) {
        const uint64_t kind =
            atomic_load_explicit(&blocks[one].kinds[n], memory_order_relaxed);

        if (!kind ||
            kind != atomic_load_explicit(&blocks[two].kinds[n], memory_order_relaxed))
            break;
    }
    return n;
}

void as_place_kind_text(uint32_t block, unsigned words, char *text, size_t text_bytes)
{
    char name[AS_PLACE_TEXT];
    const char *rest = name;
    size_t used = 0;

    as_place_text(block, name, sizeof(name));
    *text = '\0';
    for (unsigned n = 0; n < words && *rest && used < text_bytes; n++) {
        const struct word word = first_word(rest, n + 1 == AS_PLACE_WORDS, &rest);

        used += (size_t)snprintf(text + used, text_bytes - used, "%s%.*s", n ? "." : "",
                                 word.bytes, word.text);
    }
}

uint32_t as_place_now(void)
{
    return run.now;
}

void as_place_set(uint32_t block)
{
    run.now = block;
}

void as_place_reset(void)
{
    run.now = run.depth ? run.levels[run.depth - 1].place : 0;
}

void as_place_again(bool begins)
{
    run.again = begins ? run.depth + 1 : 0;
    if (begins)
        run.now = 0;
}

void as_place_enter(uint64_t number)
{
    if (run.depth == DEPTH_MAX) {
        run.deeper++;
        return;
    }
    const uint32_t place = as_place_of(number);
    run.levels[run.depth++] = (struct level){number, place, run.now};
    run.now = place;
}

void as_place_leave(uint64_t number)
{
    unsigned at = run.depth;

    if (run.deeper) {
        run.deeper--;
        return;
    }
    while (at && run.levels[at - 1].number != number)
        at--;
    if (!at)
        return;
    run.depth = at - 1;
    if (run.again != at)
        run.now = run.levels[run.depth].outer;
}
