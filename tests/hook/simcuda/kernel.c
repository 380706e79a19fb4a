// SPDX-License-Identifier: Apache-2.0
// Launches, host passes, occupancy, missing functions, the driver and the guard.
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "litmus.h"
#include "simcuda/runtime/compiler.h"

static int argument_count;
static char **arguments;

static char kernel[1]; // its address stands for a kernel's host function

static void register_kernel(void)
{
    static char binary[1];
    void **handle = __cudaRegisterFatBinary(binary);

    __cudaRegisterFunction(handle, kernel, kernel, "_Z6kernelPf", -1, NULL, NULL, NULL,
                           NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
}

static cudaError_t launch(unsigned threads)
{
    const dim3 grid = {1, 1, 1}, block = {threads, 1, 1};

    return cudaLaunchKernel(kernel, grid, block, NULL, 0, NULL);
}

static void launch_once(void)
{
    register_kernel();
    launch(32);
}

static void launch_by_the_driver(void)
{
    CUmodule module;
    CUfunction function;

    EXPECT(cuModuleLoadData(&module, "image"), CUDA_SUCCESS);
    EXPECT(cuModuleGetFunction(&function, module, "triton_poi_0"), CUDA_SUCCESS);
    cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

static void a_launch_in_a_host_pass_does_nothing(void)
{
    int *at = litmus_device();

    register_kernel();
    sim_host_pass_enter("aten::mm");
    sim_host_pass_enter("aten::t");
    sim_host_pass_leave();
    EXPECT(sim_in_host_pass(), true);
    OK(launch(32));
    OK(cudaMemset(at, 1, sizeof(int)));
    OK(cudaMemcpy(at, &(int){5}, sizeof(int), cudaMemcpyHostToDevice));
    sim_host_pass_leave();
    EXPECT(sim_in_host_pass(), false);
    OK(cudaDeviceSynchronize());

    EXPECT(litmus_peek(at), 0);
}

static void a_launch_that_is_allowed_passes(void)
{
    register_kernel();
    sim_launches_allow();
    OK(launch(32));
    sim_launches_forbid();
    OK(cudaDeviceSynchronize());
}

static void shapes_launches_nothing(void)
{
    launch_once();
    launch_by_the_driver();
    OK(cudaDeviceSynchronize());
}

static void after_a_launch_nothing_has_values(void)
{
    int *at = litmus_device();

    OK(cudaMemset(at, 0, sizeof(*at)));
    EXPECT(sim_values_get(at, sizeof(*at)), SIM_KNOWN);
    launch_once();
    EXPECT(sim_values_get(at, sizeof(*at)), SIM_UNKNOWN);
    OK(cudaMemset(at, 0, sizeof(*at)));
    launch_by_the_driver();
    EXPECT(sim_values_get(at, sizeof(*at)), SIM_UNKNOWN);
}

static void read_in_a_host_pass(void)
{
    int *at = litmus_device(), value;

    sim_host_pass_enter("aten::nonzero");
    sim_host_pass_enter("aten::sum");
    sim_host_pass_leave();
    cudaMemcpy(&value, at, sizeof(value), cudaMemcpyDeviceToHost);
}

static void what_a_card_would_refuse_is_refused(void)
{
    static char stranger[1];
    const dim3 one = {1, 1, 1}, none = {0, 1, 1};
    struct cudaFuncAttributes attributes;

    register_kernel();
    EXPECT(cudaLaunchKernel(stranger, one, one, NULL, 0, NULL),
           cudaErrorInvalidDeviceFunction);
    EXPECT(launch(1025), cudaErrorInvalidConfiguration);
    EXPECT(cudaLaunchKernel(kernel, none, one, NULL, 0, NULL),
           cudaErrorInvalidConfiguration);
    EXPECT(cudaLaunchKernel(kernel, one, one, NULL, 300000, NULL),
           cudaErrorInvalidConfiguration);
    EXPECT(cudaFuncGetAttributes(&attributes, stranger), cudaErrorInvalidDeviceFunction);
    OK(cudaFuncGetAttributes(&attributes, kernel));
    EXPECT(attributes.binaryVersion, 90);
    EXPECT(attributes.ptxVersion, 90);
    OK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
    EXPECT(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 232449),
        cudaErrorInvalidValue);
}

static int occupancy(int block, size_t shared_bytes)
{
    int blocks = -1;

    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block,
                                                     shared_bytes));
    return blocks;
}

