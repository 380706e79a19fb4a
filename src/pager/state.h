// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_STATE_H
#define AS_PAGER_STATE_H

// What the files of the pager share.
//
// One lock guards everything that changes; it is never held over a CUDA call or a verb.
// A thread may wait for another's CUDA calls (`moved`), but never for another's verb:
// a verb may want a lock that the waiting thread holds, such as Python's. The lock comes
// before those of the ledger and the streams, which call nothing.

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "pager/ahead.h"
#include "pager/course.h"
#include "pager/disk.h"
#include "pager/held.h"
#include "pager/jobs.h"
#include "pager/order.h"
#include "pager/page.h"
#include "pager/pager.h"
#include "pager/slab.h"
#include "pager/streams.h"
#include "track/ledger.h"

struct as_pager {
    pthread_mutex_t lock;
    pthread_cond_t moved; // a page is no longer arriving

    // Fixed.
    const struct as_settings *settings;
    struct as_ledger *ledger;
    struct as_slab *slab;
    struct as_disk *disk;
    struct as_jobs *jobs;
    struct as_streams *streams;

    const struct actswap_verbs *verbs; // NULL: detached
    void *context;
    enum { AS_NOT_ASKED, AS_APART, AS_COHERENT } memories[AS_LEDGER_DEVICES];
    struct as_lane *lanes[AS_LEDGER_DEVICES]; // made with the first page of a device
    struct as_page_table *table;
    struct as_page_list outside; // of any block, still to be let go
    struct as_page_list shared; // to be let go once nobody else holds their storage
    struct as_page_list back; // brought in again
    struct as_page_list put_off; // dropped, but their stream was being captured
    struct as_page_list hosted; // have a host copy, those first that are needed last
    struct as_page_list kept; // stay within the budget: have no copy yet
    struct as_page_list away; // are on the disk alone, first those that went first
    uint64_t forward_generations[AS_LEDGER_DEVICES]; // that the last forward began with
    unsigned backwards; // that run
    unsigned backward_count; // that began
    struct as_course *courses[AS_LEDGER_DEVICES]; // made with the first page of a device
    struct as_order orders[AS_LEDGER_DEVICES];
    struct as_ahead aheads[AS_LEDGER_DEVICES];
    struct as_held helds[AS_LEDGER_DEVICES];
    uint64_t step; // counts those that are over
    uint64_t first_levels[AS_LEDGER_DEVICES]; // before the first forward
    bool begun; // those are known
    bool over; // the budget, while some stay
    unsigned outside_made; // pages, so far
    struct as_pager_totals totals;
};

// --- pager.c

// Queues the copy of a page that has none; the lock is not held.
enum actswap_reason as_pager_copy_out(struct as_pager *pager, struct actswap_page *page);

// The same later than at its save, for a page that had none until then. What cannot be
// copied any more stays on the device, and is counted.
enum actswap_reason as_pager_copy_late(struct as_pager *pager, struct actswap_page *page);

// Whether somebody gave the storage other memory, or none (resize_). What was copied out
// may be anything by then, and what the graph holds is the storage as it is.
bool as_pager_lost_memory(struct as_pager *pager, const struct actswap_page *page);

// It is queued; the lock is held.
void as_pager_went_out(struct as_pager *pager, struct actswap_page *page);
void as_pager_count_kept(struct as_pager *pager, enum actswap_reason reason,
                         size_t bytes);

// --- move.c: copies

// Queue the copy and all edges around it; the page's device is made current meanwhile.
// A cudaError_t; on failure nothing is in flight any more.
int as_move_out(struct actswap_page *page, void *producer);
// `loose`: the bytes, when they are not in the page's buffer.
// `await`: the stream waits for it. Else its owner has to, before it uses or frees it.
int as_move_in(struct actswap_page *page, const void *loose, void *address, void *stream,
               bool await);

// The same when that failed, with the host waiting: nothing is in flight afterwards.
int as_move_by_host(struct actswap_page *page, const void *loose, void *address,
                    void *stream);

// Gives back the copies beside the device's, the buffer's next user to wait for what is in flight.
void as_move_forget(struct as_pager *pager, struct actswap_page *page);

// Unpins a buffer that is the slab's no more, once what is in flight has ended. It may
// wait for the whole device, and is no call for a capture.
void as_move_unpin(struct as_pager *pager, const struct as_buffer *buffer);

// Whether any stream of a device in use is captured.
bool as_pager_captures(struct as_pager *pager);

// --- need.c

// Memory for the page on its device. Calls a verb; the lock is not held.
void *as_need_allocate(struct actswap_page *page, void *owner, void **address);

// The page's bytes are in this memory, or on their way there. The lock is held.
void as_need_install(struct as_pager *pager, struct actswap_page *page, void *ref,
                     void *address, void *owner);

// --- evict.c: the end of device copies

// Lets go of the pages of a list, first to last, and leaves it empty. Those whose storage
// somebody else holds become shared ones.
void as_evict(struct as_pager *pager, struct as_page_list *list);

// Ends a hold, and the page with the last hold or use. The lock is not held.
void as_evict_unhold(struct as_pager *pager, struct actswap_page *page);

// Ends the pages whose end was put off, as far as no capture stands against it.
void as_evict_finish(struct as_pager *pager);

#endif
