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

// The first answer of all threads' first ones stays.
static uint64_t keep_first(_Atomic uint64_t *first, uint64_t now)
{
    uint64_t value = 0;

    return atomic_compare_exchange_strong(first, &value, now) ? now : value;
}

uint64_t as_clock_started_ns(void)
{
    static _Atomic uint64_t started;

    return keep_first(&started, as_clock_ns());
}

uint64_t as_clock_started_unix_ns(void)
{
    static _Atomic uint64_t started;

    return keep_first(&started, as_clock_unix_ns());
}
