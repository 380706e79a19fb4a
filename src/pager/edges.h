// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_EDGES_H
#define AS_PAGER_EDGES_H

// The order between streams that moving a page needs, one function an edge. Each makes
// later work on one stream wait for earlier work on another, on the device; the host
// never waits. Without any one of them numbers go wrong once in a while on a card, and
// every time under simcuda's `late` or `early`.
//
// All return a cudaError_t and want the lane's device to be current.

struct as_lane;

// The copy out waits for what `producer` has been given so far.
int as_edge_produced(struct as_lane *lane, void *producer);

// The copy into a pinned buffer waits for the last copy that used the buffer.
int as_edge_host_reuse(struct as_lane *lane, void *used);

// The stream that gets the device memory again waits for the copy out of it.
int as_edge_reuse(void *owner, void *copied);

// It also waits for another compute stream, which may still read the memory: freeing it
// now is earlier than the framework would have.
int as_edge_readers(struct as_lane *lane, void *owner, void *reader);

// The copy in waits until `owner` is done with whatever the new memory was before.
int as_edge_allocated(struct as_lane *lane, void *owner);

// The copy in waits for the copy out of the same page, which fills the buffer.
int as_edge_filled(struct as_lane *lane, void *copied);

// The consumer waits for the copy in.
int as_edge_arrived(void *consumer, void *arrived);

#endif
