// SPDX-License-Identifier: Apache-2.0
// What a capture takes in, what it forbids meanwhile, and how it ends.
#include <pthread.h>
#include <stdlib.h>

#include "litmus.h"

static void begin(cudaStream_t stream)
{
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
}

static cudaGraph_t end(cudaStream_t stream)
{
    cudaGraph_t graph = NULL;

    OK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static void expect_end(cudaStream_t stream, cudaError_t error)
{
    cudaGraph_t graph = (cudaGraph_t)(void *)stream;

    EXPECT(cudaStreamEndCapture(stream, &graph), error);
    EXPECT(graph == NULL, true);
    EXPECT(cudaGetLastError(), error);
}

static int status_of(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

    OK(cudaStreamIsCapturing(stream, &status));
    return (int)status;
}

static void launch(cudaGraph_t graph, cudaStream_t stream)
{
    cudaGraphExec_t exec = NULL;

    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecDestroy(exec));
}

static void captured_work_does_not_run(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();

    litmus_set(stream, at, 1);
    begin(stream);
    litmus_add(stream, at, 10);
    EXPECT(status_of(stream), cudaStreamCaptureStatusActive);

    cudaGraph_t graph = end(stream);

    EXPECT(status_of(stream), cudaStreamCaptureStatusNone);
    OK(cudaStreamSynchronize(stream));
    EXPECT(litmus_peek(at), 1);
    launch(graph, stream);
    OK(cudaStreamSynchronize(stream));
    EXPECT(litmus_peek(at), 11);
}

static void a_replay_reads_what_is_there_then(void)
{
    int *from = litmus_device(), *to = litmus_device(), *host = litmus_pinned();
    cudaStream_t stream = litmus_stream();
    cudaGraphExec_t exec = NULL;

    begin(stream);
    OK(cudaMemcpyAsync(from, host, sizeof(int), cudaMemcpyHostToDevice, stream));
    litmus_add(stream, from, 1);
    OK(cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyDeviceToDevice, stream));
    OK(cudaMemsetAsync(from, 0, sizeof(int), stream));
    OK(cudaGraphInstantiate(&exec, end(stream), 0));
    for (int i = 1; i <= 3; i++) {
        *host = i * 10;
        OK(cudaGraphLaunch(exec, stream));
        OK(cudaStreamSynchronize(stream));

        EXPECT(litmus_peek(to), i * 10 + 1);
        EXPECT(litmus_peek(from), 0);
    }
}

static void pageable_copies_are_captured_without_waiting(void)
{
    int *at = litmus_device(), from = 1, to = 0;
    cudaStream_t stream = litmus_stream();
    cudaGraphExec_t exec = NULL;

    begin(stream);
    OK(cudaMemcpyAsync(at, &from, sizeof(int), cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyAsync(&to, at, sizeof(int), cudaMemcpyDeviceToHost, stream));
    OK(cudaGraphInstantiate(&exec, end(stream), 0));
    from = 7;
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));

    EXPECT(to, 7);
}

static void events_fork_and_join_a_capture(void)
{
    int *at = litmus_device(), *left = litmus_device(), *right = litmus_device();
    cudaStream_t stream = litmus_stream(), other = litmus_stream();
    cudaEvent_t fork = litmus_event(), join = litmus_event();
    unsigned long long id = 0, other_id = 1;
    enum cudaStreamCaptureStatus status;

    begin(stream);
    litmus_add(stream, at, 1);
    OK(cudaEventRecord(fork, stream));
    OK(cudaStreamWaitEvent(other, fork, 0));
    OK(cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL));
    OK(cudaStreamGetCaptureInfo(other, &status, &other_id, NULL, NULL, NULL, NULL));
    EXPECT(status, cudaStreamCaptureStatusActive);
    EXPECT(id == other_id, true);
    litmus_move(stream, left, at);
    litmus_move(other, right, at);
    OK(cudaEventRecord(join, other));
    OK(cudaStreamWaitEvent(stream, join, 0));
    litmus_add(stream, right, 100);

    cudaGraph_t graph = end(stream);

    EXPECT(status_of(other), cudaStreamCaptureStatusNone);
    launch(graph, stream);
    OK(cudaStreamSynchronize(stream));
    EXPECT(litmus_peek(left), 1);
    EXPECT(litmus_peek(right), 101);
}

