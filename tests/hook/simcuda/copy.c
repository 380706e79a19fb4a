// SPDX-License-Identifier: Apache-2.0
// When a copy's bytes are read and written, and when the host goes on: the table of
// NVIDIA's "API synchronization behavior".
#include <stdlib.h>
#include <string.h>

#include "litmus.h"

static void a_pinned_source_is_read_when_the_copy_runs(void)
{
    int *at = litmus_device(), *host = litmus_pinned();
    cudaStream_t stream = litmus_stream();

    *host = 1;
    OK(cudaMemcpyAsync(at, host, sizeof(int), cudaMemcpyHostToDevice, stream));
    *host = 2;
    OK(cudaStreamSynchronize(stream));

    EXPECT_BY_ORDER(litmus_peek(at), 1, 2);
}

static void a_registered_source_is_read_when_the_copy_runs(void)
{
    int *at = litmus_device(), host = 1;
    cudaStream_t stream = litmus_stream();

    OK(cudaHostRegister(&host, sizeof(host), cudaHostRegisterDefault));
    OK(cudaMemcpyAsync(at, &host, sizeof(int), cudaMemcpyHostToDevice, stream));
    __atomic_store_n(&host, 2, __ATOMIC_RELEASE);
    OK(cudaHostUnregister(&host));

    EXPECT_BY_ORDER(litmus_peek(at), 1, 2);
}

static void a_pageable_source_is_read_at_the_call(void)
{
    int *at = litmus_device(), host = 1;
    cudaStream_t stream = litmus_stream();

    OK(cudaMemcpyAsync(at, &host, sizeof(int), cudaMemcpyHostToDevice, stream));
    EXPECT_BY_ORDER(litmus_peek(at), 1, 0);
    host = 2;
    OK(cudaStreamSynchronize(stream));

    EXPECT(litmus_peek(at), 1);
}

static void a_pinned_target_is_written_when_the_copy_runs(void)
{
    int *at = litmus_device(), *host = litmus_pinned();
    cudaStream_t stream = litmus_stream();

    litmus_set(stream, at, 7);
    OK(cudaMemcpyAsync(host, at, sizeof(int), cudaMemcpyDeviceToHost, stream));
    EXPECT_BY_ORDER(litmus_peek(host), 7, 0);
    OK(cudaStreamSynchronize(stream));

    EXPECT(*host, 7);
}

static void a_pageable_target_is_written_before_the_call_returns(void)
{
    int *at = litmus_device(), host = 0;
    cudaStream_t stream = litmus_stream();

    litmus_set(stream, at, 7);
    OK(cudaMemcpyAsync(&host, at, sizeof(int), cudaMemcpyDeviceToHost, stream));

    EXPECT(host, 7);
}

static void a_plain_copy_from_pinned_memory_has_ended_when_it_returns(void)
{
    int *at = litmus_device(), *host = litmus_pinned();

    *host = 1;
    OK(cudaMemcpy(at, host, sizeof(int), cudaMemcpyHostToDevice));

    EXPECT(litmus_peek(at), 1);
}

static void a_plain_copy_from_pageable_memory_may_still_be_on_its_way(void)
{
    int *at = litmus_device(), *other = litmus_device(), host = 1;

    litmus_set(litmus_blocking_stream(), other, 7);
    OK(cudaMemcpy(at, &host, sizeof(int), cudaMemcpyHostToDevice));

    // What was queued before it has run: the copy begins with a synchronisation.
    EXPECT(litmus_peek(other), 7);
    EXPECT_BY_ORDER(litmus_peek(at), 1, 0);
    host = 2;
    OK(cudaDeviceSynchronize());
    EXPECT(litmus_peek(at), 1);
}

