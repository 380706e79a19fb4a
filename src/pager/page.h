// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_PAGE_H
#define AS_PAGER_PAGE_H

// One saved storage, the table that finds it again, and the lists that pages wait in.
//
// A page has a device copy while `ref` is set, a host copy while `buffer.host` is, and one
// on the disk while `on_disk` is. It lives as long as a save's interest in it (users) or a thread works on it (holds).
//
// Thread-safety: none of its own. Everything here belongs to the pager's lock, except
// what is said to be fixed.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <actswap/actswap.h>

#include "pager/course.h"
#include "pager/disk.h"
#include "pager/slab.h"

struct as_job;
struct as_lane;
struct as_page_links;
struct as_page_list;

// Addresses come back, generations do not.
struct as_page_key {
    const void *address;
    uint64_t generation, version;
    int64_t device;
};

// What a list is for. A page is in one list of each use at most.
enum as_page_use {
    AS_PAGE_WAITS, // to be let go, or for its end
    AS_PAGE_TIER, // where its bytes are when they are not on the device
    AS_PAGE_USES,
};

struct as_page_node {
    struct as_page_list *list;
    struct actswap_page *previous, *next;
};

struct actswap_page {
    // Fixed from the page's making on.
    struct as_page_key key;
    size_t bytes;
    const struct actswap_verbs *verbs;
    void *context;
    struct as_lane *lane;
    uint32_t place, stack; // where it was saved (track/place.h)
    uint64_t saved_ns;

    unsigned users, holds;
    unsigned needs; // how often it was needed
    bool stays; // is not let go
    bool arriving; // a thread queues the copy in: others wait for it
    bool restored; // the device copy came back from the host
    bool early; // it did so ahead of a need, and there was none since
    bool unawaited; // its owner has not waited for that copy
    bool elsewhere; // its storage was found alive after it had been let go

    void *ref, *address, *owner; // the device copy and the stream it was allocated on
    uint64_t since; // clock of the compute streams when it became ours
    uint64_t generation; // of the ledger, likewise
    uint64_t block; // of the ledger: the device copy's memory, 0: not known
    struct as_buffer buffer;
    void *copied, *arrived; // events of the last copy out and in

    void *producer; // the stream that it was saved on
    uint64_t ends; // of streams, by then
    struct as_course_ticket ticket;
    uint32_t number; // in the order of saving, within its step
    uint64_t step;
    unsigned came; // the number of the backward that needed it last, 0: none yet
    bool kept; // within the budget: it has no copy, and is let go when that is exceeded
    bool uncopied; // others are expected to hold it: it has no copy until they do not
    bool leaving; // a thread makes that copy

    bool on_disk; // so that the host copy may go
    bool unwritten; // and will stay so: the disk did not take it
    bool unread; // ahead of its need: that failed once
    bool hollow; // a simulated device did not compute its bytes: there are none to move
    struct as_extent extent;
    struct as_job *job; // between host and disk, under way

    struct as_page_node nodes[AS_PAGE_USES];
    struct as_page_links *links; // of the table
};

struct as_page_list {
    struct actswap_page *first, *last;
    enum as_page_use use;
};

void as_page_append(struct as_page_list *list, struct actswap_page *page);
void as_page_prepend(struct as_page_list *list, struct actswap_page *page);
void as_page_unlink(struct actswap_page *page, enum as_page_use use);

struct as_page_table;

struct as_page_table *as_page_table_create(void);
void as_page_table_destroy(struct as_page_table *table);

// NULL: none. `key` has no padding; every field counts.
struct actswap_page *as_page_table_find(struct as_page_table *table,
                                        const struct as_page_key *key);
// -ENOMEM, or -EEXIST.
int as_page_table_add(struct as_page_table *table, struct actswap_page *page);
void as_page_table_remove(struct as_page_table *table, struct actswap_page *page);

// Calls `visit` for each page, in no order; it must not change the table.
void as_page_table_each(struct as_page_table *table,
                        void (*visit)(struct actswap_page *page, void *context),
                        void *context);
size_t as_page_table_count(const struct as_page_table *table);

#endif