static void branches_of_a_capture_are_not_ordered(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t stream = litmus_stream(), other = litmus_stream();
    cudaEvent_t fork = litmus_event(), join = litmus_event();
    cudaGraphNode_t nodes[8], before[8];
    size_t count = 8, edges = 8;

    begin(stream);
    OK(cudaEventRecord(fork, stream));
    OK(cudaStreamWaitEvent(other, fork, 0));
    litmus_move(other, seen, at);
    litmus_set(stream, at, 7);
    OK(cudaEventRecord(join, other));
    OK(cudaStreamWaitEvent(stream, join, 0));
    litmus_add(stream, seen, 100);

    cudaGraph_t graph = end(stream);

    OK(cudaGraphGetNodes(graph, nodes, &count));
    EXPECT(count, 3);
    OK(cudaGraphNodeGetDependencies(nodes[1], before, NULL, &edges));
    EXPECT(edges, 0);
    edges = 8;
    OK(cudaGraphNodeGetDependencies(nodes[2], before, NULL, &edges));
    EXPECT(edges, 2);
}

static void a_fork_that_is_not_joined_fails(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream(), other = litmus_stream();
    cudaEvent_t fork = litmus_event();

    begin(stream);
    litmus_add(stream, at, 1);
    OK(cudaEventRecord(fork, stream));
    OK(cudaStreamWaitEvent(other, fork, 0));
    litmus_add(other, at, 1);
    expect_end(stream, cudaErrorStreamCaptureUnjoined);

    EXPECT(status_of(other), cudaStreamCaptureStatusNone);
    litmus_add(other, at, 5);
    OK(cudaStreamSynchronize(other));
    EXPECT(litmus_peek(at), 5);
}

static void the_end_comes_where_the_beginning_was(void)
{
    cudaStream_t stream = litmus_stream(), other = litmus_stream();
    cudaEvent_t fork = litmus_event();

    EXPECT(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeRelaxed),
           cudaErrorStreamCaptureUnsupported);
    begin(stream);
    EXPECT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal),
           cudaErrorIllegalState);
    OK(cudaEventRecord(fork, stream));
    OK(cudaStreamWaitEvent(other, fork, 0));
    expect_end(other, cudaErrorStreamCaptureUnmatched);
    expect_end(stream, cudaErrorStreamCaptureInvalidated);
    expect_end(stream, cudaErrorIllegalState);
}

// Each of these must fail and invalidate the capture.
static void expect_invalid(cudaStream_t stream)
{
    EXPECT(status_of(stream), cudaStreamCaptureStatusInvalidated);
    EXPECT(cudaEventRecord(litmus_event(), stream), cudaErrorStreamCaptureInvalidated);
    expect_end(stream, cudaErrorStreamCaptureInvalidated);
    EXPECT(status_of(stream), cudaStreamCaptureStatusNone);
}

