// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/settings.h"

enum { DEPTH_MAX = 32 };

struct as_plan {
    pthread_mutex_t lock;
    const struct as_settings *settings;
    uint64_t entered; // outermost blocks of this forward
    uint64_t last; // of the one before; 0: not known
    uint64_t all; // outermost blocks of the run
    bool backward;
};

static __thread unsigned depth __attribute__((tls_model("initial-exec")));
static __thread enum actswap_verdict verdicts[DEPTH_MAX]
    __attribute__((tls_model("initial-exec")));

struct as_plan *as_plan_create(const struct as_settings *settings)
{
    struct as_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return NULL;

    pthread_mutex_init(&plan->lock, NULL);
    plan->settings = settings;
    return plan;
}

void as_plan_destroy(struct as_plan *plan)
{
    if (!plan)
        return;
    pthread_mutex_destroy(&plan->lock);
    free(plan);
}

// In the first forward nobody knows which block is the last, nor in one that goes on
// longer than the one before: two forwards may share a backward.
static bool is_last(const struct as_plan *plan, uint64_t index)
{
    return index < plan->last && index + plan->settings->offload_keep_last >= plan->last;
}

// Under the lock.
static enum actswap_verdict decide(struct as_plan *plan)
{
    if (plan->backward)
        return ACTSWAP_KEEP;

    const uint64_t index = plan->entered++;
    switch (plan->settings->policy) {
    case AS_POLICY_OFFLOAD:
        return is_last(plan, index) ? ACTSWAP_KEEP : ACTSWAP_OFFLOAD;
    case AS_POLICY_RECOMPUTE:
        return ACTSWAP_RECOMPUTE;
    case AS_POLICY_OFF:
        break;
    }
    return ACTSWAP_KEEP;
}

static enum actswap_verdict inherit(enum actswap_verdict outer)
{
    return outer == ACTSWAP_RECOMPUTE ? ACTSWAP_KEEP : outer;
}

enum actswap_verdict as_plan_enter(struct as_plan *plan)
{
    enum actswap_verdict verdict = ACTSWAP_KEEP;

    if (depth == 0) {
        pthread_mutex_lock(&plan->lock);
        plan->all++;
        verdict = decide(plan);
        pthread_mutex_unlock(&plan->lock);
    } else if (depth <= DEPTH_MAX) {
        verdict = inherit(verdicts[depth - 1]);
    }
    if (depth < DEPTH_MAX)
        verdicts[depth] = verdict;
    depth++;
    return verdict;
}

void as_plan_exit(struct as_plan *plan)
{
    (void)plan;
    if (depth > 0)
        depth--;
}

uint64_t as_plan_blocks(struct as_plan *plan)
{
    pthread_mutex_lock(&plan->lock);
    const uint64_t all = plan->all;
    pthread_mutex_unlock(&plan->lock);
    return all;
}

void as_plan_mark(struct as_plan *plan, enum actswap_moment moment)
{
    pthread_mutex_lock(&plan->lock);
    switch (moment) {
    case ACTSWAP_FORWARD:
        plan->backward = false;
        if (plan->entered)
            plan->last = plan->entered;
        plan->entered = 0;
        break;
    case ACTSWAP_BACKWARD:
        plan->backward = true;
        break;
    case ACTSWAP_BACKWARD_END:
    case ACTSWAP_OPTIMIZER:
    case ACTSWAP_STEP:
        plan->backward = false;
        break;
    case ACTSWAP_AGAIN:
    case ACTSWAP_AGAIN_END:
        break;
    }
    pthread_mutex_unlock(&plan->lock);
}
