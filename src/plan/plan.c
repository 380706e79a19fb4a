// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/settings.h"
#include "track/place.h"

enum { DEPTH_MAX = 32 };

struct as_plan {
    pthread_mutex_t lock;
    const struct as_settings *settings;
    uint64_t entered; // outermost blocks of this forward
    uint64_t last; // of the one before; 0: not known
    uint64_t all; // outermost blocks of the run
    uint64_t step;
    bool backward;
    struct as_trials trials;
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

static uint64_t root_of(uint64_t count)
{
    uint64_t root = 1;
    while (root * root < count)
        root++;
    return root;
}

// How many blocks are run again together.
static uint64_t segment_of(const struct as_plan *plan)
{
    const struct as_settings *settings = plan->settings;

    if (settings->recompute_every)
        return settings->recompute_every;
    const uint64_t segments =
        settings->recompute_sqrt ? root_of(plan->last) : settings->recompute_segments;
    const uint64_t blocks = segments ? (plan->last + segments - 1) / segments : 1;
    return blocks ? blocks : 1;
}

static bool is_chosen(const struct as_plan *plan, uint64_t block)
{
    const char *pattern = plan->settings->recompute_blocks;
    char name[AS_PLACE_TEXT];

    if (!*pattern)
        return true;
    as_place_text(as_place_of(block), name, sizeof(name));
    return fnmatch(pattern, name, 0) == 0;
}

// Under the lock. What is not proven may not be lost; what is refused stays as it is.
static enum actswap_verdict decide_recompute(struct as_plan *plan, uint64_t block,
                                             uint64_t index)
{
    struct as_trial *entry = as_trials_find(&plan->trials, block);

    if (!entry)
        return ACTSWAP_KEEP;
    entry->seen_step = plan->step;
    entry->chosen = is_chosen(plan, block);
    if (!entry->chosen)
        return ACTSWAP_KEEP;
    if (entry->standing == AS_STANDING_UNTRIED)
        return ACTSWAP_TRIAL;
    if (entry->standing != AS_STANDING_PROVEN)
        return ACTSWAP_KEEP;
    if (as_trials_due(&plan->trials, entry, plan->step))
        return ACTSWAP_TRIAL;
    entry->recomputed++;
    return index % segment_of(plan) ? ACTSWAP_RECOMPUTE_ON : ACTSWAP_RECOMPUTE;
}

// Under the lock.
static enum actswap_verdict decide(struct as_plan *plan, uint64_t block)
{
    if (plan->backward)
        return ACTSWAP_KEEP;

    const uint64_t index = plan->entered++;
    switch (plan->settings->policy) {
    case AS_POLICY_OFFLOAD:
        return is_last(plan, index) ? ACTSWAP_KEEP : ACTSWAP_OFFLOAD;
    case AS_POLICY_RECOMPUTE:
        return decide_recompute(plan, block, index);
    case AS_POLICY_OFF:
        break;
    }
    return ACTSWAP_KEEP;
}

static enum actswap_verdict inherit(enum actswap_verdict outer)
{
    switch (outer) {
    case ACTSWAP_TRIAL:
        return ACTSWAP_OFFLOAD; // what it saves is kept all the same
    case ACTSWAP_RECOMPUTE:
    case ACTSWAP_RECOMPUTE_ON:
        return ACTSWAP_KEEP;
    case ACTSWAP_KEEP:
    case ACTSWAP_OFFLOAD:
        break;
    }
    return outer;
}

enum actswap_verdict as_plan_enter(struct as_plan *plan, uint64_t block)
{
    enum actswap_verdict verdict = ACTSWAP_KEEP;

    if (depth == 0) {
        pthread_mutex_lock(&plan->lock);
        plan->all++;
        verdict = decide(plan, block);
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

bool as_plan_tried(struct as_plan *plan, uint64_t block,
                   const struct actswap_trial *trial, struct as_trial *entry)
{
    bool broken = false;

    pthread_mutex_lock(&plan->lock);
    struct as_trial *known = as_trials_find(&plan->trials, block);
    if (known) {
        broken = as_trials_add(known, trial, plan->step);
        *entry = *known;
    }
    pthread_mutex_unlock(&plan->lock);
    return broken;
}

void as_plan_skipped(struct as_plan *plan, uint64_t block, enum actswap_fault fault)
{
    pthread_mutex_lock(&plan->lock);
    struct as_trial *entry = as_trials_find(&plan->trials, block);
    if (entry && entry->standing == AS_STANDING_UNTRIED)
        entry->fault = (int)fault;
    if (entry)
        entry->chosen = is_chosen(plan, block);
    pthread_mutex_unlock(&plan->lock);
}

void as_plan_renewed(struct as_plan *plan, uint64_t block)
{
    pthread_mutex_lock(&plan->lock);
    as_trials_renew(&plan->trials, block);
    pthread_mutex_unlock(&plan->lock);
}

bool as_plan_read(struct as_plan *plan, unsigned index, struct as_trial *entry)
{
    pthread_mutex_lock(&plan->lock);
    const bool there = index < plan->trials.count;
    if (there)
        *entry = plan->trials.entries[plan->trials.order[index]];
    pthread_mutex_unlock(&plan->lock);
    return there;
}

void as_plan_totals(struct as_plan *plan, struct as_plan_totals *totals)
{
    struct as_trial entry;

    *totals = (struct as_plan_totals){.values = true};
    for (unsigned i = 0; as_plan_read(plan, i, &entry); i++) {
        totals->blocks++;
        totals->left_out += !entry.chosen;
        totals->values &= entry.values || !entry.trials;
        if (!entry.chosen)
            continue;
        if (entry.standing == AS_STANDING_PROVEN) {
            totals->proven++;
            totals->saved_bytes += entry.saved_bytes;
            totals->boundary_bytes += entry.boundary_bytes;
        }
        totals->refused += entry.standing == AS_STANDING_REFUSED;
        totals->useless += entry.standing == AS_STANDING_USELESS;
        totals->untried += entry.standing == AS_STANDING_UNTRIED;
    }
    pthread_mutex_lock(&plan->lock);
    totals->round = as_trials_round(&plan->trials);
    totals->segment = plan->last ? (unsigned)segment_of(plan) : 0;
    pthread_mutex_unlock(&plan->lock);
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
    case ACTSWAP_STEP:
        plan->step++;
        plan->backward = false;
        break;
    case ACTSWAP_BACKWARD_END:
    case ACTSWAP_OPTIMIZER:
        plan->backward = false;
        break;
    case ACTSWAP_AGAIN:
    case ACTSWAP_AGAIN_END:
        break;
    }
    pthread_mutex_unlock(&plan->lock);
}
