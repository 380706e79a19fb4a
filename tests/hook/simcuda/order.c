// SPDX-License-Identifier: Apache-2.0
// Which edges there are. Under `early` every case but those of host functions reads the
// new value; under `late` an edge that is not there shows.
#include <pthread.h>
#include <stdlib.h>

#include "litmus.h"

static void a_stream_keeps_its_order(void)
{
    int *at = litmus_device(), *seen = litmus_pinned();
    cudaStream_t stream = litmus_stream();

    litmus_set(stream, at, 5);
    litmus_add(stream, at, 2);
    OK(cudaMemcpyAsync(seen, at, sizeof(int), cudaMemcpyDeviceToHost, stream));
    litmus_add(stream, at, 100);
    OK(cudaStreamSynchronize(stream));

    EXPECT(*seen, 7);
    EXPECT(litmus_peek(at), 107);
}

static void two_streams_without_an_event_are_not_ordered(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t producer = litmus_stream(), consumer = litmus_stream();

    litmus_set(producer, at, 7);
    litmus_move(consumer, seen, at);
    OK(cudaStreamSynchronize(consumer));

    EXPECT_BY_ORDER(litmus_peek(seen), 7, 0);
}

static void an_event_orders_two_streams(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t producer = litmus_stream(), consumer = litmus_stream();
    cudaEvent_t event = litmus_event();

    litmus_set(producer, at, 7);
    OK(cudaEventRecord(event, producer));
    OK(cudaStreamWaitEvent(consumer, event, 0));
    litmus_move(consumer, seen, at);
    OK(cudaStreamSynchronize(consumer));

    EXPECT(litmus_peek(seen), 7);
}

static void a_wait_means_the_record_before_it(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t producer = litmus_stream(), consumer = litmus_stream();
    cudaEvent_t event = litmus_event();

    litmus_set(producer, at, 1);
    OK(cudaEventRecord(event, producer));
    OK(cudaStreamWaitEvent(consumer, event, 0));
    litmus_set(producer, at, 2);
    OK(cudaEventRecord(event, producer));
    litmus_move(consumer, seen, at);
    OK(cudaStreamSynchronize(consumer));

    EXPECT_BY_ORDER(litmus_peek(seen), 2, 1);
}

static void a_wait_for_an_event_that_was_never_recorded_is_no_edge(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t producer = litmus_stream(), consumer = litmus_stream();
    cudaEvent_t event = litmus_event();

    OK(cudaStreamWaitEvent(consumer, event, 0));
    litmus_set(producer, at, 7);
    OK(cudaEventRecord(event, producer));
    litmus_move(consumer, seen, at);
    OK(cudaStreamSynchronize(consumer));

    EXPECT_BY_ORDER(litmus_peek(seen), 7, 0);
}

static void edges_are_followed_over_three_streams(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t first = litmus_stream(), second = litmus_stream(),
                 third = litmus_stream();
    cudaEvent_t one = litmus_event(), two = litmus_event();

    litmus_set(first, at, 7);
    OK(cudaEventRecord(one, first));
    OK(cudaStreamWaitEvent(second, one, 0));
    OK(cudaEventRecord(two, second));
    OK(cudaStreamWaitEvent(third, two, 0));
    litmus_move(third, seen, at);
    OK(cudaStreamSynchronize(third));

    EXPECT(litmus_peek(seen), 7);
}

static void a_destroyed_event_still_orders(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t producer = litmus_stream(), consumer = litmus_stream();
    cudaEvent_t event = litmus_event();

    litmus_set(producer, at, 7);
    OK(cudaEventRecord(event, producer));
    OK(cudaStreamWaitEvent(consumer, event, 0));
    OK(cudaEventDestroy(event));
    litmus_move(consumer, seen, at);
    OK(cudaStreamSynchronize(consumer));

    EXPECT(litmus_peek(seen), 7);
}

