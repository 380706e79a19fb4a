// SPDX-License-Identifier: Apache-2.0
#include "track/site.h"

// Without it uthash ends the user's run when memory is short.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "track/native.h"

enum { TEXT_MOST = 4 << 20, FRAME_TEXT = 256 };

struct native {
    uint64_t outer;
    void *frames[AS_NATIVE_FRAMES];
};

struct site {
    char *text; // NULL: of native frames, not yet asked for
    struct native *native; // or NULL
    unsigned count; // of its frames
    UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site sites[AS_PLACES]; // from 1
static struct site *by_text, *by_frames;
static uint32_t site_count = 1;
static size_t bytes_kept;

// Under the lock: the next site has room for so many bytes more.
static struct site *next_site(size_t bytes)
{
    if (site_count == AS_PLACE_FURTHER || bytes_kept + bytes > TEXT_MOST)
        return NULL;
    return &sites[site_count];
}

// Under the lock: its table took it, or there was no memory for that.
static uint32_t settle(struct site *site, size_t bytes)
{
    if (!site->hh.tbl) {
        *site = (struct site){0};
        return AS_PLACE_FURTHER;
    }
    bytes_kept += bytes;
    return site_count++;
}

// Under the lock: the same frames are not there. Takes `copy` unless it returns
// AS_PLACE_FURTHER.
static uint32_t add_text(char *copy, size_t length)
{
    struct site *site = next_site(length);

    if (!site)
        return AS_PLACE_FURTHER;
    site->text = copy;
    HASH_ADD_KEYPTR(hh, by_text, copy, length, site);
    return settle(site, length);
}

uint32_t as_site_keep(const char *frames)
{
    char *copy = frames ? strdup(frames) : NULL;
    if (!copy)
        return AS_PLACE_FURTHER;

    const size_t length = strlen(copy);
    struct site *site;
    uint32_t index;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, by_text, copy, length, site);
    index = site ? (uint32_t)(site - sites) : add_text(copy, length);
    if (!site && index != AS_PLACE_FURTHER)
        copy = NULL;
    pthread_mutex_unlock(&lock);
    free(copy);
    return index;
}

// Under the lock, as add_text().
static uint32_t add_native(const struct native *key, unsigned count, size_t bytes)
{
    struct site *site = next_site(bytes);
    struct native *copy = site ? malloc(sizeof(*copy)) : NULL;

    if (!copy)
        return AS_PLACE_FURTHER;
    *copy = *key;
    site->native = copy;
    site->count = count;
    HASH_ADD_KEYPTR(hh, by_frames, copy, bytes, site);
    const uint32_t index = settle(site, bytes);
    if (index == AS_PLACE_FURTHER)
        free(copy);
    return index;
}

uint32_t as_site_keep_native(uint32_t outer, void *const frames[], unsigned count)
{
    struct native key = {.outer = outer};
    struct site *site;

    if (!count || outer == AS_PLACE_FURTHER)
        return outer;
    count = count < AS_NATIVE_FRAMES ? count : AS_NATIVE_FRAMES;
    memcpy(key.frames, frames, count * sizeof(*frames));
    const size_t bytes = offsetof(struct native, frames) + count * sizeof(*frames);
    pthread_mutex_lock(&lock);
    // The analyzer takes the single bytes of a struct for garbage.
    HASH_FIND(hh, by_frames, &key, bytes, site); // NOLINT(clang-analyzer-core.*)
    const uint32_t index =
        site ? (uint32_t)(site - sites) : add_native(&key, count, bytes);
    pthread_mutex_unlock(&lock);
    return index;
}

// The text of native frames. The caller frees it; NULL: no memory.
static char *name_frames(const struct native *native, unsigned count)
{
    const char *outer = native->outer ? as_site_text((uint32_t)native->outer) : NULL;
    const size_t room =
        (outer ? strlen(outer) : 0) + (size_t)count * (FRAME_TEXT + 1) + 1;
    char *text = malloc(room);
    size_t used = 0;

    if (!text)
        return NULL;
    *text = '\0';
    if (outer)
        used = (size_t)snprintf(text, room, "%s", outer);
    for (unsigned i = count; i-- > 0;) {
        char frame[FRAME_TEXT];

        if (!as_native_text(native->frames[i], frame, sizeof(frame)))
            continue;
        used +=
            (size_t)snprintf(text + used, room - used, "%s%s", used ? "\n" : "", frame);
    }
    return text;
}

const char *as_site_text(uint32_t site)
{
    if (site == AS_PLACE_FURTHER)
        return "(further call sites)";
    if (!site || site > AS_PLACE_FURTHER)
        return NULL;
    pthread_mutex_lock(&lock);
    const char *text = sites[site].text;
    const struct native *native = sites[site].native;
    const unsigned count = sites[site].count;
    pthread_mutex_unlock(&lock);
    if (text || !native)
        return text;

    char *named = name_frames(native, count);
    pthread_mutex_lock(&lock);
    if (!sites[site].text) {
        sites[site].text = named;
        named = NULL;
    }
    text = sites[site].text;
    pthread_mutex_unlock(&lock);
    free(named);
    return text;
}