static void occupancy_follows_from_the_block(void)
{
    register_kernel();
    EXPECT(occupancy(1024, 0), 2); // 2048 threads, 65536 registers of 32
    EXPECT(occupancy(256, 0), 8); // threads
    EXPECT(occupancy(257, 0), 7); // whole warps
    EXPECT(occupancy(32, 0), 32); // blocks
    EXPECT(occupancy(32, 116000), 1); // shared memory with 1 KiB of the system's
    EXPECT(occupancy(32, 115712), 2);
}

static void occupancy_is_limited_by_threads(void)
{
    register_kernel();
    EXPECT(occupancy(1024, 0), 1);
    EXPECT(occupancy(512, 0), 2);
    EXPECT(occupancy(32, 0), 16);
}

static void launch_configurations_are_a_stack_of_each_thread(void)
{
    const dim3 one = {1, 2, 3}, two = {4, 5, 6};
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream, seen;

    stream = litmus_stream();
    EXPECT(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &seen),
           cudaErrorMissingConfiguration);
    EXPECT(__cudaPushCallConfiguration(one, two, 7, stream), 0);
    EXPECT(__cudaPushCallConfiguration(two, one, 8, NULL), 0);
    OK(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &seen));
    EXPECT(grid.x == 4 && block.z == 3 && shared_bytes == 8 && !seen, true);
    OK(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &seen));
    EXPECT(grid.y == 2 && block.y == 5 && shared_bytes == 7 && seen == stream, true);
}