static void a_destroyed_stream_finishes_its_work(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();

    litmus_set(stream, at, 7);
    OK(cudaStreamDestroy(stream));
    EXPECT_BY_ORDER(litmus_peek(at), 7, 0);
    OK(cudaDeviceSynchronize());

    EXPECT(litmus_peek(at), 7);
    EXPECT(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
}

static void a_handle_does_not_name_a_younger_stream(void)
{
    cudaStream_t old = litmus_stream();

    OK(cudaStreamDestroy(old));

    cudaStream_t young = litmus_stream();

    EXPECT(old == young, false);
    EXPECT(cudaStreamQuery(old), cudaErrorInvalidResourceHandle);
    EXPECT(cudaStreamDestroy(old), cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventQuery((cudaEvent_t)young), cudaErrorInvalidResourceHandle);
    OK(cudaStreamQuery(young));
}

static void the_legacy_stream_waits_for_blocking_streams(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaEvent_t event = litmus_event();

    // By an event: synchronising the stream itself would wait for the others as well.
    litmus_set(litmus_blocking_stream(), at, 7);
    litmus_move(NULL, seen, at);
    OK(cudaEventRecord(event, NULL));
    OK(cudaEventSynchronize(event));

    EXPECT(litmus_peek(seen), 7);
}

static void blocking_streams_wait_for_the_legacy_stream(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t stream = litmus_blocking_stream();

    litmus_set(cudaStreamLegacy, at, 7);
    litmus_move(stream, seen, at);
    OK(cudaStreamSynchronize(stream));

    EXPECT(litmus_peek(seen), 7);
}

static void two_blocking_streams_are_ordered_through_the_legacy_stream(void)
{
    int *at = litmus_device(), *seen = litmus_device(), *other = litmus_device();
    cudaStream_t producer = litmus_blocking_stream(), consumer = litmus_blocking_stream();

    litmus_set(producer, at, 7);
    litmus_set(NULL, other, 1);
    litmus_move(consumer, seen, at);
    OK(cudaStreamSynchronize(consumer));

    EXPECT(litmus_peek(seen), 7);
}

static void two_blocking_streams_alone_are_not_ordered(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t producer = litmus_blocking_stream(), consumer = litmus_blocking_stream();

    litmus_set(producer, at, 7);
    litmus_move(consumer, seen, at);
    OK(cudaStreamSynchronize(consumer));

    EXPECT_BY_ORDER(litmus_peek(seen), 7, 0);
}

static void the_legacy_stream_does_not_wait_for_non_blocking_ones(void)
{
    int *at = litmus_device(), *seen = litmus_device();

    litmus_set(litmus_stream(), at, 7);
    litmus_move(NULL, seen, at);
    OK(cudaStreamSynchronize(NULL));

    EXPECT_BY_ORDER(litmus_peek(seen), 7, 0);
}

static void non_blocking_streams_do_not_wait_for_the_legacy_stream(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    cudaStream_t stream = litmus_stream();

    litmus_set(NULL, at, 7);
    litmus_move(stream, seen, at);
    OK(cudaStreamSynchronize(stream));

    EXPECT_BY_ORDER(litmus_peek(seen), 7, 0);
}

static void the_per_thread_stream_is_a_blocking_one(void)
{
    int *at = litmus_device(), *seen = litmus_device();

    cudaEvent_t event = litmus_event();

    litmus_set(cudaStreamPerThread, at, 7);
    litmus_move(NULL, seen, at);
    OK(cudaEventRecord(event, NULL));
    OK(cudaEventSynchronize(event));

    EXPECT(litmus_peek(seen), 7);
}

static void *set_on_own_stream(void *at)
{
    litmus_set(cudaStreamPerThread, at, 7);
    return NULL;
}

static void each_thread_has_its_own_per_thread_stream(void)
{
    int *at = litmus_device(), *seen = litmus_device();
    pthread_t thread;

    pthread_create(&thread, NULL, set_on_own_stream, at);
    pthread_join(thread, NULL);
    litmus_move(cudaStreamPerThread, seen, at);
    OK(cudaStreamSynchronize(cudaStreamPerThread));

    EXPECT_BY_ORDER(litmus_peek(seen), 7, 0);
    OK(cudaDeviceSynchronize());
    EXPECT(litmus_peek(at), 7);
}

static void synchronising_the_legacy_stream_waits_for_blocking_ones(void)
{
    int *at = litmus_device(), *other = litmus_device();

    litmus_set(litmus_blocking_stream(), at, 7);
    litmus_set(litmus_stream(), other, 7);
    OK(cudaStreamSynchronize(NULL));

    EXPECT(litmus_peek(at), 7);
    EXPECT_BY_ORDER(litmus_peek(other), 7, 0);
}

static void synchronising_the_device_waits_for_all(void)
{
    int *one = litmus_device(), *two = litmus_device(), *three = litmus_device();

    litmus_set(litmus_stream(), one, 1);
    litmus_set(litmus_blocking_stream(), two, 2);
    litmus_set(NULL, three, 3);
    OK(cudaDeviceSynchronize());

    EXPECT(litmus_peek(one), 1);
    EXPECT(litmus_peek(two), 2);
    EXPECT(litmus_peek(three), 3);
}

static void synchronising_an_event_runs_no_more_than_it_recorded(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();
    cudaEvent_t event = litmus_event();

    litmus_set(stream, at, 1);
    OK(cudaEventRecord(event, stream));
    litmus_set(stream, at, 2);
    OK(cudaEventSynchronize(event));

    EXPECT_BY_ORDER(litmus_peek(at), 2, 1);
}

static void synchronising_an_event_that_was_never_recorded_returns(void)
{
    cudaEvent_t event = litmus_event();

    OK(cudaEventSynchronize(event));
    OK(cudaEventQuery(event));
}

static void an_event_query_succeeds_within_a_bound(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();
    cudaEvent_t event = litmus_event();

    litmus_set(stream, at, 7);
    OK(cudaEventRecord(event, stream));

    int asked = 1;

    while (cudaEventQuery(event) == cudaErrorNotReady && asked < 10) {
        EXPECT(litmus_peek(at), 0);
        asked++;
    }
    EXPECT_BY_ORDER(asked, 1, 4);
    EXPECT(litmus_peek(at), 7);
}

static void a_stream_query_succeeds_within_a_bound_while_work_is_added(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();
    int asked = 0;

    do {
        litmus_add(stream, at, 1);
        asked++;
    } while (cudaStreamQuery(stream) == cudaErrorNotReady && asked < 10);

    EXPECT_BY_ORDER(asked, 1, 4);
    EXPECT(litmus_peek(at), asked);
}

static void a_query_of_old_work_succeeds(void)
{
    int *at = litmus_device();
    cudaStream_t asked = litmus_stream(), other = litmus_stream();
    cudaEvent_t event = litmus_event();

    litmus_set(asked, at, 7);
    OK(cudaEventRecord(event, asked));
    EXPECT_BY_ORDER(cudaEventQuery(event), cudaSuccess, cudaErrorNotReady);
    for (int i = 0; i < 64; i++)
        litmus_add(other, at + 1, 1);
    OK(cudaEventQuery(event));

    EXPECT(litmus_peek(at), 7);
    EXPECT_BY_ORDER(litmus_peek(at + 1), 64, 0);
}

static void a_query_leaves_the_answer_as_last_error(void)
{
    cudaStream_t stream = litmus_stream();

    litmus_set(stream, litmus_device(), 7);
    const cudaError_t answer = cudaStreamQuery(stream);

    EXPECT_BY_ORDER(answer, cudaSuccess, cudaErrorNotReady);
    EXPECT(cudaPeekAtLastError(), answer);
    EXPECT(cudaGetLastError(), answer);
    EXPECT(cudaGetLastError(), cudaSuccess);
}

static void an_event_orders_streams_of_two_devices(void)
{
    OK(cudaSetDevice(1));
    int *at = litmus_device();
    cudaStream_t producer = litmus_stream();
    cudaEvent_t event = litmus_event();

    litmus_set(producer, at, 7);
    OK(cudaEventRecord(event, producer));
    OK(cudaSetDevice(0));
    int *seen = litmus_device();
    cudaStream_t consumer = litmus_stream();

    EXPECT(cudaEventRecord(event, consumer), cudaErrorInvalidResourceHandle);
    OK(cudaStreamWaitEvent(consumer, event, 0));
    litmus_move(consumer, seen, at);
    OK(cudaStreamSynchronize(consumer));

    EXPECT(litmus_peek(seen), 7);
}

static void devices_have_legacy_streams_of_their_own(void)
{
    int *seen = litmus_device(), *at = litmus_device();

    OK(cudaSetDevice(1));
    litmus_set(NULL, at, 7);
    OK(cudaSetDevice(0));
    litmus_move(NULL, seen, at);
    OK(cudaDeviceSynchronize());

    EXPECT_BY_ORDER(litmus_peek(seen), 7, 0);
}

static void a_queue_that_is_full_runs_its_oldest_work(void)
{
    int *at = litmus_device();
    cudaStream_t stream = litmus_stream();

    for (int i = 0; i < 20000; i++)
        litmus_add(stream, at, 1);

    EXPECT(litmus_peek(at) >= 20000 - 16384, true);
    OK(cudaStreamSynchronize(stream));
    EXPECT(litmus_peek(at), 20000);
}

enum { THREADS = 4, ROUNDS = 200 };

static void *work_and_wait(void *arg)
{
    int *at = arg, *seen = litmus_pinned();
    cudaStream_t stream = litmus_stream();
    cudaEvent_t event = litmus_event();

    for (int i = 1; i <= ROUNDS; i++) {
        litmus_add(stream, at, 1);
        OK(cudaMemcpyAsync(seen, at, sizeof(int), cudaMemcpyDeviceToHost, stream));
        OK(cudaEventRecord(event, stream));
        OK(i % 3 ? cudaEventSynchronize(event) : cudaDeviceSynchronize());
        EXPECT(*seen, i);
    }
    return NULL;
}

static void several_threads_synchronise_at_once(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work_and_wait, litmus_device());
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void note(void *at)
{
    *(int *)at = 7;
}

static void a_host_function_runs_in_its_place(void)
{
    int *at = litmus_pinned(), *seen = litmus_device();
    cudaStream_t stream = litmus_stream();

    OK(cudaLaunchHostFunc(stream, note, at));
    OK(cudaMemcpyAsync(seen, at, sizeof(int), cudaMemcpyHostToDevice, stream));
    OK(cudaStreamSynchronize(stream));

    EXPECT(litmus_peek(seen), 7);
}

static void call_cuda(void *error)
{
    *(cudaError_t *)error = cudaDeviceSynchronize();
}

static void a_host_function_may_not_wait_for_the_device(void)
{
    cudaError_t error = cudaSuccess;
    cudaStream_t stream = litmus_stream();

    OK(cudaLaunchHostFunc(stream, call_cuda, &error));
    OK(cudaStreamSynchronize(stream));

    EXPECT(error, cudaErrorNotPermitted);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void wait_for_the_program(void *at)
{
    pthread_mutex_lock(&held);
    *(int *)at = 7;
    pthread_mutex_unlock(&held);
}

// As a callback that needs Python's lock while the submitting thread holds it.
static void a_host_function_may_wait_for_its_submitter(void)
{
    int *at = litmus_pinned();
    cudaStream_t stream = litmus_stream();

    pthread_mutex_lock(&held);
    OK(cudaLaunchHostFunc(stream, wait_for_the_program, at));
    EXPECT(*at, 0);
    litmus_set(litmus_stream(), litmus_device(), 1);
    pthread_mutex_unlock(&held);
    OK(cudaStreamSynchronize(stream));

    EXPECT(*at, 7);
}

static void callback(cudaStream_t stream, cudaError_t status, void *at)
{
    EXPECT(status, cudaSuccess);
    *(cudaStream_t *)at = stream;
}

static void a_callback_gets_its_stream(void)
{
    cudaStream_t stream = litmus_stream(), seen = NULL;

    OK(cudaStreamAddCallback(stream, callback, &seen, 0));
    OK(cudaStreamSynchronize(stream));

    EXPECT(seen == stream, true);
}

static void elapsed_time_is_that_of_the_virtual_clock(void)
{
    enum { BYTES = 55430000 }; // a millisecond of an H100's link
    void *device, *host;
    cudaEvent_t from, to;
    float ms = 0;

    OK(cudaMalloc(&device, BYTES));
    OK(cudaMallocHost(&host, BYTES));
    OK(cudaEventCreate(&from));
    OK(cudaEventCreate(&to));
    EXPECT(cudaEventElapsedTime(&ms, from, to), cudaErrorInvalidResourceHandle);
    OK(cudaEventRecord(from, NULL));
    OK(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, NULL));
    OK(cudaEventRecord(to, NULL));
    EXPECT_BY_ORDER(cudaEventElapsedTime(&ms, from, to), cudaSuccess, cudaErrorNotReady);
    OK(cudaEventSynchronize(to));
    OK(cudaEventElapsedTime(&ms, from, to));

    EXPECT(ms * 1e6f + 0.5f, 1003400); // and the call's own 3.4 us
}

static const struct litmus cases[] = {
    LITMUS(a_stream_keeps_its_order),
    LITMUS(two_streams_without_an_event_are_not_ordered),
    LITMUS(an_event_orders_two_streams),
    LITMUS(a_wait_means_the_record_before_it),
    LITMUS(a_wait_for_an_event_that_was_never_recorded_is_no_edge),
    LITMUS(edges_are_followed_over_three_streams),
    LITMUS(a_destroyed_event_still_orders),
    LITMUS(a_destroyed_stream_finishes_its_work),
    LITMUS(a_handle_does_not_name_a_younger_stream),
    LITMUS(the_legacy_stream_waits_for_blocking_streams),
    LITMUS(blocking_streams_wait_for_the_legacy_stream),
    LITMUS(two_blocking_streams_are_ordered_through_the_legacy_stream),
    LITMUS(two_blocking_streams_alone_are_not_ordered),
    LITMUS(the_legacy_stream_does_not_wait_for_non_blocking_ones),
    LITMUS(non_blocking_streams_do_not_wait_for_the_legacy_stream),
    LITMUS(the_per_thread_stream_is_a_blocking_one),
    LITMUS(each_thread_has_its_own_per_thread_stream),
    LITMUS(synchronising_the_legacy_stream_waits_for_blocking_ones),
    LITMUS(synchronising_the_device_waits_for_all),
    LITMUS(synchronising_an_event_runs_no_more_than_it_recorded),
    LITMUS(synchronising_an_event_that_was_never_recorded_returns),
    LITMUS(an_event_query_succeeds_within_a_bound),
    LITMUS(a_stream_query_succeeds_within_a_bound_while_work_is_added),
    LITMUS(a_query_of_old_work_succeeds),
    LITMUS(a_query_leaves_the_answer_as_last_error),
    {"an_event_orders_streams_of_two_devices", an_event_orders_streams_of_two_devices,
     "ACTSWAP_SIM_GPUS=2", NULL},
    {"devices_have_legacy_streams_of_their_own", devices_have_legacy_streams_of_their_own,
     "ACTSWAP_SIM_GPUS=2", NULL},
    LITMUS(a_queue_that_is_full_runs_its_oldest_work),
    LITMUS(several_threads_synchronise_at_once),
    LITMUS(a_host_function_runs_in_its_place),
    LITMUS(a_host_function_may_not_wait_for_the_device),
    LITMUS(a_host_function_may_wait_for_its_submitter),
    LITMUS(a_callback_gets_its_stream),
    LITMUS(elapsed_time_is_that_of_the_virtual_clock),
};

int test_main(int argc, char *argv[]);

int test_main(int argc, char *argv[])
{
    (void)argc, (void)argv;
    return litmus_run(cases, sizeof(cases) / sizeof(cases[0]));
}
