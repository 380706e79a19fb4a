// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_ORDER_QUEUE_H
#define AS_SIMCUDA_ORDER_QUEUE_H

// The queue: all work of all streams, run by one thread in an order that the program's
// own synchronisation allows.
//
// Work, event records and waits are entries. An entry runs after the one before it on
// its stream, after the records that the stream was told to wait for, and, by the rules
// of the legacy default stream, after other streams' entries. `early` runs an entry as
// soon as those have run, before the submission returns; `late` runs nothing until a
// synchronisation needs it, and then only what that needs. So under `late` what no
// edge orders is seen to be late, and a missing edge gives wrong numbers every time.
//
// Streams and events are named by the handles that CUDA programs hold; a handle that
// was destroyed, or never was one, is cudaErrorInvalidResourceHandle. NULL,
// cudaStreamLegacy and cudaStreamPerThread are those of the current device.
//
// Time is virtual: an entry starts when the last of those before it ends.
//
// Thread-safety: every function may be called from any thread but the queue's own,
// which gets cudaErrorNotPermitted. No lock is held while an entry runs.

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_task {
    const char *name;
    void (*run)(void *arg); // NULL: nothing to do but to keep the order
    void (*destroy)(void *arg); // after run; may be NULL. Called if submission fails, too
    void *arg;
    uint64_t cost_ns;
    // May wait for other threads of the program, so no submission waits while it runs.
    bool calls_user;
};

cudaError_t sim_queue_submit(cudaStream_t stream, const struct sim_task *task);

// Submits and waits for it.
cudaError_t sim_queue_perform(cudaStream_t stream, const struct sim_task *task);

// A query answers cudaErrorNotReady under `late` for unfinished work, but only a few
// times in a row: then it has the work done and succeeds.
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
cudaError_t sim_event_record(cudaEvent_t handle, cudaStream_t stream);
// The stream's later work comes after what the event last recorded, as of this call.
cudaError_t sim_event_wait(cudaEvent_t handle, cudaStream_t stream_handle);
cudaError_t sim_event_synchronize(cudaEvent_t handle);
cudaError_t sim_event_query(cudaEvent_t handle);
cudaError_t sim_event_elapsed(cudaEvent_t from_handle, cudaEvent_t to_handle,
                              uint64_t *ns);

#endif
