// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_ORDER_QUEUE_H
#define AS_SIMCUDA_ORDER_QUEUE_H

// The queue: all work of all streams, run one at a time in an order that the program's
// own synchronisation allows.
//
// Work, event records and waits are entries. An entry runs after the one before it on
// its stream, after the records that the stream was told to wait for, and, by the rules
// of the legacy default stream, after other streams' entries. `early` runs an entry as
// soon as those have run, before the submission returns; `late` runs nothing until a
// synchronisation needs it, and then only what that needs. So under `late` what no
// edge orders is seen to be late, and a missing edge gives wrong numbers every time. By a
// seed any entry whose edges allow it may run at any call (schedule.h).
//
// Streams and events are named by the handles that CUDA programs hold; a handle that
// was destroyed, or never was one, is cudaErrorInvalidResourceHandle. NULL,
// cudaStreamLegacy and cudaStreamPerThread are those of the current device.
//
// Time is virtual, and the same in every order (timeline.h).
//
// Thread-safety: every function may be called from any thread, but not by an entry, which
// gets cudaErrorNotPermitted. No lock is held while an entry runs.

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "simcuda/order/timeline.h"

struct sim_access;

// What work reads and writes. Where nobody's work leaves values (SIM_AUTO), that is the
// accesses that write.
struct sim_lost {
    const struct sim_access *accesses;
    size_t count;
    bool all; // anywhere on any device
};

// What a copy moves or a memset fills, for traces: the places are enum sim_place.
struct sim_moved {
    size_t bytes;
    int from, to;
};

struct sim_task {
    const char *name;
    void (*run)(void *arg); // NULL: nothing to do but to keep the order
    void (*destroy)(void *arg); // after run; may be NULL. Called if submission fails, too
    void *arg;
    const char *line; // of the program, for the checker (sim_check_line); or NULL
    struct sim_cost cost;
    // May wait for other threads of the program, so no submission waits while it runs.
    bool calls_user;
    // On a stream that is captured it becomes a node of this type, and `run` is called at
    // each replay: `destroy` then comes after the last one.
    enum cudaGraphNodeType type;
    bool uncapturable;
    struct sim_lost lost; // at each replay; read during the submission only
    struct sim_moved moved;
};

cudaError_t sim_queue_submit(cudaStream_t stream, const struct sim_task *task);

// Submits and waits for it.
cudaError_t sim_queue_perform(cudaStream_t stream, const struct sim_task *task);

// A query answers cudaErrorNotReady under `late`, and by a seed perhaps, for unfinished
// work, but only a few times in a row: then it has the work done and succeeds.
cudaError_t sim_queue_synchronize(cudaStream_t handle);
cudaError_t sim_queue_query(cudaStream_t handle);
cudaError_t sim_queue_synchronize_device(int device);
cudaError_t sim_queue_synchronize_all(void);

cudaError_t sim_stream_create(int device, unsigned flags, int priority,
                              cudaStream_t *handle);
// Work that is queued stays queued.
cudaError_t sim_stream_destroy(cudaStream_t handle);
cudaError_t sim_stream_get(cudaStream_t handle, int *device, unsigned *flags,
                           int *priority); // each may be NULL

cudaError_t sim_event_create(int device, unsigned flags, cudaEvent_t *handle);
cudaError_t sim_event_destroy(cudaEvent_t handle);
// `external`: on a captured stream a node that records or waits at each replay.
cudaError_t sim_event_record(cudaEvent_t handle, cudaStream_t stream, bool external);
// The stream's later work comes after what the event last recorded, as of this call.
cudaError_t sim_event_wait(cudaEvent_t handle, cudaStream_t stream_handle, bool external);
cudaError_t sim_event_synchronize(cudaEvent_t handle);
cudaError_t sim_event_query(cudaEvent_t handle);
cudaError_t sim_event_elapsed(cudaEvent_t from_handle, cudaEvent_t to_handle,
                              uint64_t *ns);

// --- Captures of streams into graphs

// The thread's answer before, too: whether it may make calls that a capture cannot see.
enum cudaStreamCaptureMode sim_capture_exchange(enum cudaStreamCaptureMode mode);
// Fails, and invalidates captures, where such a call is prohibited now.
cudaError_t sim_capture_unsafe(void);
cudaError_t sim_capture_observe_device(int device);

struct sim_nodes; // order/graph.h

cudaError_t sim_capture_begin(cudaStream_t handle, enum cudaStreamCaptureMode mode);
cudaError_t sim_capture_begin_in(cudaStream_t handle, enum cudaStreamCaptureMode mode,
                                 cudaGraph_t graph, const struct sim_nodes *before);
cudaError_t sim_capture_end(cudaStream_t handle, cudaGraph_t *graph);
cudaError_t sim_capture_update(cudaStream_t handle, const struct sim_nodes *nodes,
                               bool replace);
// Fails for what cannot be captured.
cudaError_t sim_capture_refuse_on(cudaStream_t handle);
bool sim_stream_is_captured(cudaStream_t handle);

// All but the status only while it is active. The nodes are good until the stream's next
// call.
struct sim_capture_info {
    enum cudaStreamCaptureStatus status;
    uint64_t id;
    cudaGraph_t graph;
    cudaGraphNode_t *before;
    size_t count;
};

cudaError_t sim_capture_info(cudaStream_t handle, struct sim_capture_info *info);

// --- Graphs made ready to run

cudaError_t sim_exec_create(cudaGraph_t graph, unsigned long long flags,
                            cudaGraphExec_t *handle);
// cudaErrorGraphExecUpdateFailure: the graph has other nodes or edges.
cudaError_t sim_exec_update(cudaGraphExec_t handle, cudaGraph_t graph,
                            enum cudaGraphExecUpdateResult *result);
cudaError_t sim_exec_destroy(cudaGraphExec_t handle);
cudaError_t sim_exec_get(cudaGraphExec_t handle, unsigned *id, unsigned long long *flags);
// Queues all its work behind the stream's and behind its own last launch. On a captured
// stream it becomes a node.
cudaError_t sim_exec_launch(cudaGraphExec_t handle, cudaStream_t stream);

#endif
