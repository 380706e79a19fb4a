// SPDX-License-Identifier: Apache-2.0
#include "framework.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct framework fw;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct storage *cached;

static void *allocate(void *context, int device, size_t bytes, void *stream,
                      void **address)
{
    (void)context;
    assert(device == 0);
    if (fw.on_allocate)
        fw.on_allocate();
    if (fw.allocations_left == 0)
        return NULL;
    if (fw.allocations_left > 0)
        fw.allocations_left--;
    struct storage *storage = storage_create(bytes, stream);
    *address = storage->address;
    return storage;
}

static void release(void *context, void *ref)
{
    (void)context;
    if (fw.on_release)
        fw.on_release();
    storage_drop(ref);
}

void framework_start(void)
{
    fw = (struct framework){
        .settings = {.policy = AS_POLICY_OFFLOAD, .host_memory_bytes = 1 << 30},
        .ledger = as_ledger_create(),
        .verbs = {.size = sizeof(fw.verbs), .allocate = allocate, .release = release},
        .allocations_left = -1,
    };
    fw.pager = as_pager_create(&fw.settings, fw.ledger);
    as_pager_attach(fw.pager, &fw.verbs, NULL);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
}

static size_t holders(void *context, void *ref)
{
    (void)context;
    const struct storage *storage = ref;
    pthread_mutex_lock(&lock);
    int others = storage->references - 1;
    pthread_mutex_unlock(&lock);
    return (size_t)others;
}

void framework_use_disk(uint64_t pinned_bytes)
{
    fw.settings.host_memory_bytes = pinned_bytes;
    fw.settings.disk = "/tmp:1GiB";
    fw.settings.disk_folder_bytes = strlen("/tmp");
    fw.settings.disk_bytes = 1 << 30;
    as_pager_destroy(fw.pager);
    fw.pager = as_pager_create(&fw.settings, fw.ledger);
    as_pager_attach(fw.pager, &fw.verbs, NULL);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
}

static pthread_mutex_t big = PTHREAD_MUTEX_INITIALIZER;
static __thread bool paused;

void framework_lock(void)
{
    pthread_mutex_lock(&big);
}

void framework_unlock(void)
{
    pthread_mutex_unlock(&big);
}

static void *pause_thread(void *context)
{
    assert(!paused && !context);
    paused = true;
    framework_unlock();
    return &big;
}

static void resume_thread(void *context, void *before)
{
    assert(paused && !context && before == &big);
    framework_lock();
    paused = false;
}

void framework_use_lock(void)
{
    fw.verbs.pause = pause_thread;
    fw.verbs.resume = resume_thread;
}

void framework_tell_holders(void)
{
    fw.verbs.holders = holders;
}

static struct storage *take_cached(size_t bytes, void *stream)
{
    for (struct storage **place = &cached; *place; place = &(*place)->next) {
        struct storage *found = *place;
        if (found->bytes == bytes && found->stream == stream) {
            *place = found->next;
            return found;
        }
    }
    return NULL;
}

struct storage *storage_create(size_t bytes, void *stream)
{
    pthread_mutex_lock(&lock);
    struct storage *storage = take_cached(bytes, stream);
    if (!storage) {
        storage = calloc(1, sizeof(*storage));
        *storage = (struct storage){calloc(1, bytes), bytes, stream, 0, NULL};
    }
    storage->references = 1;
    fw.held++;
    as_ledger_add(fw.ledger, 0, storage->address, bytes, 0, stream);
    pthread_mutex_unlock(&lock);
    return storage;
}

struct storage *storage_share(struct storage *storage)
{
    pthread_mutex_lock(&lock);
    storage->references++;
    fw.held++;
    pthread_mutex_unlock(&lock);
    return storage;
}

void storage_drop(struct storage *storage)
{
    pthread_mutex_lock(&lock);
    assert(storage->references > 0);
    fw.held--;
    if (--storage->references == 0) {
        as_ledger_remove(fw.ledger, 0, storage->address, 0, 0);
        storage->next = cached;
        cached = storage;
    }
    pthread_mutex_unlock(&lock);
}

void storage_replace(struct storage *storage)
{
    pthread_mutex_lock(&lock);
    as_ledger_remove(fw.ledger, 0, storage->address, 0, 0);
    storage->address = calloc(1, storage->bytes);
    as_ledger_add(fw.ledger, 0, storage->address, storage->bytes, 0, storage->stream);
    pthread_mutex_unlock(&lock);
}

int save(struct storage *storage, void *stream, struct actswap_page **page)
{
    struct actswap_saved saved = {
        .size = sizeof(saved),
        .address = storage->address,
        .bytes = storage->bytes,
        .used_bytes = storage->bytes,
        .stream = stream,
        .ref = storage_share(storage),
    };
    int reason = as_pager_save(fw.pager, &saved, page);
    if (reason)
        storage_drop(storage);
    return reason;
}

struct actswap_resident need(struct actswap_page *page, void *stream)
{
    struct actswap_resident resident = {.size = sizeof(resident)};
    int err = as_pager_need(fw.pager, page, stream, &resident);
    assert(!err);
    return resident;
}

void enter(uint64_t block)
{
    as_pager_block(fw.pager, ACTSWAP_ENTER, block, ACTSWAP_OFFLOAD, NULL);
}

void leave(uint64_t block, void *stream)
{
    as_pager_block(fw.pager, ACTSWAP_EXIT, block, ACTSWAP_OFFLOAD, stream);
}

struct as_pager_totals totals(void)
{
    struct as_pager_totals now;
    as_pager_totals(fw.pager, &now);
    return now;
}

uint64_t released_bytes(void)
{
    struct as_ledger_totals now;
    as_ledger_totals(fw.ledger, 0, &now);
    return now.released_bytes;
}