static void a_plain_copy_to_the_host_waits_for_blocking_streams_only(void)
{
    int *at = litmus_device(), *other = litmus_device(), host[2];

    litmus_set(litmus_blocking_stream(), at, 7);
    litmus_set(litmus_stream(), other, 7);
    OK(cudaMemcpy(&host[0], at, sizeof(int), cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(&host[1], other, sizeof(int), cudaMemcpyDefault));

    EXPECT(host[0], 7);
    EXPECT_BY_ORDER(host[1], 7, 0);
}

static void a_plain_copy_on_the_device_does_not_wait(void)
{
    int *from = litmus_device(), *to = litmus_device();

    litmus_set(NULL, from, 7);
    OK(cudaMemcpy(to, from, sizeof(int), cudaMemcpyDeviceToDevice));

    EXPECT_BY_ORDER(litmus_peek(to), 7, 0);
    OK(cudaDeviceSynchronize());
    EXPECT(litmus_peek(to), 7);
}

static void a_copy_between_host_addresses_has_ended_when_it_returns(void)
{
    int *from = litmus_pinned(), *to = litmus_pinned();

    *from = 7;
    OK(cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyHostToHost, litmus_stream()));

    EXPECT(*to, 7);
}

static void a_memset_of_the_device_does_not_wait(void)
{
    int *at = litmus_device();

    OK(cudaMemset(at, 1, sizeof(int)));

    EXPECT_BY_ORDER(litmus_peek(at), 0x01010101, 0);
    OK(cudaDeviceSynchronize());
    EXPECT(litmus_peek(at), 0x01010101);
}

static void a_memset_of_pinned_memory_has_ended_when_it_returns(void)
{
    int *host = litmus_pinned();

    OK(cudaMemset(host, 1, sizeof(int)));

    EXPECT(*host, 0x01010101);
}

