// SPDX-License-Identifier: Apache-2.0
// The virtual clock, on an H100 80GB: 66.9 TFLOPS of fp32, 3352 GB/s, copies in at 55.43
// and out at 55.06 GB/s. Beside each case is how long it takes, in microseconds: a kernel
// takes 1.3 beside its work, and of the host a launch 2.5, a copy 3.4, an event 1.6. Under
// every order the same.
#include <pthread.h>
#include <stdlib.h>

#include "litmus.h"

#define US(n) ((long)((n)*1000))

// A kernel of so many microseconds.
static void work(cudaStream_t stream, double us)
{
    const struct sim_effort effort = {.kernels = 1, .flops = (us - 1.3) * 66.9e6};
    const struct sim_work kernel = {.name = "work", .effort = &effort};

    OK(sim_submit(stream, &kernel, NULL, 0));
}

static void *device_memory(size_t bytes)
{
    void *memory = NULL;

    OK(cudaMalloc(&memory, bytes));
    return memory;
}

static void *pinned_memory(size_t bytes)
{
    void *memory = NULL;

    OK(cudaMallocHost(&memory, bytes));
    return memory;
}

static size_t in_bytes(double us)
{
    return (size_t)(us * 55430 + 1);
}

static void copy_in(cudaStream_t stream, double us)
{
    const size_t bytes = in_bytes(us);

    OK(cudaMemcpyAsync(device_memory(bytes), pinned_memory(bytes), bytes,
                       cudaMemcpyHostToDevice, stream));
}

static void copy_out(cudaStream_t stream, double us)
{
    const size_t bytes = (size_t)(us * 55060 + 1);

    OK(cudaMemcpyAsync(pinned_memory(bytes), device_memory(bytes), bytes,
                       cudaMemcpyDeviceToHost, stream));
}

static cudaEvent_t record(cudaStream_t stream)
{
    cudaEvent_t event = NULL;

    OK(cudaEventCreate(&event));
    OK(cudaEventRecord(event, stream));
    return event;
}

// Of two events that are done, rounded to 10 ns: a float has no more digits.
static long between(cudaEvent_t from, cudaEvent_t to)
{
    float ms = 0;

    OK(cudaDeviceSynchronize());
    OK(cudaEventElapsedTime(&ms, from, to));
    return (long)(ms * 1e5f + (ms < 0 ? -0.5f : 0.5f)) * 10;
}

static struct sim_times times(void)
{
    struct sim_times now;

    sim_times_get(0, &now);
    return now;
}

static long host(void)
{
    return (long)times().now_ns;
}

// A stream that is busy for `us`, so that the host is ahead of all that comes.
static cudaEvent_t busy(cudaStream_t stream, double us)
{
    work(stream, us);
    return record(stream);
}

static void one_stream_adds_up(void)
{
    cudaStream_t stream = litmus_stream();
    const cudaEvent_t from = busy(stream, 1000);

    work(stream, 200);
    work(stream, 300);
    copy_in(stream, 400);
    EXPECT(between(from, record(stream)), US(900)); // 200 + 300 + 400
}

static void two_streams_overlap(void)
{
    cudaStream_t one = litmus_stream(), two = litmus_stream();
    const cudaEvent_t from = busy(one, 1000);

    OK(cudaStreamWaitEvent(two, from, 0));
    work(one, 200);
    work(two, 300);
    OK(cudaStreamWaitEvent(one, record(two), 0));
    EXPECT(between(from, record(one)), US(300)); // max(200, 300)
}

static void a_copy_hides_behind_a_kernel(void)
{
    cudaStream_t kernels = litmus_stream(), copies = litmus_stream();
    const cudaEvent_t from = busy(kernels, 5000);

    OK(cudaStreamWaitEvent(copies, from, 0));
    work(kernels, 200);
    copy_in(copies, 300);
    OK(cudaStreamWaitEvent(kernels, record(copies), 0));
    EXPECT(between(from, record(kernels)), US(300)); // max(200, 300)
    EXPECT(times().in_hidden_ns, US(200));
    EXPECT(times().out_hidden_ns, 0);
}

