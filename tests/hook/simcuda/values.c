// SPDX-License-Identifier: Apache-2.0
// Which memory has values under ACTSWAP_SIM_COMPUTE=auto.
#include <stdlib.h>
#include <string.h>

#include "litmus.h"

enum { ROW = 4096 };

static char *device_memory(size_t bytes)
{
    char *memory;

    OK(cudaMalloc((void **)&memory, bytes));
    return memory;
}

static char *pinned_memory(size_t bytes)
{
    char *memory;

    OK(cudaMallocHost((void **)&memory, bytes));
    return memory;
}

static void write_one(void *arg)
{
    memset(arg, 1, ROW);
}

// Writes a row, after reading one if `from` is given.
static void work(char *to, const char *from, enum sim_assumption assumes, bool gaps)
{
    const struct sim_work work = {
        .name = "work", .run = write_one, .arg = to, .assumes = assumes};
    const struct sim_access accesses[] = {
        {.address = to, .bytes = ROW, .write = true, .unread = true, .gaps = gaps},
        {.address = from, .bytes = ROW},
    };

    OK((cudaError_t)sim_submit(NULL, &work, accesses, from ? 2 : 1));
}

static void memory_has_no_values_until_it_is_written(void)
{
    char *memory = device_memory(ROW), host[ROW];

    EXPECT(sim_values_get(memory, ROW), SIM_UNKNOWN);
    OK(cudaMemcpy(memory + 10, host, 20, cudaMemcpyHostToDevice));
    EXPECT(sim_values_get(memory + 10, 20), SIM_KNOWN);
    EXPECT(sim_values_get(memory + 9, 20), SIM_UNKNOWN);
    EXPECT(sim_values_get(memory + 11, 20), SIM_UNKNOWN);
    OK(cudaMemset(memory, 0, ROW));
    EXPECT(sim_values_get(memory, ROW), SIM_KNOWN);
    OK(cudaFree(memory));
    EXPECT(sim_values_get(memory, ROW), SIM_UNKNOWN);
}

static void work_runs_only_on_values(void)
{
    char *memory = device_memory(3 * ROW);

    work(memory, memory + ROW, SIM_ASSUMES_NOTHING, false);
    OK(cudaDeviceSynchronize());
    EXPECT(memory[0], 0);
    EXPECT(sim_values_get(memory, ROW), SIM_UNKNOWN);

    work(memory + ROW, NULL, SIM_ASSUMES_ANSWER, false);
    work(memory, memory + ROW, SIM_ASSUMES_NOTHING, false);
    OK(cudaDeviceSynchronize());
    EXPECT(memory[0], 1);
    EXPECT(sim_values_get(memory, 2 * ROW), SIM_ASSUMED);

    work(memory, memory + 2 * ROW, SIM_ASSUMES_NOTHING, false);
    EXPECT(sim_values_get(memory, ROW), SIM_UNKNOWN);
    EXPECT(sim_values_get(memory + ROW, ROW), SIM_ASSUMED);
}

static void gaps_gain_nothing(void)
{
    char *memory = device_memory(ROW);

    work(memory, NULL, SIM_ASSUMES_NOTHING, true);
    EXPECT(sim_values_get(memory, ROW), SIM_UNKNOWN);
    OK(cudaMemset(memory, 0, ROW));
    work(memory, NULL, SIM_ASSUMES_NOTHING, true);
    EXPECT(sim_values_get(memory, ROW), SIM_KNOWN);
}

static void a_read_of_no_value_gives_the_placeholder(void)
{
    char *memory = device_memory(ROW);
    const struct sim_element element = {{7, 8}, 2, true, false};
    char host[6] = {1, 1, 1, 1, 1, 1};

    OK(cudaMemcpy(host, memory, 5, cudaMemcpyDeviceToHost));
    EXPECT(host[0] + host[4], 0);
    EXPECT(host[5], 1);
    sim_element_set(&element);
    OK(cudaMemcpy(host, memory, 5, cudaMemcpyDeviceToHost));
    EXPECT(memcmp(host, "\7\10\7\10\7\1", 6), 0);
}