static void every_missing_function_says_so(void)
{
    FILE *names = argument_count > 1 ? fopen(arguments[1], "r") : NULL;
    void *runtime = dlopen("libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD);
    char name[128];
    int count = 0;

    EXPECT(names != NULL && runtime != NULL, true);
    EXPECT(freopen("/dev/null", "w", stderr) != NULL, true);
    while (names && fscanf(names, "%127s", name) == 1) {
        cudaError_t (*function)(void) = (cudaError_t(*)(void))dlsym(runtime, name);

        if (!function || function() != cudaErrorNotSupported)
            _Exit(1);
        count++;
    }
    EXPECT(count > 200, true);
}

static void the_driver_shares_the_runtimes_books(void)
{
    CUdeviceptr address;
    CUcontext context;
    size_t before, after, total;
    int active = -1, value;
    void *function;

    EXPECT(cuInit(0), CUDA_SUCCESS);
    EXPECT(cuDevicePrimaryCtxGetState(0, NULL, &active), CUDA_SUCCESS);
    EXPECT(active, 0);
    EXPECT(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    EXPECT(context == NULL, true);
    OK(cudaMemGetInfo(&before, &total));
    EXPECT(cuDevicePrimaryCtxGetState(0, NULL, &active), CUDA_SUCCESS);
    EXPECT(active, 1);
    EXPECT(cuMemAlloc_v2(&address, 1), CUDA_SUCCESS);
    EXPECT(cuMemGetInfo_v2(&after, &total), CUDA_SUCCESS);
    EXPECT(before - after, 2 << 20);
    EXPECT(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
           CUDA_SUCCESS);
    EXPECT(value, CU_MEMORYTYPE_DEVICE);
    EXPECT(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 (CUdeviceptr)&value),
           CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFree_v2(address), CUDA_SUCCESS);
    OK(cudaGetDriverEntryPointByVersion("cuMemFree", &function, 12000, 0, NULL));
    EXPECT(function == (void *)cuMemFree_v2, true);
}

static void the_private_table_is_not_there(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *runtime = dlopen("libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD);
    void *function = driver;

    EXPECT(driver != NULL && runtime != NULL, true);
    EXPECT(dlsym(driver, "cuGetExportTable") == NULL, true);
    EXPECT(dlsym(runtime, "cudaGetExportTable") == NULL, true);
    OK(cudaGetDriverEntryPointByVersion("cuGetExportTable", &function, 12000, 0, NULL));
    EXPECT(function == NULL, true);
}

static void a_call_into_a_stand_in_is_said_and_counted(void)
{
    void *library =
        argument_count > 2 ? dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    long (*create)(void) = library ? (long (*)(void))dlsym(library, "cudnnCreate") : NULL;
    size_t (*version)(void) =
        library ? (size_t(*)(void))dlsym(library, "cudnnGetVersion") : NULL;

    EXPECT(sim_closed_calls(), 0);
    EXPECT(version ? version() : 0, 92600);
    EXPECT(sim_closed_calls(), 0);
    EXPECT(create ? create() : 0, 3000);
    EXPECT(create ? create() : 0, 3000);
    EXPECT(sim_closed_calls(), 2);
    sim_fail("said above"); // so that the harness looks at the message
}

static void work_of_cublas_does_nothing_where_launches_do(void)
{
    void *library =
        argument_count > 5 ? dlopen(arguments[5], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*create)(void **) =
        library ? (int (*)(void **))dlsym(library, "cublasCreate_v2") : NULL;
    long (*multiply)(void) =
        library ? (long (*)(void))dlsym(library, "cublasGemmEx") : NULL;
    void *first = NULL, *second = NULL;

    EXPECT(library && create && multiply, true);
    EXPECT(create(&first) | create(&second), 0);
    EXPECT(first && second && first != second, true);
    sim_host_pass_enter("aten::mm");
    EXPECT(multiply(), 0);
    sim_host_pass_leave();
    EXPECT(sim_closed_calls(), 0);
    EXPECT(multiply(), 15);
    EXPECT(sim_closed_calls(), 1);
    sim_fail("said above");
}

static void the_guard_finds_a_foreign_library(void)
{
    char message[4096] = "x";

    EXPECT(sim_guard(message, sizeof(message)), 0);
    EXPECT(message[0], 0);
    EXPECT(argument_count > 3 && dlopen(arguments[3], RTLD_NOW | RTLD_LOCAL), true);
    EXPECT(sim_guard(message, sizeof(message)), 1);
    EXPECT(strstr(message, "libcudnn_ops.so.9") != NULL, true);
}

static void the_guard_finds_a_foreign_library_under_another_name(void)
{
    char message[4096] = "x";

    EXPECT(argument_count > 4 && dlopen(arguments[4], RTLD_NOW | RTLD_LOCAL), true);
    EXPECT(sim_guard(message, sizeof(message)), 1);
    EXPECT(strstr(message, "renamed.so") != NULL, true);
}

static const struct litmus cases[] = {
    {"a_kernel_without_a_body_ends_the_run", launch_once, NULL,
     "kernel _Z6kernelPf was launched under ACTSWAP_SIM_COMPUTE=values"},
    {"a_kernel_of_the_driver_without_a_body_ends_the_run", launch_by_the_driver, NULL,
     "kernel triton_poi_0 was launched"},
    {"a_read_in_a_host_pass_ends_the_run", read_in_a_host_pass, NULL,
     "operator aten::nonzero: its host code reads a value from the device"},
    LITMUS(a_launch_in_a_host_pass_does_nothing),
    LITMUS(a_launch_that_is_allowed_passes),
    {"shapes_launches_nothing", shapes_launches_nothing, "ACTSWAP_SIM_COMPUTE=shapes",
     NULL},
    {"after_a_launch_nothing_has_values", after_a_launch_nothing_has_values,
     "ACTSWAP_SIM_COMPUTE=auto", NULL},
    LITMUS(what_a_card_would_refuse_is_refused),
    LITMUS(occupancy_follows_from_the_block),
    {"occupancy_is_limited_by_threads", occupancy_is_limited_by_threads,
     "ACTSWAP_SIM_GPU=t4", NULL},
    LITMUS(launch_configurations_are_a_stack_of_each_thread),
    LITMUS(every_missing_function_says_so),
    LITMUS(the_driver_shares_the_runtimes_books),
    LITMUS(the_private_table_is_not_there),
    {"a_call_into_a_stand_in_is_said_and_counted",
     a_call_into_a_stand_in_is_said_and_counted, NULL,
     "simcuda: closed library called: cudnnCreate\nsimcuda: error: said above"},
    {"work_of_cublas_does_nothing_where_launches_do",
     work_of_cublas_does_nothing_where_launches_do, NULL,
     "simcuda: closed library called: cublasGemmEx\nsimcuda: error: said above"},
    LITMUS(the_guard_finds_a_foreign_library),
    LITMUS(the_guard_finds_a_foreign_library_under_another_name),
};

int test_main(int argc, char *argv[]);

int test_main(int argc, char *argv[])
{
    argument_count = argc;
    arguments = argv;
    return litmus_run(cases, sizeof(cases) / sizeof(cases[0]));
}