static void an_engine_makes_one_copy_at_a_time(void)
{
    cudaStream_t one = litmus_stream(), two = litmus_stream();
    const cudaEvent_t from = busy(one, 5000);

    OK(cudaStreamWaitEvent(two, from, 0));
    copy_in(one, 200);
    copy_in(two, 300);
    const cudaEvent_t first = record(one), second = record(two);
    EXPECT(between(from, first), US(200));
    EXPECT(between(from, second), US(500)); // 200 + 300
}

static void each_direction_has_its_engine(void)
{
    cudaStream_t one = litmus_stream(), two = litmus_stream();
    const cudaEvent_t from = busy(one, 5000);

    OK(cudaStreamWaitEvent(two, from, 0));
    copy_in(one, 200);
    copy_out(two, 300);
    const cudaEvent_t in = record(one), out = record(two);
    EXPECT(between(from, in), US(200));
    EXPECT(between(from, out), US(300));
}

static void a_copy_takes_a_gap_that_it_fits_in(void)
{
    cudaStream_t late = litmus_stream(), early = litmus_stream();
    const cudaEvent_t from = busy(early, 5000);

    OK(cudaStreamWaitEvent(late, from, 0));
    work(late, 400);
    copy_in(late, 100); // 400 to 500
    copy_in(early, 300); // 0 to 300
    const cudaEvent_t one = record(early);
    copy_in(early, 200); // not in 300 to 400: 500 to 700
    const cudaEvent_t two = record(early), three = record(late);
    EXPECT(between(from, one), US(300));
    EXPECT(between(from, two), US(700));
    EXPECT(between(from, three), US(500));
}

static void an_event_is_an_edge(void)
{
    cudaStream_t one = litmus_stream(), two = litmus_stream();
    const cudaEvent_t from = busy(one, 1000);

    OK(cudaStreamWaitEvent(two, from, 0));
    work(one, 200);
    const cudaEvent_t first = record(one);
    work(one, 700);
    work(two, 100);
    OK(cudaStreamWaitEvent(two, first, 0));
    work(two, 50);
    const cudaEvent_t last = record(one);
    EXPECT(between(from, record(two)), US(250)); // max(200, 100) + 50
    EXPECT(between(from, last), US(900));
}

static void a_wait_is_for_the_record_before_it(void)
{
    cudaStream_t one = litmus_stream(), two = litmus_stream();
    const cudaEvent_t from = busy(one, 1000);

    OK(cudaStreamWaitEvent(two, from, 0));
    work(one, 200);
    const cudaEvent_t event = record(one);
    OK(cudaStreamWaitEvent(two, event, 0));
    work(one, 700);
    OK(cudaEventRecord(event, one));
    work(two, 50);
    EXPECT(between(from, record(two)), US(250)); // 200 + 50
    EXPECT(between(from, event), US(900));
}

static void a_stream_that_passed_first_is_before(void)
{
    cudaStream_t one = litmus_stream(), two = litmus_stream();
    const cudaEvent_t from = busy(one, 1000);

    OK(cudaStreamWaitEvent(two, from, 0));
    work(one, 500);
    work(two, 200);
    EXPECT(between(record(one), record(two)), -US(300)); // 200 - 500
}

static void the_legacy_stream_is_between_blocking_ones(void)
{
    cudaStream_t one = litmus_blocking_stream(), two = litmus_blocking_stream();
    const cudaEvent_t from = busy(NULL, 1000);

    work(one, 200);
    work(NULL, 100);
    work(two, 300);
    EXPECT(between(from, record(two)), US(600)); // 200 + 100 + 300
}

static void non_blocking_streams_are_beside_the_legacy_stream(void)
{
    cudaStream_t beside = litmus_stream();
    const cudaEvent_t from = busy(NULL, 1000);

    OK(cudaStreamWaitEvent(beside, from, 0));
    work(NULL, 200);
    work(beside, 300);
    const cudaEvent_t legacy = record(NULL), other = record(beside);
    EXPECT(between(from, legacy), US(200));
    EXPECT(between(from, other), US(300));
}

static void a_destroyed_blocking_stream_is_still_before_the_legacy_one(void)
{
    cudaStream_t gone = litmus_blocking_stream();
    const cudaEvent_t from = busy(NULL, 1000);

    work(gone, 200);
    OK(cudaStreamDestroy(gone));
    work(NULL, 100);
    EXPECT(between(from, record(NULL)), US(300)); // 200 + 100
}

