// SPDX-License-Identifier: Apache-2.0
// Many threads on the runtime at once, for ThreadSanitizer: the runtime is compiled into
// this program, not loaded, so that it is watched.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "simcuda/simcuda.h"

enum { THREADS = 6, ROUNDS = 300 };

static cudaStream_t shared_stream;
static cudaEvent_t shared_event;

static void check(cudaError_t error, const char *what)
{
    if (error && error != cudaErrorNotReady) {
        fprintf(stderr, "race: %s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

#define OK(call) check(call, #call)

static void add_one(void *at)
{
    ++*(int *)at;
}

static void add(cudaStream_t stream, int *at)
{
    const struct sim_work work = {.name = "add", .run = add_one, .arg = at};

    OK((cudaError_t)sim_submit(stream, &work, NULL, 0));
}

// A graph of one addition, replayed, with its own end of life.
static void replay(cudaStream_t stream, int *at)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    add(stream, at);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecDestroy(exec));
}

// Everything that several threads may do: own streams, events in common, the legacy
// stream, allocation, queries, graphs.
static void round_of(int i, cudaStream_t stream, cudaEvent_t event, int *device,
                     int *host)
{
    void *extra;

    if (i % 2)
        replay(stream, device);
    else
        add(stream, device);
    OK(cudaMemcpyAsync(host, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
    OK(cudaEventRecord(event, stream));
    OK(cudaStreamWaitEvent(shared_stream, event, 0));
    if (i % 5 == 0)
        OK(cudaEventRecord(shared_event, shared_stream));
    OK(cudaStreamWaitEvent(stream, shared_event, 0));
    OK(cudaEventQuery(event));
    if (i % 7 == 0) {
        OK(cudaMalloc(&extra, 1 << 20));
        OK(cudaMemset(extra, 1, 1 << 20));
        OK(cudaFree(extra));
    }
    OK(i % 3 ? cudaStreamSynchronize(stream) : cudaEventSynchronize(event));
}

static void *work(void *arg)
{
    cudaStream_t stream;
    cudaEvent_t event;
    int *device, *host;

    (void)arg;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaMalloc((void **)&device, sizeof(int)));
    OK(cudaMallocHost((void **)&host, sizeof(int)));
    for (int i = 1; i <= ROUNDS; i++) {
        round_of(i, stream, event, device, host);
        if (*host != i) {
            fprintf(stderr, "race: %d after %d additions\n", *host, i);
            exit(1);
        }
    }
    OK(cudaStreamDestroy(stream));
    OK(cudaEventDestroy(event));
    OK(cudaFreeHost(host));
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];

    OK(cudaStreamCreate(&shared_stream));
    OK(cudaEventCreateWithFlags(&shared_event, cudaEventDisableTiming));
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(cudaDeviceSynchronize());
    return 0;
}
