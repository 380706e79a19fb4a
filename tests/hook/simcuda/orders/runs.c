// SPDX-License-Identifier: Apache-2.0
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 2, ORDER_SECONDS = 600, AT_ONCE = 16, RUNS_MORE = 1024 };

struct tried *tried_create(size_t count)
{
    void *memory = mmap(NULL, count * sizeof(struct tried), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static void run_one(struct tried *tried)
{
    struct seen seen;

    program_run(&tried->program, &seen);

    const int which = model_find(&tried->model, &seen);
    const bool races = tried->model.races >> seen.queries & 1;

    tried->trace = tried->trace * 1000003 + (unsigned long)which;
    if (which >= 0)
        tried->seen[which] = 1;
    else
        __atomic_fetch_add(&tried->wrong_outcomes, 1, __ATOMIC_RELAXED);
    if (seen.races)
        __atomic_fetch_add(&tried->raced, 1, __ATOMIC_RELAXED);
    else
        __atomic_fetch_add(&tried->clean, 1, __ATOMIC_RELAXED);
    if (!tried->unseen && races != (seen.races > 0))
        __atomic_fetch_add(&tried->wrong_verdicts, 1, __ATOMIC_RELAXED);
    if (which < 0 || (!tried->unseen && races != (seen.races > 0)))
        tried->wrong = seen;
}

static void run_order(struct tried *tried, size_t count, const char *order,
                      unsigned times)
{
    alarm(ORDER_SECONDS);
    setenv("ACTSWAP_SIM_ORDER", order, 1);
    setenv("ACTSWAP_SIM_COMPUTE", "values", 1);
    setenv("ACTSWAP_SIM_GPUS", "2", 1);
    setenv("ACTSWAP_SIM_CHECK", "races", 1);
    if (!freopen("/dev/null", "w", stderr)) // what the checker says
        _exit(1);
    for (unsigned n = 0; n < times; n++)
        for (size_t i = 0; i < count; i++)
            if (!tried[i].left_out)
                run_one(&tried[i]);
    fflush(NULL);
    _exit(0);
}

static bool wait_for_one(const char *what)
{
    int status;

    if (wait(&status) < 0)
        return false;
    if (status)
        fprintf(stderr, "# a process failed (%s): status %x\n", what, (unsigned)status);
    return !status;
}

bool tried_run(struct tried *tried, size_t count, unsigned long seed, unsigned seeds,
               unsigned times)
{
    bool good = true;
    int running = 0;

    fflush(NULL);
    for (unsigned i = 0; i < seeds + 2; i++) {
        char order[32];

        (void)snprintf(order, sizeof(order), "seed:%lu", seed + i - 2);
        if (i < 2)
            (void)snprintf(order, sizeof(order), "%s", i ? "late" : "early");
        if (running == PROCESSES) {
            good = wait_for_one(order) && good;
            running--;
        }

        const pid_t child = fork();

        if (!child)
            run_order(tried, count, order, i < 2 ? 1 : times);
        good = good && child > 0;
        running += child > 0;
    }
    for (; running; running--)
        good = wait_for_one("at the end") && good;
    return good;
}

static unsigned long unseen(const struct tried *tried)
{
    unsigned long count = 0;

    for (int i = 0; i < tried->model.outcome_count; i++)
        count += !tried->seen[i];
    return count;
}

static unsigned long leave_out_covered(struct tried *tried, size_t count)
{
    unsigned long left = 0;

    for (size_t i = 0; i < count; i++) {
        left += unseen(&tried[i]);
        tried[i].left_out = !unseen(&tried[i]);
    }
    return left;
}

unsigned long tried_cover(struct tried *tried, size_t count, unsigned long seed,
                          unsigned most)
{
    unsigned long left = leave_out_covered(tried, count);

    for (unsigned used = 0; left && used < most; used += AT_ONCE) {
        // The fewer there are, the more often each is tried.
        const unsigned times = AT_ONCE + RUNS_MORE / (unsigned)left;

        if (!tried_run(tried, count, seed + used, AT_ONCE, times))
            break;
        left = leave_out_covered(tried, count);
    }
    for (size_t i = 0; i < count; i++)
        tried[i].left_out = false;
    return left;
}

static unsigned long trace_order(struct tried *tried, size_t count, const char *order)
{
    unsigned long all = 0;

    for (size_t i = 0; i < count; i++)
        tried[i].trace = 0;
    fflush(NULL);
    if (!fork())
        run_order(tried, count, order, 3);
    if (!wait_for_one(order))
        return 0;
    for (size_t i = 0; i < count; i++)
        all = all * 1000003 + tried[i].trace;
    return all;
}

bool tried_repeat(struct tried *tried, size_t count, unsigned long seed)
{
    char order[32];

    (void)snprintf(order, sizeof(order), "seed:%lu", seed);

    const unsigned long first = trace_order(tried, count, order);

    return first && first == trace_order(tried, count, order);
}

static void print_seen(const struct seen *seen)
{
    for (int i = 0; i < seen->count; i++)
        fprintf(stderr, "%s%d", i ? " " : "", seen->at[i]);
}

bool tried_judge(const struct tried *tried, bool covered)
{
    bool good = true;

    if (tried->wrong_outcomes || tried->wrong_verdicts) {
        fprintf(stderr, "# %s: %lu outcomes that no order allows, %lu wrong verdicts: ",
                tried->program.text, tried->wrong_outcomes, tried->wrong_verdicts);
        print_seen(&tried->wrong);
        fprintf(stderr, " (%lu reports)\n", tried->wrong.races);
        good = false;
    }
    for (int i = 0; i < tried->model.outcome_count && covered; i++) {
        if (tried->seen[i])
            continue;
        fprintf(stderr, "# %s: never seen: ", tried->program.text);
        print_seen(&tried->model.outcomes[i]);
        fprintf(stderr, "\n");
        good = false;
    }
    return good;
}