static void short_kernels_wait_for_the_host(void)
{
    cudaStream_t stream = litmus_stream();

    work(stream, 1.3);
    const cudaEvent_t from = record(stream);
    for (int i = 0; i < 100; i++)
        work(stream, 1.3);
    const cudaEvent_t to = record(stream);

    EXPECT(between(from, to), US(251.6)); // 100 launches of 2.5 and the record's own 1.6
    EXPECT(times().stalled_in_ns, 0);
    // Each but the first waits for the host: 100 times 2.5 - 1.3, and once a record's 1.6.
    EXPECT(times().stalled_host_ns, US(120) + US(1.6));
}

static void long_kernels_do_not_wait_for_the_host(void)
{
    cudaStream_t stream = litmus_stream();
    const cudaEvent_t from = busy(stream, 100);

    for (int i = 0; i < 10; i++)
        work(stream, 30);
    EXPECT(between(from, record(stream)), US(300));
    EXPECT(times().stalled_host_ns, 0);
}

static void the_host_waits_where_it_synchronises(void)
{
    cudaStream_t stream = litmus_stream(), other = litmus_stream();
    const long before = host();

    work(stream, 500);
    EXPECT(host() - before, US(2.5)); // the launch
    const cudaEvent_t event = record(stream);
    work(stream, 200);
    work(other, 900);
    OK(cudaEventSynchronize(event));
    EXPECT(host() - before, US(502.5)); // from the launch on
    OK(cudaStreamSynchronize(stream));
    EXPECT(host() - before, US(702.5));
    OK(cudaStreamSynchronize(stream));
    EXPECT(host() - before, US(702.5));
    OK(cudaDeviceSynchronize()); // three launches and a record before the last began
    EXPECT(host() - before, US(909.1));
}

static void a_query_takes_no_time(void)
{
    cudaStream_t stream = litmus_stream();

    work(stream, 500);
    const cudaEvent_t event = record(stream);
    const long before = host();

    for (int i = 0; i < 8; i++) {
        (void)cudaEventQuery(event);
        (void)cudaStreamQuery(stream);
    }
    EXPECT(host() - before, 0);
    OK(cudaEventSynchronize(event));
    EXPECT(host() - before, US(498.4)); // all but the record
}

static void a_copy_that_waits_takes_the_hosts_time(void)
{
    const size_t bytes = in_bytes(1000);
    void *const device = device_memory(bytes), *const pinned = pinned_memory(bytes);
    const long before = host();

    work(NULL, 200);
    OK(cudaMemcpy(device, pinned, bytes, cudaMemcpyHostToDevice));
    EXPECT(host() - before, US(1202.5)); // launch + 200 + 1000: the call hides behind
}

static void pageable_memory_takes_longer(void)
{
    const size_t bytes = in_bytes(400);
    void *const device = device_memory(bytes), *const pageable = calloc(1, bytes);
    cudaStream_t stream = litmus_stream();
    const cudaEvent_t from = record(stream);
    const long before = host();

    // 0.4 of the link, and the host is busy as long.
    OK(cudaMemcpyAsync(device, pageable, bytes, cudaMemcpyHostToDevice, stream));
    EXPECT(host() - before, US(1003.4));
    EXPECT(between(from, record(stream)), US(1005)); // and the record's own 1.6
    free(pageable);
}

static void what_memory_limits_takes_bytes_over_bandwidth(void)
{
    enum { BYTES = 33520000 }; // 10 us at 3352 GB/s
    char *const memory = device_memory(2 * BYTES);
    cudaStream_t stream = litmus_stream();
    const struct sim_access accesses[] = {
        {.address = memory, .bytes = BYTES},
        {.address = memory + BYTES, .bytes = BYTES, .write = true, .unread = true}};
    const struct sim_work kernel = {.name = "copy"};
    const cudaEvent_t from = busy(stream, 1000);

    OK(sim_submit(stream, &kernel, accesses, 2));
    const cudaEvent_t one = record(stream);
    OK(cudaMemcpyAsync(memory + BYTES, memory, BYTES, cudaMemcpyDeviceToDevice, stream));
    const cudaEvent_t two = record(stream);
    OK(cudaMemsetAsync(memory, 0, BYTES, stream));
    const cudaEvent_t three = record(stream);
    EXPECT(between(from, one), US(21.3)); // read and written
    EXPECT(between(one, two), US(21.3));
    EXPECT(between(two, three), US(11.3));
}

