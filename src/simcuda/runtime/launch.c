// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/launch.h"

#include <string.h>

#include "simcuda/runtime/values.h"
#include "simcuda/simcuda.h"

static bool (*pass_readable)(const void *address);
static __thread unsigned pass_depth;
static __thread const char *pass_name;
static __thread unsigned allow_depth;

// The next launch of `kernel` writes only what these do; NULL: nothing is known.
static __thread struct named {
    const char *kernel;
    const struct sim_access *accesses;
    size_t count;
} named;

void sim_host_pass_enter(const char *op)
{
    if (!pass_depth++)
        pass_name = op;
}

void sim_host_pass_leave(void)
{
    if (!--pass_depth)
        pass_name = NULL;
}

bool sim_in_host_pass(void)
{
    return pass_depth > 0;
}

void sim_host_pass_readable(bool (*readable)(const void *address))
{
    pass_readable = readable;
}

bool sim_host_pass_reads(const void *address)
{
    return pass_readable && pass_readable(address);
}

const char *sim_host_pass_name(void)
{
    return pass_name ? pass_name : "(unnamed)";
}

void sim_launches_allow(void)
{
    allow_depth++;
}

void sim_launches_forbid(void)
{
    allow_depth--;
}

void sim_launch_begin(const char *kernel, const struct sim_access *accesses, size_t count)
{
    named = (struct named){kernel, accesses, count};
}

void sim_launch_end(void)
{
    named = (struct named){0};
}

bool sim_launch_leaves(const char *kernel, struct sim_lost *lost)
{
    const bool known = named.kernel && !strcmp(named.kernel, kernel);

    *lost = (struct sim_lost){.all = !known && !allow_depth};
    if (known)
        *lost = (struct sim_lost){.accesses = named.accesses, .count = named.count};
    sim_launch_end();
    sim_values_lose(lost);
    return allow_depth || sim_compute() != SIM_VALUES;
}

bool sim_launches_do_nothing(void)
{
    if (pass_depth || allow_depth)
        return true;
    sim_values_lose_always();
    return sim_compute() != SIM_VALUES;
}
