// SPDX-License-Identifier: Apache-2.0
#include "core/clock.h"

#include <stdatomic.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now = {0};

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t as_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t as_clock_unix_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

uint64_t as_clock_started_unix_ns(void)
{
    static _Atomic uint64_t started;
    uint64_t value = 0;

    if (atomic_compare_exchange_strong(&started, &value, as_clock_unix_ns()))
        value = atomic_load(&started);
    return value;
}