static void each_rate_is_the_tables(void)
{
    static const struct {
        enum sim_rate rate;
        double tflops;
    } rates[] = {
        {SIM_RATE_FP64, 33.45}, {SIM_RATE_FP32, 66.9}, {SIM_RATE_TF32, 494.5},
        {SIM_RATE_FP16, 989},   {SIM_RATE_BF16, 989},  {SIM_RATE_FP8, 1978},
        {SIM_RATE_INT8, 1978},
    };
    cudaStream_t stream = litmus_stream();

    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        const struct sim_effort effort = {
            .kernels = 1, .rate = rates[i].rate, .flops = rates[i].tflops * 1e8};
        const struct sim_work kernel = {.name = "work", .effort = &effort};
        const cudaEvent_t from = busy(stream, 1000);

        OK(sim_submit(stream, &kernel, NULL, 0));
        EXPECT(between(from, record(stream)), US(101.3));
    }
}

static void stalls_are_told_by_what_was_waited_for(void)
{
    cudaStream_t kernels = litmus_stream(), lane = litmus_stream(),
                 other = litmus_stream();
    const cudaEvent_t from = busy(kernels, 5000);

    OK(cudaStreamWaitEvent(lane, from, 0));
    OK(cudaStreamWaitEvent(other, from, 0));
    work(kernels, 100);
    copy_in(lane, 300);
    OK(cudaStreamWaitEvent(kernels, record(lane), 0));
    work(kernels, 100); // 300 to 400, idle for 200
    copy_out(lane, 400); // 300 to 700
    OK(cudaStreamWaitEvent(kernels, record(lane), 0));
    work(kernels, 100); // 700 to 800, idle for 300
    work(other, 950);
    OK(cudaStreamWaitEvent(kernels, record(other), 0));
    work(kernels, 100); // 950 to 1050, idle for 150
    EXPECT(between(from, record(kernels)), US(1050));

    EXPECT(times().stalled_in_ns, US(200));
    EXPECT(times().stalled_out_ns, US(300));
    EXPECT(times().stalled_kernels_ns, US(150));
    EXPECT(times().stalled_host_ns, 0);
    EXPECT(times().kernels_ns, US(6350));
    EXPECT(times().in_ns, US(300));
    EXPECT(times().out_ns, US(400));
    EXPECT(times().in_hidden_ns, US(300)); // the other stream works until 950
    EXPECT(times().out_hidden_ns, US(400));
}

static void a_copy_on_the_kernels_own_stream_stalls_it(void)
{
    cudaStream_t stream = litmus_stream();

    work(stream, 1000);
    copy_in(stream, 200);
    work(stream, 100);
    EXPECT(times().stalled_in_ns, US(200));
    EXPECT(times().stalled_host_ns, 0);
}

// Far more copies than are kept apart, each with a kernel beside half of it.
static void what_is_hidden_is_counted_over_any_length(void)
{
    enum { ROUNDS = 3000 };
    cudaStream_t kernels = litmus_stream(), lane = litmus_stream();
    const size_t bytes = in_bytes(100);
    void *const device = device_memory(bytes), *const pinned = pinned_memory(bytes);

    for (int i = 0; i < ROUNDS; i++) {
        const cudaEvent_t begun = record(lane);

        OK(cudaStreamWaitEvent(kernels, begun, 0));
        OK(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, lane));
        work(kernels, 50);
        if (i % 100 == 99)
            OK(cudaDeviceSynchronize());
        else
            OK(cudaStreamWaitEvent(lane, record(kernels), 0));
        OK(cudaEventDestroy(begun));
    }
    OK(cudaDeviceSynchronize());
    EXPECT(times().in_ns, ROUNDS * US(100));
    EXPECT(times().in_hidden_ns, ROUNDS * US(50));
}

static void a_graph_takes_one_launch_of_the_host(void)
{
    cudaStream_t stream = litmus_stream(), fork = litmus_stream();
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    work(stream, 100);
    OK(cudaStreamWaitEvent(fork, record(stream), 0));
    work(stream, 200);
    work(fork, 300);
    OK(cudaStreamWaitEvent(stream, record(fork), 0));
    work(stream, 50);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));

    const cudaEvent_t from = busy(stream, 1000);
    const long before = host();

    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, stream));
    EXPECT(host() - before, US(5));
    EXPECT(between(from, record(stream)), US(900)); // twice 100 + max(200, 300) + 50
    EXPECT(times().stalled_kernels_ns, 0);
}

