// SPDX-License-Identifier: Apache-2.0
#include "simcuda/cupti/time.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "simcuda/simcuda.h"

enum { NS_PER_S = 1000000000, PAIRS = 16, SLACK_NS = 1000000, NO_DEVICE = 1 << 16 };

struct pair {
    uint64_t real_ns, theirs;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of `first`
static _Atomic(CUpti_TimestampCallbackFunc) theirs;
static struct pair first;
static _Atomic int64_t shift_ns; // from the virtual clock to the real one

static uint64_t real_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t virtual_ns(void)
{
    struct sim_times times;

    // Of no device only the host's time is asked for.
    sim_times_get(NO_DEVICE, &times);
    return times.now_ns;
}

// The two clocks at one moment, as close as can be told.
static struct pair look(CUpti_TimestampCallbackFunc clock)
{
    struct pair best = {0, 0};
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < PAIRS; i++) {
        const uint64_t before = real_ns(), reading = clock(), after = real_ns();

        if (after - before < least) {
            least = after - before;
            best = (struct pair){before + least / 2, reading};
        }
    }
    return best;
}

void sim_time_use(CUpti_TimestampCallbackFunc clock)
{
    pthread_mutex_lock(&lock);
    if (clock && clock != theirs)
        first = look(clock);
    theirs = clock;
    pthread_mutex_unlock(&lock);
}

bool sim_time_is_real(void)
{
    return theirs;
}

void sim_time_enter(void)
{
    if (!theirs)
        return;

    const int64_t now = (int64_t)(real_ns() - virtual_ns());
    int64_t before = shift_ns;

    while (before < now && !atomic_compare_exchange_weak(&shift_ns, &before, now)) {
    }
}

uint64_t sim_time_host(void)
{
    return theirs ? real_ns() : virtual_ns();
}

uint64_t sim_time_device(uint64_t at_ns)
{
    return theirs ? at_ns + (uint64_t)shift_ns : at_ns;
}

void sim_time_hold(bool waited)
{
    if (!theirs)
        return;

    const uint64_t until = virtual_ns() + (uint64_t)shift_ns;

    if (until <= real_ns() + (waited ? 0 : SLACK_NS))
        return;

    const struct timespec time = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL)) {
    }
}

struct sim_scale sim_time_scale(void)
{
    const CUpti_TimestampCallbackFunc clock = theirs;
    struct sim_scale scale = {0, 0, 1};

    if (!clock)
        return scale;
    pthread_mutex_lock(&lock);
    const struct pair last = look(clock);

    scale = (struct sim_scale){first.real_ns, first.theirs, 1};
    if (last.real_ns > first.real_ns)
        scale.rate =
            (double)(last.theirs - first.theirs) / (double)(last.real_ns - first.real_ns);
    pthread_mutex_unlock(&lock);
    return scale;
}

uint64_t sim_time_scaled(const struct sim_scale *scale, uint64_t ns)
{
    return scale->to +
           (uint64_t)(int64_t)((double)(int64_t)(ns - scale->from_ns) * scale->rate);
}
