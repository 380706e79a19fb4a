// SPDX-License-Identifier: Apache-2.0
// A program compiled for per-thread default streams: no stream is the thread's own.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "litmus.h"

#include <string.h>

enum { COUNT = 4 };

// The legacy stream cannot be captured, and waits for blocking streams.
static void no_stream_is_the_threads(void)
{
    cudaGraph_t graph = NULL;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned flags = 0;
    int priority = 7;

    OK(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeThreadLocal));
    OK(cudaStreamIsCapturing(NULL, &status));
    EXPECT(status, cudaStreamCaptureStatusActive);
    OK(cudaStreamEndCapture(NULL, &graph));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamGetFlags(NULL, &flags));
    OK(cudaStreamGetPriority(NULL, &priority));
    EXPECT(priority, 0);
}

static void ordered_memory_and_copies(void)
{
    int *device = NULL, *pinned = litmus_pinned();
    int rows[COUNT] = {1, 2, 3, 4}, back[COUNT] = {0};
    cudaMemPool_t pool = NULL;
    cudaEvent_t event = litmus_event();

    OK(cudaMallocAsync((void **)&device, sizeof(rows), NULL));
    OK(cudaMemcpyAsync(device, rows, sizeof(rows), cudaMemcpyHostToDevice, NULL));
    OK(cudaMemcpyAsync(pinned, device + 1, sizeof(int), cudaMemcpyDeviceToHost, NULL));
    OK(cudaEventRecord(event, NULL));
    EXPECT_BY_ORDER(*pinned, 2, 0);
    OK(cudaStreamWaitEvent(NULL, event, 0));
    OK(cudaStreamSynchronize(NULL));
    EXPECT(*pinned, 2);
    OK(cudaStreamQuery(NULL));
    OK(cudaMemsetAsync(device, 0, sizeof(int), NULL));
    OK(cudaMemcpy(back, device, sizeof(back), cudaMemcpyDeviceToHost));
    EXPECT(back[0] * 1000 + back[1] * 100 + back[2] * 10 + back[3], 234);
    OK(cudaFreeAsync(device, NULL));
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMallocFromPoolAsync((void **)&device, sizeof(rows), pool, NULL));
    OK(cudaMemset(device, 1, sizeof(rows)));
    OK(cudaMemcpy2D(back, 8, device, 8, 4, 2, cudaMemcpyDeviceToHost));
    EXPECT(back[0] == 0x01010101 && back[1] == 2 && back[2] == 0x01010101, true);
    OK(cudaFreeAsync(device, NULL));
}

static void blocking_streams_do_not_wait_for_it(void)
{
    int *const device = litmus_device(), *const pinned = litmus_pinned();
    cudaStream_t blocking = litmus_blocking_stream();

    *pinned = 5;
    OK(cudaMemcpyAsync(device, pinned, sizeof(int), cudaMemcpyHostToDevice, NULL));
    litmus_set(blocking, pinned, 6);
    OK(cudaStreamSynchronize(blocking));
    EXPECT_BY_ORDER(litmus_peek(device), 5, 0);
    OK(cudaStreamSynchronize(NULL));
    EXPECT_BY_ORDER(litmus_peek(device), 5, 6);
}

static void hosts_and_graphs(void)
{
    int *const device = litmus_device(), *const pinned = litmus_pinned();
    cudaGraph_t graph = NULL;
    cudaGraphExec_t replay = NULL;

    *pinned = 3;
    OK(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeThreadLocal));
    OK(cudaMemcpyAsync(device, pinned, sizeof(int), cudaMemcpyHostToDevice, NULL));
    OK(cudaStreamEndCapture(NULL, &graph));
    OK(cudaGraphInstantiate(&replay, graph, 0));
    OK(cudaGraphUpload(replay, NULL));
    OK(cudaGraphLaunch(replay, NULL));
    OK(cudaStreamSynchronize(NULL));
    EXPECT(litmus_peek(device), 3);
    OK(cudaGraphExecDestroy(replay));
    OK(cudaGraphDestroy(graph));
}

static const struct litmus cases[] = {
    LITMUS(no_stream_is_the_threads),
    LITMUS(ordered_memory_and_copies),
    LITMUS(blocking_streams_do_not_wait_for_it),
    LITMUS(hosts_and_graphs),
};

int test_main(int argc, char *argv[]);
int test_main(int argc, char *argv[])
{
    (void)argc, (void)argv;
    return litmus_run(cases, sizeof(cases) / sizeof(*cases));
}
