// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_ORDER_CAPTURE_H
#define AS_SIMCUDA_ORDER_CAPTURE_H

// Captures: what is submitted to a stream becomes nodes of a graph. Which calls are
// prohibited meanwhile is the chapter "Stream capture" of NVIDIA's programming guide;
// one that is made all the same fails and invalidates the capture.
//
// Thread-safety: with the queue's lock held, but for what says otherwise.

#include <pthread.h>

#include "simcuda/order/graph.h"
#include "simcuda/order/stream.h"

struct sim_capture {
    uint64_t id;
    enum cudaStreamCaptureMode mode;
    pthread_t thread; // that began it
    struct sim_graph *graph;
    bool given; // the graph was there before
    bool invalid;
    struct sim_stream *origin, *streams;
    struct sim_capture *next;
};

// What an event recorded in a capture.
struct sim_mark {
    uint64_t id; // of the capture; 0: none
    struct sim_nodes nodes;
};

// --- For what is about to use a stream. Other than cudaSuccess: fail with that.

// Work is submitted to it.
cudaError_t sim_capture_admit(const struct sim_stream *stream);
// It is synchronised or queried.
cudaError_t sim_capture_observe(const struct sim_stream *stream);
// An event that was last recorded in a capture is synchronised or queried.
cudaError_t sim_capture_observe_mark(const struct sim_mark *mark);
// Fails for what cannot be captured.
cudaError_t sim_capture_refuse(const struct sim_stream *stream);

// --- On a stream that is captured

// Adds a node and takes over the task. Unless it returns cudaSuccess, the task stays the
// caller's.
cudaError_t sim_capture_add(struct sim_stream *stream, const struct sim_task *task,
                            cudaEvent_t event);
cudaError_t sim_capture_add_child(struct sim_stream *stream,
                                  const struct sim_graph *graph);
cudaError_t sim_capture_record(const struct sim_stream *stream, struct sim_mark *mark);
void sim_mark_finish(struct sim_mark *mark);

// --- Any stream

// It comes after the mark, and so takes part in the mark's capture.
cudaError_t sim_capture_join(struct sim_stream *stream, const struct sim_mark *mark);

#endif
