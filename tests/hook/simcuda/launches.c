// SPDX-License-Identifier: Apache-2.0
// What has values after launches and graphs (ACTSWAP_SIM_COMPUTE=auto).
#include <string.h>

#include "litmus.h"
#include "simcuda/runtime/compiler.h"

enum { KERNEL, COPY, FILL, BODY, OTHER, COUNT };

static const char name[] = "_Z6kernelPf";
static char kernel[1]; // its address stands for the kernel's host function

static void register_kernel(void)
{
    static char binary[1];
    void **handle = __cudaRegisterFatBinary(binary);

    __cudaRegisterFunction(handle, kernel, kernel, name, -1, NULL, NULL, NULL, NULL,
                           NULL);
    __cudaRegisterFatBinaryEnd(handle);
}

static void launch(cudaStream_t stream)
{
    const dim3 one = {1, 1, 1};

    OK(cudaLaunchKernel(kernel, one, one, NULL, 0, stream));
}

static int *counted(size_t count)
{
    int *memory;

    OK(cudaMalloc((void **)&memory, count * sizeof(*memory)));
    OK(cudaMemset(memory, 0, count * sizeof(*memory)));
    return memory;
}

static enum sim_values values(const int *at)
{
    return sim_values_get(at, sizeof(*at));
}

static void launch_named(const char *as, const int *writes, cudaStream_t stream)
{
    const struct sim_access access = {
        .address = writes, .bytes = sizeof(*writes), .write = true};

    sim_launch_begin(as, &access, 1);
    launch(stream);
    sim_launch_end();
}

static void a_launch_takes_the_values_of_what_it_writes(void)
{
    const int *memory = counted(2);

    register_kernel();
    launch_named(name, memory, NULL);
    EXPECT(values(memory), SIM_UNKNOWN);
    EXPECT(values(memory + 1), SIM_KNOWN);
}

static void what_is_named_holds_for_one_launch(void)
{
    const int *memory = counted(2);
    const struct sim_access access = {
        .address = memory, .bytes = sizeof(*memory), .write = true};

    register_kernel();
    sim_launch_begin(name, &access, 1);
    launch(NULL);
    EXPECT(values(memory + 1), SIM_KNOWN);
    launch(NULL);
    EXPECT(values(memory + 1), SIM_UNKNOWN);
}

static void what_is_named_holds_for_that_kernel(void)
{
    const int *memory = counted(2);

    register_kernel();
    launch_named("another", memory, NULL);
    EXPECT(values(memory + 1), SIM_UNKNOWN);
}

static void what_is_named_ends(void)
{
    const int *memory = counted(2);
    const struct sim_access access = {
        .address = memory, .bytes = sizeof(*memory), .write = true};

    register_kernel();
    sim_launch_begin(name, &access, 1);
    sim_launch_end();
    launch(NULL);
    EXPECT(values(memory + 1), SIM_UNKNOWN);
}

static cudaGraphExec_t captured(void (*fill)(int *memory, cudaStream_t stream),
                                int *memory)
{
    const cudaStream_t stream = litmus_stream();
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    fill(memory, stream);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}

static void one_of_each(int *memory, cudaStream_t stream)
{
    launch_named(name, memory + KERNEL, stream);
    OK(cudaMemcpyAsync(memory + COPY, memory + OTHER, sizeof(*memory),
                       cudaMemcpyDeviceToDevice, stream));
    OK(cudaMemsetAsync(memory + FILL, 1, sizeof(*memory), stream));
    litmus_set(stream, memory + BODY, 1);
}

static void expect_written(const int *memory, enum sim_values written)
{
    for (int i = KERNEL; i < OTHER; i++)
        EXPECT(values(memory + i), written);
    EXPECT(values(memory + OTHER), SIM_KNOWN);
}

static void a_replay_takes_the_values_of_what_it_writes(void)
{
    int *memory = counted(COUNT);

    register_kernel();
    const cudaGraphExec_t exec = captured(one_of_each, memory);

    OK(cudaMemset(memory, 0, COUNT * sizeof(*memory)));
    expect_written(memory, SIM_KNOWN);
    OK(cudaGraphLaunch(exec, NULL));
    expect_written(memory, SIM_UNKNOWN);
}

static cudaGraphExec_t inner;

static void a_graph(int *memory, cudaStream_t stream)
{
    (void)memory;
    OK(cudaGraphLaunch(inner, stream));
}

static void so_does_a_graph_in_a_graph(void)
{
    int *memory = counted(COUNT);

    register_kernel();
    inner = captured(one_of_each, memory);
    const cudaGraphExec_t exec = captured(a_graph, memory);

    OK(cudaMemset(memory, 0, COUNT * sizeof(*memory)));
    OK(cudaGraphLaunch(exec, NULL));
    expect_written(memory, SIM_UNKNOWN);
}

static void a_launch(int *memory, cudaStream_t stream)
{
    (void)memory;
    launch(stream);
}

static void a_replay_of_an_unknown_launch_leaves_nothing(void)
{
    int *memory = counted(1);

    register_kernel();
    const cudaGraphExec_t exec = captured(a_launch, memory);

    OK(cudaMemset(memory, 0, sizeof(*memory)));
    OK(cudaGraphLaunch(exec, NULL));
    EXPECT(values(memory), SIM_UNKNOWN);
}

static void a_closed_call(int *memory, cudaStream_t stream)
{
    (void)memory, (void)stream;
    EXPECT(sim_launches_do_nothing(), true);
}

static void a_replay_after_a_closed_call_leaves_nothing(void)
{
    int *memory = counted(1);
    const cudaGraphExec_t exec = captured(a_closed_call, memory);

    OK(cudaMemset(memory, 0, sizeof(*memory)));
    OK(cudaGraphLaunch(exec, NULL));
    EXPECT(values(memory), SIM_UNKNOWN);
}

static int *pinned;

static void to_pinned(int *memory, cudaStream_t stream)
{
    OK(cudaMemcpyAsync(pinned, memory, sizeof(*memory), cudaMemcpyDeviceToHost, stream));
}

// What the replay placed there is a placeholder, whatever was there in between.
static void a_replay_parks_no_values(void)
{
    int *memory = counted(3);

    pinned = litmus_pinned();
    const cudaGraphExec_t exec = captured(to_pinned, memory);

    OK(cudaMemcpy(pinned, memory + 1, sizeof(*memory), cudaMemcpyDeviceToHost));
    OK(cudaGraphLaunch(exec, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(memory + 2, pinned, sizeof(*memory), cudaMemcpyHostToDevice));
    EXPECT(values(memory + 2), SIM_UNKNOWN);
}

#define AUTO(function)                                                                   \
    {                                                                                    \
        .name = #function, .run = function, .environment = "ACTSWAP_SIM_COMPUTE=auto"    \
    }

static const struct litmus cases[] = {
    AUTO(a_launch_takes_the_values_of_what_it_writes),
    AUTO(what_is_named_holds_for_one_launch),
    AUTO(what_is_named_holds_for_that_kernel),
    AUTO(what_is_named_ends),
    AUTO(a_replay_takes_the_values_of_what_it_writes),
    AUTO(so_does_a_graph_in_a_graph),
    AUTO(a_replay_of_an_unknown_launch_leaves_nothing),
    AUTO(a_replay_after_a_closed_call_leaves_nothing),
    AUTO(a_replay_parks_no_values),
};

int test_main(int argc, char *argv[]);

int test_main(int argc, char *argv[])
{
    (void)argc, (void)argv;
    return litmus_run(cases, sizeof(cases) / sizeof(cases[0]));
}