static void large_copies_bring_no_values(void)
{
    const struct sim_element integers = {{0}, 8, true, true};
    const size_t bytes = SIM_AUTO_FLOATS + 8;
    char *memory = device_memory(bytes), *host = calloc(1, bytes);

    OK(cudaMemcpy(memory, host, bytes - 8, cudaMemcpyHostToDevice));
    EXPECT(sim_values_get(memory, bytes - 8), SIM_KNOWN);
    OK(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice));
    EXPECT(sim_values_get(memory, 1), SIM_UNKNOWN);
    sim_element_set(&integers);
    OK(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice));
    EXPECT(sim_values_get(memory, bytes), SIM_KNOWN);
    free(host);
}

static void pinned_memory_keeps_what_it_was_given(void)
{
    char *memory = device_memory(2 * ROW), *host = pinned_memory(ROW);
    cudaStream_t stream = litmus_stream();

    host[0] = 5; // of an earlier use
    OK(cudaMemcpyAsync(host, memory, ROW, cudaMemcpyDeviceToHost, stream));
    OK(cudaMemcpyAsync(memory + ROW, host, ROW, cudaMemcpyHostToDevice, stream));
    EXPECT(sim_values_get(memory + ROW, ROW), SIM_UNKNOWN);
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpyAsync(memory + ROW, host, ROW, cudaMemcpyHostToDevice, stream));
    EXPECT(sim_values_get(memory + ROW, ROW), SIM_UNKNOWN);
    host[ROW - 1] = 1;
    OK(cudaMemcpyAsync(memory + ROW, host, ROW, cudaMemcpyHostToDevice, stream));
    EXPECT(sim_values_get(memory + ROW, ROW), SIM_KNOWN);
}

static void copies_on_the_device_carry_values_along(void)
{
    char *memory = device_memory(2 * ROW);

    OK(cudaMemset(memory, 3, ROW));
    OK(cudaMemcpy(memory + ROW, memory, ROW, cudaMemcpyDeviceToDevice));
    EXPECT(sim_values_get(memory, 2 * ROW), SIM_KNOWN);
    OK(cudaDeviceSynchronize());
    EXPECT(memory[2 * ROW - 1], 3);
}

static void neighbours_do_not_change(void)
{
    char *memory = device_memory(5 * ROW);

    OK(cudaMemset(memory, 0, 5 * ROW));
    work(memory + 2 * ROW, NULL, SIM_ASSUMES_ANSWER, false);
    EXPECT(sim_values_get(memory, 2 * ROW), SIM_KNOWN);
    EXPECT(sim_values_get(memory + 3 * ROW, 2 * ROW), SIM_KNOWN);
    EXPECT(sim_values_get(memory, 5 * ROW), SIM_ASSUMED);
    OK(cudaMemset(memory + 2 * ROW, 0, ROW));
    EXPECT(sim_values_get(memory, 5 * ROW), SIM_KNOWN);
}

#define AUTO(function)                                                                   \
    {                                                                                    \
        .name = #function, .run = function, .environment = "ACTSWAP_SIM_COMPUTE=auto"    \
    }

static const struct litmus cases[] = {
    AUTO(memory_has_no_values_until_it_is_written),
    AUTO(work_runs_only_on_values),
    AUTO(gaps_gain_nothing),
    AUTO(a_read_of_no_value_gives_the_placeholder),
    AUTO(large_copies_bring_no_values),
    AUTO(pinned_memory_keeps_what_it_was_given),
    AUTO(copies_on_the_device_carry_values_along),
    AUTO(neighbours_do_not_change),
};

int test_main(int argc, char *argv[]);

int test_main(int argc, char *argv[])
{
    (void)argc, (void)argv;
    return litmus_run(cases, sizeof(cases) / sizeof(cases[0]));
}
