// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate.h"

#include "cli/check.h"
#include "cli/files.h"
#include "cli/launch.h"

static const char * or (const char *given, const char *otherwise)
{
    return given ? given : otherwise;
}

int as_simulate(const struct as_options *options)
{
    int err = as_check_simulation(options);
    if (!err)
        err = as_launch_set("ACTSWAP_SIM_GPU", or (options->gpu, AS_SIMULATE_GPU));
    if (!err)
        err = as_launch_set("ACTSWAP_SIM_COMPUTE",
                            or (options->compute, AS_SIMULATE_COMPUTE));
    if (!err)
        err = as_launch_set("ACTSWAP_SIM_ORDER", or (options->order, AS_SIMULATE_ORDER));
    return err;
}
