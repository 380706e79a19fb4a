// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_PAGER_H
#define AS_PAGER_PAGER_H

// Activations as a write-back cache: pages, the two copy lanes and pinned memory.
//
// A page's life: resident (saved, copy out queued on the out lane) -> clean (both
// copies) -> host only (let go) -> copying in -> resident again, as often as it is
// needed; it ends with its last drop. From the second step on pages come in ahead of their
// need (fetch.c). When pinned memory is full, pages go on to a file, by threads
// of ours, and are read ahead of a backward (spill.c, jobs.c, disk.c). Nothing here creates a context, and the host waits for a stream only after a
// call of ours failed, for a page that a captured stream needs, or in the disk's threads;
// who saves waits for the disk when it is slower than the program. The device is synchronised at one point at most: the end of a step
// that gives pinned memory back, because sizes changed and no room is left. Every edge
// between streams is an event (edges.c has one function per edge):
//
//   copy out waits for the producer              (as_edge_produced)
//   a pinned buffer's next use waits for the copy that used it last (as_edge_host_reuse)
//   letting go waits, on the allocation's stream, for the copy out  (as_edge_reuse)
//   and for every other stream that has work                        (as_edge_readers)
//   copy in waits for the new memory             (as_edge_allocated)
//   and for the copy out of the same page        (as_edge_filled)
//   the consumer waits for the copy in           (as_edge_arrived)
//   and who frees what came ahead in vain, too   (as_edge_reuse)
//
// What is ordered when a page is let go. Plain PyTorch keeps a saved tensor until its
// backward, so a stream may read it in the meantime, unordered with the memory's next
// use, if it is done by then. Let go at the exit of its block the memory is used again at
// once. So two things hold:
//
// - Only the last holder lets go (the verb holders()). While somebody else has the storage
//   our reference stays; it is looked at again at each edge of a block and before
//   backward. Who still had it then is expected to the next time, and nothing is copied
//   until they do not (held.h). Who drops a tensor that a stream still reads relied on the graph's
//   reference, and still may. What they hold beyond that is the same memory as without us.
//   If they gave the storage other memory meanwhile (resize_), it stays as it is for good:
//   the copy out was ordered with the memory that it had.
// - The memory's next use, on the stream that it was allocated on, waits for what every
//   stream of the device has in flight, whether or not it was named to us: nobody holds
//   the storage any more, so work that reads it has been queued. Known are the legacy
//   stream, the streams that the runtime's calls made, and those that were named or
//   allocated on since; of ended ones an event is left.
//
// It costs two calls a known stream (is it captured, is it idle) at a block's exit, and a
// record and a wait where it is not idle; not measured on a card yet. PyTorch makes 128
// streams with the first one that a script asks for; a script that asks for none has none.
// On the device, a stream that runs ahead of the blocks is caught up with at each exit.
//
// Not ordered: work that reaches the memory by an address alone, after the last reference
// to its storage is gone; streams made by the driver's calls that nothing names (those of
// libraries, which order themselves behind the stream that they were called on); kernels
// of another device that read by peer access. And where a framework has no holders(), a
// storage that others hold when we let go: they free it, and their order is theirs.
//
// Thread-safety: every function may be called from any thread. Verbs are called with no
// lock held, on the calling thread.

#include <stdint.h>

#include <actswap/actswap.h>

#include "cuda/runtime.h"
#include "pager/disk.h"

struct as_ledger;
struct as_pager;
struct as_settings;

// The pager makes its lanes on the device of the first page. NULL: out of memory.
struct as_pager *as_pager_create(const struct as_settings *settings,
                                 struct as_ledger *ledger);

// Drains the lanes and gives back all pinned memory. Pages must be dropped before.
void as_pager_destroy(struct as_pager *pager);

// NULL verbs: detached. Later saves answer ACTSWAP_KEPT_DETACHED.
void as_pager_attach(struct as_pager *pager, const struct actswap_verbs *verbs,
                     void *context);

// As actswap_save, actswap_need and actswap_drop. A page belongs to the innermost block
// that its thread is in.
int as_pager_save(struct as_pager *pager, const struct actswap_saved *saved,
                  struct actswap_page **page);
int as_pager_need(struct as_pager *pager, struct actswap_page *page, void *stream,
                  struct actswap_resident *out);
void as_pager_drop(struct as_pager *pager, struct actswap_page *page);

// The block edges of one thread. `verdict` is what the plan says of the block at entry
// (of no meaning at exit): KEEP leaves what it saves where it is. At exit the block's
// pages are let go, in the order of their saving, and at the exit of an outermost block
// also those saved outside any block.
void as_pager_block(struct as_pager *pager, enum actswap_edge edge, uint64_t block,
                    enum actswap_verdict verdict, void *stream);

// Forward begin: what is born before now is not an activation; before the first one
// nothing is. Backward begin: pages saved outside any block are let go. Backward end, when
// no other backward runs: pages that a kept graph still holds are let go again.
void as_pager_mark(struct as_pager *pager, enum actswap_moment moment);

// A stream was made on `device`; it is about to be destroyed.
void as_pager_stream_made(struct as_pager *pager, int device, void *stream);
void as_pager_stream_ending(struct as_pager *pager, void *stream);

// In a forked child, where no other function may be called.
void as_pager_forked(struct as_pager *pager);

struct as_pager_totals {
    uint64_t out_bytes, in_bytes;
    uint64_t pinned_bytes, pinned_peak_bytes;
    uint64_t pinned_cap_bytes; // 0: nothing was pinned yet, UINT64_MAX: none
    struct as_disk_totals disk;
    uint64_t pages, pages_made;
    uint64_t let_go; // how often a page was
    uint64_t brought, ahead; // how often one came in, and ahead of its need
    uint64_t stayed_over_bytes; // the most that stayed where the budget was exceeded
    uint64_t held_elsewhere; // pages whose storage others still had at a backward
    uint64_t
        by_host; // copies back that the host waited for, as the device refused a call
    struct as_refused refused[AS_REFUSED_MAX]; // calls of this library
    uint64_t kept[ACTSWAP_KEPT_REASONS], kept_bytes[ACTSWAP_KEPT_REASONS];
};

void as_pager_totals(struct as_pager *pager, struct as_pager_totals *totals);

#endif
