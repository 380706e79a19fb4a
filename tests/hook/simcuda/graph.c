// SPDX-License-Identifier: Apache-2.0
// Graphs: how they are built, how launches are ordered, and how long things live.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "litmus.h"

// What one stream's captured work becomes.
static cudaGraphExec_t capture_add(cudaStream_t stream, int *at, int by)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    litmus_add(stream, at, by);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}

static void a_launch_keeps_the_stream_s_order(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t stream = litmus_stream();
    cudaGraphExec_t exec = capture_add(stream, at, 1);

    litmus_set(stream, at, 10);
    OK(cudaGraphLaunch(exec, stream));
    litmus_move(stream, seen, at);
    litmus_set(stream, at, 0);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));

    EXPECT(litmus_peek(seen), 11);
    EXPECT(litmus_peek(at), 1);
}

static void a_launch_comes_late(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t stream = litmus_stream(), other = litmus_stream();

    OK(cudaGraphLaunch(capture_add(stream, at, 7), stream));
    litmus_move(other, seen, at);
    OK(cudaStreamSynchronize(other));

    EXPECT_BY_ORDER(litmus_peek(seen), 7, 0);
}

static void launches_of_one_graph_come_one_after_another(void)
{
    int *at = litmus_device(), *slow = litmus_device();
    cudaStream_t stream = litmus_stream(), other = litmus_stream();
    cudaGraphExec_t exec = capture_add(stream, at, 1);

    litmus_add(stream, slow, 5);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, other));
    OK(cudaStreamSynchronize(other));

    EXPECT(litmus_peek(at), 2);
    EXPECT(litmus_peek(slow), 5);
}

static void an_event_after_a_launch_means_all_of_it(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();
    cudaEvent_t event = litmus_event();

    OK(cudaGraphLaunch(capture_add(stream, at, 7), stream));
    OK(cudaEventRecord(event, stream));
    OK(cudaEventSynchronize(event));

    EXPECT(litmus_peek(at), 7);
}

static void the_legacy_stream_takes_launches(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaGraphExec_t exec = capture_add(litmus_stream(), at, 7);

    OK(cudaGraphLaunch(exec, NULL));
    litmus_move(litmus_blocking_stream(), seen, at);
    OK(cudaDeviceSynchronize());

    EXPECT(litmus_peek(seen), 7);
}

static void what_is_queued_outlives_the_graph(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();
    cudaGraphExec_t exec = capture_add(stream, at, 7);

    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaStreamSynchronize(stream));

    EXPECT(litmus_peek(at), 7);
    EXPECT(cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
    EXPECT(cudaGraphExecDestroy(exec), cudaErrorInvalidValue);
}

static void more_nodes_than_the_queue_holds_are_launched(void)
{
    enum { NODES = 20000 };
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < NODES; i++)
        litmus_add(stream, at, 1);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));

    EXPECT(litmus_peek(at), 2 * NODES);
}

static void increment(void *at)
{
    ++*(int *)at;
}

static void graphs_are_built_by_hand(void)
{
    int order = 0;
    const struct cudaHostNodeParams params = {increment, &order};
    struct cudaHostNodeParams told;
    cudaStream_t stream = litmus_stream();
    cudaGraph_t graph = NULL;
    cudaGraphNode_t first, second, third, nodes[4];
    cudaGraphExec_t exec = NULL;
    enum cudaGraphNodeType type;
    size_t count = 4;

    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddHostNode(&first, graph, NULL, 0, &params));
    OK(cudaGraphAddEmptyNode(&second, graph, &first, 1));
    OK(cudaGraphAddHostNode(&third, graph, NULL, 0, &params));
    OK(cudaGraphAddDependencies(graph, &second, &third, NULL, 1));
    OK(cudaGraphGetRootNodes(graph, nodes, &count));
    EXPECT(count, 1);
    EXPECT(nodes[0] == first && !nodes[1], true);
    OK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
    EXPECT(count, 2);
    OK(cudaGraphNodeGetType(third, &type));
    EXPECT(type, cudaGraphNodeTypeHost);
    OK(cudaGraphHostNodeGetParams(third, &told));
    EXPECT(told.userData == &order, true);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT(order, 2);

    OK(cudaGraphDestroyNode(third));
    OK(cudaGraphGetNodes(graph, NULL, &count));
    EXPECT(count, 2);
}

static void a_cycle_is_not_instantiated(void)
{
    cudaGraph_t graph = NULL;
    cudaGraphNode_t first, second;
    cudaGraphExec_t exec = NULL;

    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddEmptyNode(&first, graph, NULL, 0));
    OK(cudaGraphAddEmptyNode(&second, graph, &first, 1));
    OK(cudaGraphAddDependencies(graph, &second, &first, NULL, 1));
    EXPECT(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
    OK(cudaGraphRemoveDependencies(graph, &second, &first, NULL, 1));
    OK(cudaGraphInstantiate(&exec, graph, 0));
}