static void a_kernel_of_which_nothing_is_known_is_counted(void)
{
    const struct sim_effort effort = {.kernels = 1, .unknown = true};
    const struct sim_work kernel = {.name = "work", .effort = &effort};

    OK(sim_submit(NULL, &kernel, NULL, 0));
    work(NULL, 100);
    EXPECT(times().kernels, 2);
    EXPECT(times().unknown, 1);
}

static void devices_have_engines_of_their_own(void)
{
    const size_t bytes = in_bytes(300);
    cudaStream_t here = litmus_stream();
    const cudaEvent_t from = busy(here, 5000);
    void *const first = device_memory(bytes);

    copy_in(here, 200);
    const cudaEvent_t to = record(here);
    float ms = 0;
    OK(cudaSetDevice(1));

    cudaStream_t there = litmus_stream();
    void *const second = device_memory(bytes);

    OK(cudaStreamWaitEvent(there, from, 0));
    copy_in(there, 300);
    // Out of the first and in to the second at the slower of both rates: 302.0.
    OK(cudaMemcpyPeerAsync(second, 1, first, 0, bytes, there));
    EXPECT(between(from, record(there)) / 1000, 602);
    OK(cudaEventSynchronize(to));
    OK(cudaEventElapsedTime(&ms, from, to));
    EXPECT(ms * 1000 + 0.5f, 200);

    struct sim_times other;

    sim_times_get(1, &other);
    EXPECT(other.in_ns / 1000, 602);
    EXPECT(times().out_ns / 1000, 302);
}

static void *submit_and_wait(void *stream)
{
    work(stream, 500);
    OK(cudaStreamSynchronize(stream));
    return NULL;
}

static void threads_share_the_hosts_time(void)
{
    const long before = host();
    pthread_t thread;

    EXPECT(pthread_create(&thread, NULL, submit_and_wait, litmus_stream()), 0);
    EXPECT(pthread_join(thread, NULL), 0);
    EXPECT(host() - before, US(502.5));
}

static const struct litmus cases[] = {
    LITMUS(one_stream_adds_up),
    LITMUS(two_streams_overlap),
    LITMUS(a_copy_hides_behind_a_kernel),
    LITMUS(an_engine_makes_one_copy_at_a_time),
    LITMUS(each_direction_has_its_engine),
    LITMUS(a_copy_takes_a_gap_that_it_fits_in),
    LITMUS(an_event_is_an_edge),
    LITMUS(a_wait_is_for_the_record_before_it),
    LITMUS(a_stream_that_passed_first_is_before),
    LITMUS(the_legacy_stream_is_between_blocking_ones),
    LITMUS(non_blocking_streams_are_beside_the_legacy_stream),
    LITMUS(a_destroyed_blocking_stream_is_still_before_the_legacy_one),
    LITMUS(short_kernels_wait_for_the_host),
    LITMUS(long_kernels_do_not_wait_for_the_host),
    LITMUS(the_host_waits_where_it_synchronises),
    LITMUS(a_query_takes_no_time),
    LITMUS(a_copy_that_waits_takes_the_hosts_time),
    LITMUS(pageable_memory_takes_longer),
    LITMUS(what_memory_limits_takes_bytes_over_bandwidth),
    LITMUS(each_rate_is_the_tables),
    LITMUS(stalls_are_told_by_what_was_waited_for),
    LITMUS(a_copy_on_the_kernels_own_stream_stalls_it),
    LITMUS(what_is_hidden_is_counted_over_any_length),
    LITMUS(a_graph_takes_one_launch_of_the_host),
    LITMUS(a_kernel_of_which_nothing_is_known_is_counted),
    {.name = "devices_have_engines_of_their_own",
     .run = devices_have_engines_of_their_own,
     .environment = "ACTSWAP_SIM_GPUS=2"},
    LITMUS(threads_share_the_hosts_time),
};

int test_main(int argc, char *argv[]);

int test_main(int argc, char *argv[])
{
    (void)argc, (void)argv;
    return litmus_run(cases, sizeof(cases) / sizeof(cases[0]));
}
