// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_ORDER_STREAM_H
#define AS_SIMCUDA_ORDER_STREAM_H

// Streams and events, as the files beside see them: with the queue's lock held.

#include "simcuda/order/entry.h"
#include "simcuda/order/graph.h"

// How often in a row a query answers that work is not ready: under `late` so often, by a
// seed at most.
enum { SIM_POLLS_MAX = 3 };

// Work behind which so much was submitted is not refused: who asks once in a while (as
// PyTorch's allocator does of blocks that other streams used) sees the device get on.
enum { SIM_POLLS_AGE = 64 };

// A graph's nodes run at paces of their own.
enum { SIM_NODE_LANES = 1 << 16 };

struct sim_stream {
    int device;
    unsigned lane; // its number, of all streams
    const void *handle; // as the program has it; NULL: the legacy one's
    bool legacy;
    bool blocking; // ordered against the legacy stream
    bool destroyed;
    unsigned flags;
    int priority;
    unsigned polls;
    struct sim_entry *tail; // the last submitted, or NULL
    struct sim_stream *next;
    struct sim_capture *capture; // that it is part of, or NULL
    struct sim_stream *next_captured;
    struct sim_nodes before; // what the next captured node comes after
};

// NULL: no such stream.
struct sim_stream *sim_stream_find(cudaStream_t handle);

// Submits; the entry comes after `also_after`, too, which may be NULL. The caller
// releases what is returned. NULL: no memory. The lock may have been let go of meanwhile.
struct sim_entry *sim_stream_submit(struct sim_stream *stream,
                                    const struct sim_task *task,
                                    struct sim_entry *also_after);

// The same, but not handed to the queue yet, which the caller does before it lets go of
// the lock.
struct sim_entry *sim_stream_prepare(struct sim_stream *stream,
                                     const struct sim_task *task,
                                     struct sim_entry *also_after);

// cudaErrorNotReady, or cudaSuccess with the entry done.
cudaError_t sim_entry_poll(struct sim_entry *entry, unsigned *polls);

// What a node of a replay does beside its place: the event's last record is `entry` now,
// and what it last recorded, held for the caller, or NULL.
void sim_event_replayed(cudaEvent_t handle, struct sim_entry *entry);
struct sim_entry *sim_event_recorded(cudaEvent_t handle);

#endif