static void a_captured_stream_is_not_synchronised_or_queried(void)
{
    cudaStream_t stream = litmus_stream();

    begin(stream);
    EXPECT(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    expect_invalid(stream);
    begin(stream);
    EXPECT(cudaStreamQuery(stream), cudaErrorStreamCaptureUnsupported);
    expect_invalid(stream);
    begin(stream);
    EXPECT(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
    expect_invalid(stream);
    begin(stream);
    EXPECT(cudaStreamDestroy(stream), cudaErrorStreamCaptureUnsupported);
    expect_invalid(stream);
}

static void a_captured_event_is_not_synchronised_or_queried(void)
{
    cudaStream_t stream = litmus_stream();
    cudaEvent_t event = litmus_event();

    begin(stream);
    OK(cudaEventRecord(event, stream));
    EXPECT(cudaEventQuery(event), cudaErrorCapturedEvent);
    expect_invalid(stream);
    begin(stream);
    OK(cudaEventRecord(event, stream));
    EXPECT(cudaEventSynchronize(event), cudaErrorCapturedEvent);
    expect_invalid(stream);
    EXPECT(cudaStreamWaitEvent(stream, event, 0), cudaErrorCapturedEvent);
    OK(cudaEventRecord(event, stream));
    OK(cudaEventSynchronize(event));
}

static void work_from_outside_is_no_dependency(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream(), other = litmus_stream();
    cudaEvent_t event = litmus_event();

    litmus_set(other, at, 1);
    OK(cudaEventRecord(event, other));
    begin(stream);
    EXPECT(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureIsolation);
    expect_invalid(stream);
}

static void two_captures_do_not_merge(void)
{
    cudaStream_t stream = litmus_stream(), other = litmus_stream();
    cudaEvent_t event = litmus_event();

    begin(stream);
    begin(other);
    OK(cudaEventRecord(event, other));
    EXPECT(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureMerge);
    expect_end(other, cudaErrorStreamCaptureInvalidated);
    expect_invalid(stream);
}

static void the_legacy_stream_is_unusable_beside_a_blocking_capture(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_blocking_stream(), free_stream = litmus_stream();
    enum cudaStreamCaptureStatus status;

    begin(stream);
    EXPECT(cudaStreamIsCapturing(NULL, &status), cudaErrorStreamCaptureImplicit);
    EXPECT(status_of(stream), cudaStreamCaptureStatusActive);
    EXPECT(cudaMemsetAsync(at, 1, sizeof(int), NULL), cudaErrorStreamCaptureImplicit);
    expect_invalid(stream);
    begin(free_stream);
    OK(cudaStreamIsCapturing(NULL, &status));
    OK(cudaMemsetAsync(at, 0, sizeof(int), NULL));
    end(free_stream);
}

static void an_unsafe_call_is_prohibited_unless_relaxed(void)
{
    cudaStream_t stream = litmus_stream(), other = litmus_stream();
    cudaEvent_t event = litmus_event();
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    void *memory = NULL;

    begin(stream);
    EXPECT(cudaMalloc(&memory, 1), cudaErrorStreamCaptureUnsupported);
    expect_invalid(stream);
    begin(stream);
    EXPECT(cudaStreamSynchronize(other), cudaErrorStreamCaptureUnsupported);
    expect_invalid(stream);
    begin(stream);
    EXPECT(cudaEventQuery(event), cudaErrorStreamCaptureUnsupported);
    expect_invalid(stream);

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    OK(cudaMalloc(&memory, 1));
    OK(cudaFree(memory));
    end(stream);

    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT(mode, cudaStreamCaptureModeGlobal);
    begin(stream);
    OK(cudaMalloc(&memory, 1));
    OK(cudaEventQuery(event));
    end(stream);
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT(mode, cudaStreamCaptureModeRelaxed);
}

static void *allocate(void *error)
{
    void *memory = NULL;

    *(cudaError_t *)error = cudaMalloc(&memory, 1);
    return NULL;
}

static cudaError_t allocate_elsewhere(void)
{
    pthread_t thread;
    cudaError_t error = cudaErrorUnknown;

    pthread_create(&thread, NULL, allocate, &error);
    pthread_join(thread, NULL);
    return error;
}

static void other_threads_are_bound_by_global_captures_only(void)
{
    cudaStream_t stream = litmus_stream();

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    OK(allocate_elsewhere());
    end(stream);
    begin(stream);
    EXPECT(allocate_elsewhere(), cudaErrorStreamCaptureUnsupported);
    expect_invalid(stream);
}

static void *end_elsewhere(void *stream)
{
    cudaGraph_t graph = NULL;

    return (void *)(uintptr_t)cudaStreamEndCapture(stream, &graph);
}

static void only_a_relaxed_capture_ends_on_another_thread(void)
{
    cudaStream_t stream = litmus_stream();
    pthread_t thread;
    void *error = NULL;

    begin(stream);
    pthread_create(&thread, NULL, end_elsewhere, stream);
    pthread_join(thread, &error);
    EXPECT((uintptr_t)error, cudaErrorStreamCaptureWrongThread);
    end(stream);
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    pthread_create(&thread, NULL, end_elsewhere, stream);
    pthread_join(thread, &error);
    EXPECT((uintptr_t)error, cudaSuccess);
}

static void never_called(cudaStream_t stream, cudaError_t error, void *arg)
{
    (void)stream, (void)error, (void)arg;
    abort();
}

static void what_cannot_be_captured_says_so(void)
{
    cudaStream_t stream = litmus_stream();
    void *memory = NULL;

    begin(stream);
    EXPECT(cudaStreamAddCallback(stream, never_called, NULL, 0),
           cudaErrorStreamCaptureUnsupported);
    expect_invalid(stream);
    begin(stream);
    EXPECT(cudaMallocAsync(&memory, 64, stream), cudaErrorStreamCaptureUnsupported);
    expect_invalid(stream);
}

static void a_capture_s_dependencies_can_be_changed(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph = NULL;
    cudaGraphNode_t node = NULL, root = NULL;
    const cudaGraphNode_t *before = NULL;
    const cudaGraphEdgeData *edges = NULL;
    size_t count = 0;

    EXPECT(cudaStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 0),
           cudaErrorIllegalState);
    begin(stream);
    litmus_add(stream, at, 1);
    OK(cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, &before, &edges, &count));
    EXPECT(count, 1);
    EXPECT(edges[0].type, 0);
    root = before[0];
    OK(cudaGraphAddEmptyNode(&node, graph, &root, 1));
    OK(cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 1,
                                           cudaStreamSetCaptureDependencies));
    litmus_add(stream, at, 1);
    EXPECT(end(stream) == graph, true);

    OK(cudaGraphNodeGetDependentNodes(node, NULL, NULL, &count));
    EXPECT(count, 1);
    launch(graph, stream);
    OK(cudaStreamSynchronize(stream));
    EXPECT(litmus_peek(at), 2);
}