static void a_graph_within_a_graph_keeps_its_place(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t stream = litmus_stream();
    cudaGraphExec_t inner = capture_add(stream, at, 7), outer = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphNode_t nodes[3];
    enum cudaGraphNodeType type;
    size_t count = 3;

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    litmus_set(stream, at, 1);
    OK(cudaGraphLaunch(inner, stream));
    litmus_move(stream, seen, at);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphExecDestroy(inner));
    OK(cudaGraphGetNodes(graph, nodes, &count));
    EXPECT(count, 3);
    OK(cudaGraphNodeGetType(nodes[1], &type));
    EXPECT(type, cudaGraphNodeTypeGraph);
    OK(cudaGraphInstantiate(&outer, graph, 0));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphLaunch(outer, stream));
    OK(cudaStreamSynchronize(stream));

    EXPECT(litmus_peek(seen), 8);
}

static void a_clone_is_a_graph_of_its_own(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();
    cudaGraph_t graph = NULL, copy = NULL;
    cudaGraphExec_t exec = NULL;

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    litmus_add(stream, at, 1);
    litmus_add(stream, at, 2);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphClone(&copy, graph));
    OK(cudaGraphDestroy(graph));
    EXPECT(cudaGraphDestroy(graph), cudaErrorInvalidValue);
    OK(cudaGraphInstantiate(&exec, copy, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));

    EXPECT(litmus_peek(at), 3);
}

static cudaGraph_t capture_two(cudaStream_t stream, int *at, int by, bool host)
{
    cudaGraph_t graph = NULL;

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    litmus_add(stream, at, by);
    if (host)
        OK(cudaLaunchHostFunc(stream, increment, at));
    else
        litmus_add(stream, at, by);
    OK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static void an_update_changes_what_is_launched_next(void)
{
    int *at = litmus_device(), *other = litmus_device();
    cudaStream_t stream = litmus_stream();
    cudaGraphExec_t exec = NULL;
    cudaGraphExecUpdateResultInfo info;

    OK(cudaGraphInstantiate(&exec, capture_two(stream, at, 1, false), 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecUpdate(exec, capture_two(stream, other, 5, false), &info));
    EXPECT(info.result, cudaGraphExecUpdateSuccess);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT(litmus_peek(at), 2);
    EXPECT(litmus_peek(other), 10);

    EXPECT(cudaGraphExecUpdate(exec, capture_two(stream, at, 1, true), &info),
           cudaErrorGraphExecUpdateFailure);
    EXPECT(info.result, cudaGraphExecUpdateErrorNodeTypeChanged);
}

static void external_events_are_recorded_and_awaited_at_each_replay(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t stream = litmus_stream(), other = litmus_stream();
    cudaEvent_t recorded = litmus_event(), awaited = litmus_event();
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaStreamWaitEvent(stream, awaited, cudaEventWaitExternal));
    litmus_move(stream, seen, at);
    OK(cudaEventRecordWithFlags(recorded, stream, cudaEventRecordExternal));
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 1; i <= 2; i++) {
        litmus_set(other, at, i);
        OK(cudaEventRecord(awaited, other));
        OK(cudaGraphLaunch(exec, stream));
        OK(cudaEventSynchronize(recorded));

        EXPECT(litmus_peek(seen), i);
    }
}

static void user_objects_end_with_their_last_holder(void)
{
    int ended = 0;
    cudaStream_t stream = litmus_stream();
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaUserObject_t object = NULL;

    OK(cudaUserObjectCreate(&object, &ended, increment, 1,
                            cudaUserObjectNoDestructorSync));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaGraphDestroy(graph));
    EXPECT(ended, 0);
    OK(cudaGraphExecDestroy(exec));
    EXPECT(ended, 1);
}

static void a_graph_is_drawn(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();
    char path[] = "/tmp/sim-graph-XXXXXX", text[512] = "";

    close(mkstemp(path));
    OK(cudaGraphDebugDotPrint(capture_two(stream, at, 1, true), path, 0));

    FILE *file = fopen(path, "r");

    EXPECT(file && fread(text, 1, sizeof(text) - 1, file) > 0, true);
    EXPECT(strstr(text, "digraph") && strstr(text, "host") &&
               strstr(text, "node_0 -> node_1"),
           true);
    fclose(file);
    unlink(path);
}

static const struct litmus cases[] = {
    LITMUS(a_launch_keeps_the_stream_s_order),
    LITMUS(a_launch_comes_late),
    LITMUS(launches_of_one_graph_come_one_after_another),
    LITMUS(an_event_after_a_launch_means_all_of_it),
    LITMUS(the_legacy_stream_takes_launches),
    LITMUS(what_is_queued_outlives_the_graph),
    LITMUS(more_nodes_than_the_queue_holds_are_launched),
    LITMUS(graphs_are_built_by_hand),
    LITMUS(a_cycle_is_not_instantiated),
    LITMUS(a_graph_within_a_graph_keeps_its_place),
    LITMUS(a_clone_is_a_graph_of_its_own),
    LITMUS(an_update_changes_what_is_launched_next),
    LITMUS(external_events_are_recorded_and_awaited_at_each_replay),
    LITMUS(user_objects_end_with_their_last_holder),
    LITMUS(a_graph_is_drawn),
};

int test_main(int argc, char *argv[]);

int test_main(int argc, char *argv[])
{
    (void)argc, (void)argv;
    return litmus_run(cases, sizeof(cases) / sizeof(cases[0]));
}
