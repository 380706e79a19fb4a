// SPDX-License-Identifier: Apache-2.0
#ifndef FRAMEWORK_H
#define FRAMEWORK_H

// A framework for the pager's tests: storages with counted references from a caching
// allocator, which hands freed memory to the next taker on the same stream at once, and
// tells a ledger. One device, tests are processes.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <actswap/actswap.h>

#include "core/settings.h"
#include "pager/pager.h"
#include "track/ledger.h"

struct storage {
    unsigned char *address;
    size_t bytes;
    void *stream;
    int references;
    struct storage *next;
};

struct framework {
    struct as_settings settings;
    struct as_ledger *ledger;
    struct as_pager *pager;
    struct actswap_verbs verbs;
    int allocations_left; // -1: any number; 0: the device is full
    int held; // references that are out
    void (*on_allocate)(void); // before the memory is there
    void (*on_release)(void);
};

// The one framework: policy offload, no floor, 1 GiB of pinned memory, attached, forward
// begun.
extern struct framework fw;
void framework_start(void);

// The same with so much pinned memory and 1 GiB of disk below it.
void framework_use_disk(uint64_t pinned_bytes);

// From now on it says who holds a storage.
void framework_tell_holders(void);

// From now on threads that call the pager have to hold this lock, which the pager lets go
// of while it waits for the disk.
void framework_lock(void);
void framework_unlock(void);
void framework_use_lock(void);

struct storage *storage_create(size_t bytes, void *stream);
struct storage *storage_share(struct storage *storage);
void storage_drop(struct storage *storage);

// Gives the storage other memory, as resizing it to nothing and back does.
void storage_replace(struct storage *storage);

// Saves the whole storage with a reference of its own. Returns what as_pager_save() does;
// a reference that was not taken is dropped.
int save(struct storage *storage, void *stream, struct actswap_page **page);

// Needs the page on the stream; the test fails if that fails.
struct actswap_resident need(struct actswap_page *page, void *stream);

void enter(uint64_t block);
void leave(uint64_t block, void *stream);

struct as_pager_totals totals(void);
uint64_t released_bytes(void);

#endif