static void a_capture_goes_on_in_a_graph_that_is_there(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();
    cudaGraph_t graph = NULL, same = NULL;
    cudaGraphNode_t first = NULL;
    size_t count = 0;

    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddEmptyNode(&first, graph, NULL, 0));
    OK(cudaStreamBeginCaptureToGraph(stream, graph, &first, NULL, 1,
                                     cudaStreamCaptureModeGlobal));
    EXPECT(cudaGraphDestroy(graph), cudaErrorInvalidValue);
    litmus_add(stream, at, 1);
    OK(cudaStreamEndCapture(stream, &same));

    EXPECT(same == graph, true);
    OK(cudaGraphNodeGetDependentNodes(first, NULL, NULL, &count));
    EXPECT(count, 1);
    OK(cudaGraphDestroy(graph));
}

static const struct litmus cases[] = {
    LITMUS(captured_work_does_not_run),
    LITMUS(a_replay_reads_what_is_there_then),
    LITMUS(pageable_copies_are_captured_without_waiting),
    LITMUS(events_fork_and_join_a_capture),
    LITMUS(branches_of_a_capture_are_not_ordered),
    LITMUS(a_fork_that_is_not_joined_fails),
    LITMUS(the_end_comes_where_the_beginning_was),
    LITMUS(a_captured_stream_is_not_synchronised_or_queried),
    LITMUS(a_captured_event_is_not_synchronised_or_queried),
    LITMUS(work_from_outside_is_no_dependency),
    LITMUS(two_captures_do_not_merge),
    LITMUS(the_legacy_stream_is_unusable_beside_a_blocking_capture),
    LITMUS(an_unsafe_call_is_prohibited_unless_relaxed),
    LITMUS(other_threads_are_bound_by_global_captures_only),
    LITMUS(only_a_relaxed_capture_ends_on_another_thread),
    LITMUS(what_cannot_be_captured_says_so),
    LITMUS(a_capture_s_dependencies_can_be_changed),
    LITMUS(a_capture_goes_on_in_a_graph_that_is_there),
};

int test_main(int argc, char *argv[]);

int test_main(int argc, char *argv[])
{
    (void)argc, (void)argv;
    return litmus_run(cases, sizeof(cases) / sizeof(cases[0]));
}
