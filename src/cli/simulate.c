// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate.h"

#include "cli/check.h"
#include "cli/files.h"
#include "cli/launch.h"

#include <stdio.h>
#include <string.h>

static const char * or (const char *given, const char *otherwise)
{
    return given ? given : otherwise;
}

// Triton links what it compiles against a file named libcuda.so.1. Its kernels do nothing
// here; where values count its interpreter runs them on the host. PyTorch's own Triton
// kernels do not run in it (2.15): the operators that they stand for do, in every mode.
static int set_triton(const char *compute)
{
    char folder[PATH_MAX], driver[PATH_MAX + sizeof("/triton")];
    int err = as_files_folder(folder);
    if (err)
        return err;
    (void)snprintf(driver, sizeof(driver), "%s/triton", folder);
    err = as_launch_set("TRITON_LIBCUDA_PATH", driver);
    if (!err)
        err = as_launch_set("TORCH_DISABLE_NATIVE_JIT", "1");
    // What NVRTC's stand-in gives is empty: no later process may find it in a cache.
    if (!err)
        err = as_launch_set("USE_PYTORCH_KERNEL_CACHE", "0");
    if (!err && !strcmp(compute, "values"))
        err = as_launch_set("TRITON_INTERPRET", "1");
    // Of inductor's two ways to launch, that which says what a kernel writes.
    if (!err && !strcmp(compute, "auto"))
        err = as_launch_set("TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER", "0");
    return err;
}

int as_simulate(const struct as_options *options, const char *otherwise)
{
    const char *const compute = or (options->compute, otherwise);
    int err = as_check_simulation(options);
    if (!err)
        err = as_launch_set("ACTSWAP_SIM_GPU", or (options->gpu, AS_SIMULATE_GPU));
    if (!err)
        err = as_launch_set("ACTSWAP_SIM_COMPUTE", compute);
    if (!err)
        err = as_launch_set("ACTSWAP_SIM_ORDER", or (options->order, AS_SIMULATE_ORDER));
    if (!err)
        err = as_launch_set("ACTSWAP_SIM_CHECK", or (options->check, "off"));
    if (!err)
        err = set_triton(compute);
    return err;
}