static void rows_are_copied_by_their_pitches(void)
{
    unsigned char host[12] = "abcdefghijkl", back[6] = "";
    unsigned char *device;
    cudaStream_t stream = litmus_stream();

    OK(cudaMalloc((void **)&device, 64));
    OK(cudaMemcpy2DAsync(device, 16, host, 4, 2, 3, cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpy2DAsync(back, 2, device, 16, 2, 3, cudaMemcpyDeviceToHost, stream));

    EXPECT(memcmp(back, "abefij", 6), 0);
    EXPECT(cudaMemcpy2DAsync(device, 1, host, 4, 2, 3, cudaMemcpyHostToDevice, stream),
           cudaErrorInvalidPitchValue);
}

static void a_copy_past_the_end_of_an_allocation_is_refused(void)
{
    enum { BYTES = 2 << 20 };
    char *device, *host = calloc(1, BYTES + 1);

    OK(cudaMalloc((void **)&device, BYTES));
    OK(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
    EXPECT(cudaMemcpy(device, host, BYTES + 1, cudaMemcpyHostToDevice),
           cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(device + 1, host, BYTES, cudaMemcpyHostToDevice),
           cudaErrorInvalidValue);
    OK(cudaFree(device));
    EXPECT(cudaMemcpy(host, device, 1, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT(cudaMemset(device, 0, 1), cudaErrorInvalidValue);
    free(host);
}

static void a_kind_that_calls_pageable_memory_a_device_is_refused(void)
{
    int one = 1, two = 2, *device = litmus_device();

    EXPECT(cudaMemcpy(&one, &two, sizeof(int), cudaMemcpyHostToDevice),
           cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(&one, &two, sizeof(int), cudaMemcpyDeviceToHost),
           cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(device, &two, sizeof(int), (enum cudaMemcpyKind)9),
           cudaErrorInvalidValue);
    OK(cudaMemcpy(&one, &two, sizeof(int), cudaMemcpyDefault));
    EXPECT(one, 2);
    EXPECT(cudaMemset(&one, 0, sizeof(int)), cudaErrorInvalidValue);
    OK(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
}

static void freeing_device_memory_waits_for_its_device(void)
{
    int *at = litmus_device(), *other = litmus_device();

    litmus_set(litmus_stream(), at, 7);
    OK(cudaFree(other));

    EXPECT(litmus_peek(at), 7);
}

static void freeing_pinned_memory_waits_for_the_device(void)
{
    int *at = litmus_device(), *host = litmus_pinned();

    litmus_set(litmus_stream(), at, 7);
    OK(cudaFreeHost(host));

    EXPECT(litmus_peek(at), 7);
}

static size_t free_bytes(void)
{
    size_t bytes = 0, total;

    OK(cudaMemGetInfo(&bytes, &total));
    return bytes;
}

static void a_queued_free_happens_in_its_place(void)
{
    const size_t before = free_bytes();
    cudaStream_t stream = litmus_stream();
    int *at = NULL, *seen = litmus_pinned();

    OK(cudaMallocAsync((void **)&at, sizeof(int), stream));
    litmus_set(stream, at, 7);
    OK(cudaMemcpyAsync(seen, at, sizeof(int), cudaMemcpyDeviceToHost, stream));
    OK(cudaFreeAsync(at, stream));
    EXPECT_BY_ORDER(before - free_bytes(), 0, 2 << 20);
    OK(cudaStreamSynchronize(stream));

    EXPECT(before - free_bytes(), 0);
    EXPECT(*seen, 7);
    EXPECT(cudaFreeAsync(at, stream), cudaErrorInvalidValue);
}

static void a_queued_allocation_waits_for_queued_frees_when_the_card_is_full(void)
{
    cudaStream_t stream = litmus_stream();
    void *first, *second;
    const size_t all = free_bytes() & ~(size_t)((2 << 20) - 1);

    OK(cudaMallocAsync(&first, all, stream));
    OK(cudaFreeAsync(first, stream));
    OK(cudaMallocAsync(&second, all, stream));
    EXPECT(cudaMallocAsync(&first, all, stream), cudaErrorMemoryAllocation);
}

static void shapes_moves_no_bytes_of_the_device(void)
{
    enum { BIG = 1 << 20 };
    char *device, *host = malloc(BIG), *pinned;
    cudaStream_t stream = litmus_stream();

    memset(host, 1, BIG);
    OK(cudaMalloc((void **)&device, BIG));
    OK(cudaMallocHost((void **)&pinned, BIG));
    OK(cudaMemcpy(device, host, BIG, cudaMemcpyHostToDevice));
    OK(cudaMemset(device, 1, BIG));
    OK(cudaDeviceSynchronize());
    EXPECT(device[0], 0);
    OK(cudaMemcpy(host, device, BIG, cudaMemcpyDeviceToHost));
    EXPECT(host[0], 1);
    OK(cudaMemcpyAsync(host, device, 4096, cudaMemcpyDeviceToHost, stream));
    EXPECT(host[4095], 0);
    EXPECT(host[4096], 1);
    OK(cudaMemcpy(pinned, host, BIG, cudaMemcpyHostToHost));
    EXPECT(pinned[BIG - 1], 1);
    free(host);
}

static const struct litmus cases[] = {
    LITMUS(a_pinned_source_is_read_when_the_copy_runs),
    LITMUS(a_registered_source_is_read_when_the_copy_runs),
    LITMUS(a_pageable_source_is_read_at_the_call),
    LITMUS(a_pinned_target_is_written_when_the_copy_runs),
    LITMUS(a_pageable_target_is_written_before_the_call_returns),
    LITMUS(a_plain_copy_from_pinned_memory_has_ended_when_it_returns),
    LITMUS(a_plain_copy_from_pageable_memory_may_still_be_on_its_way),
    LITMUS(a_plain_copy_to_the_host_waits_for_blocking_streams_only),
    LITMUS(a_plain_copy_on_the_device_does_not_wait),
    LITMUS(a_copy_between_host_addresses_has_ended_when_it_returns),
    LITMUS(a_memset_of_the_device_does_not_wait),
    LITMUS(a_memset_of_pinned_memory_has_ended_when_it_returns),
    LITMUS(rows_are_copied_by_their_pitches),
    LITMUS(a_copy_past_the_end_of_an_allocation_is_refused),
    LITMUS(a_kind_that_calls_pageable_memory_a_device_is_refused),
    LITMUS(freeing_device_memory_waits_for_its_device),
    LITMUS(freeing_pinned_memory_waits_for_the_device),
    LITMUS(a_queued_free_happens_in_its_place),
    LITMUS(a_queued_allocation_waits_for_queued_frees_when_the_card_is_full),
    {"shapes_moves_no_bytes_of_the_device", shapes_moves_no_bytes_of_the_device,
     "ACTSWAP_SIM_COMPUTE=shapes", NULL},
};

int test_main(int argc, char *argv[]);

int test_main(int argc, char *argv[])
{
    (void)argc, (void)argv;
    return litmus_run(cases, sizeof(cases) / sizeof(cases[0]));
}
