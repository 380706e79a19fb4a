// SPDX-License-Identifier: Apache-2.0
#include "pager/admission.h"

#include "pager/lane.h"

struct rule {
    enum actswap_reason reason;
    bool (*applies)(const struct as_admission *admission);
};

static bool is_detached(const struct as_admission *admission)
{
    return !admission->attached;
}

// A storage may be a part of a block, but then our page would not be what is freed.
static bool is_unknown(const struct as_admission *admission)
{
    const struct as_block *block = admission->block;
    return !block || block->address != admission->saved->address ||
           block->bytes < admission->saved->bytes;
}

// The memory of a parameter may be younger, where it is gathered for a forward: who does
// that takes it away again.
static bool is_old(const struct as_admission *admission)
{
    return admission->saved->category == ACTSWAP_PARAMETER ||
           admission->block->generation < admission->forward_generation;
}

static bool in_backward(const struct as_admission *admission)
{
    return admission->backward;
}

static bool policy_keeps(const struct as_admission *admission)
{
    const struct as_settings *settings = admission->settings;
    const bool again = admission->verdict == ACTSWAP_RECOMPUTE ||
                       admission->verdict == ACTSWAP_RECOMPUTE_ON;

    switch (settings->policy) {
    case AS_POLICY_OFFLOAD:
        return again;
    case AS_POLICY_RECOMPUTE: // what is saved there is what a block takes
        return again ? !settings->recompute_boundary
                     : admission->verdict != ACTSWAP_TRIAL;
    case AS_POLICY_OFF:
        break;
    }
    return true;
}

static bool is_captured(const struct as_admission *admission)
{
    return as_stream_captured(admission->saved->stream);
}

static bool is_coherent(const struct as_admission *admission)
{
    return admission->coherent;
}

static bool in_tail(const struct as_admission *admission)
{
    return admission->verdict == ACTSWAP_KEEP;
}

static bool is_inside(const struct as_admission *admission)
{
    return admission->settings->offload_boundary &&
           admission->block->generation >= admission->block_generation;
}

static bool is_small(const struct as_admission *admission)
{
    const struct actswap_saved *saved = admission->saved;
    return saved->bytes == 0 || saved->bytes < admission->settings->offload_min_bytes;
}

// The three of a fused projection are a third of it each, and are saved one by one.
static bool is_part(const struct as_admission *admission)
{
    return admission->saved->used_bytes < admission->saved->bytes / 4;
}

static const struct rule allowed[] = {
    {ACTSWAP_KEPT_DETACHED, is_detached}, {ACTSWAP_KEPT_UNKNOWN, is_unknown},
    {ACTSWAP_KEPT_OLD, is_old},           {ACTSWAP_KEPT_BACKWARD, in_backward},
    {ACTSWAP_KEPT_POLICY, policy_keeps},  {ACTSWAP_KEPT_COHERENT, is_coherent},
    {ACTSWAP_KEPT_CAPTURE, is_captured},
};

static const struct rule worth[] = {
    {ACTSWAP_KEPT_TAIL, in_tail},
    {ACTSWAP_KEPT_INSIDE, is_inside},
    {ACTSWAP_KEPT_SMALL, is_small},
    {ACTSWAP_KEPT_PART, is_part},
};

static enum actswap_reason first_of(const struct rule *rules, size_t count,
                                    const struct as_admission *admission)
{
    for (size_t i = 0; i < count; i++)
        if (rules[i].applies(admission))
            return rules[i].reason;
    return ACTSWAP_KEPT_NOT;
}

enum actswap_reason as_admission_allowed(const struct as_admission *admission)
{
    return first_of(allowed, sizeof(allowed) / sizeof(allowed[0]), admission);
}

enum actswap_reason as_admission_worth(const struct as_admission *admission)
{
    return first_of(worth, sizeof(worth) / sizeof(worth[0]), admission);
}
