// SPDX-License-Identifier: Apache-2.0
#include "plan/segments.h"

#include <stdint.h>
#include <stdio.h>

#include "core/settings.h"
#include "core/text.h"
#include "plan/plan.h"

// What groups of `each` blocks take at their highest: the inputs that are kept, and what
// one of them saves while it is run again.
struct taken {
    uint64_t kept_bytes, again_bytes;
};

static struct taken take_of(const struct as_settings *settings,
                            const struct as_plan_totals *totals, unsigned each)
{
    const uint64_t groups = (totals->proven + each - 1) / each;
    const bool moved = settings->recompute_boundary;

    return (struct taken){
        .kept_bytes = moved ? 0 : groups * (totals->boundary_bytes / totals->proven),
        .again_bytes = each * (totals->saved_bytes / totals->proven),
    };
}

static uint64_t sum(struct taken taken)
{
    return taken.kept_bytes + taken.again_bytes;
}

bool as_segments_advise(struct as_plan *plan, const struct as_settings *settings,
                        char *text, size_t text_bytes)
{
    struct as_plan_totals totals;
    char again[AS_TEXT_AMOUNT], kept[AS_TEXT_AMOUNT], less_again[AS_TEXT_AMOUNT],
        less_kept[AS_TEXT_AMOUNT];

    as_plan_totals(plan, &totals);
    if (!totals.proven || totals.segment < 2)
        return false;
    const unsigned each = totals.segment < totals.proven ? totals.segment : totals.proven;
    unsigned best = each;
    for (unsigned fewer = each - 1; fewer; fewer--)
        if (sum(take_of(settings, &totals, fewer)) <
            sum(take_of(settings, &totals, best)))
            best = fewer;
    if (best == each)
        return false;
    const struct taken now = take_of(settings, &totals, each);
    const struct taken then = take_of(settings, &totals, best);
    snprintf(text, text_bytes,
             "%u blocks together save %s while they are run again, beside %s of inputs: "
             "every=%u would take %s beside %s",
             each, as_text_amount(now.again_bytes, again),
             as_text_amount(now.kept_bytes, kept), best,
             as_text_amount(then.again_bytes, less_again),
             as_text_amount(then.kept_bytes, less_kept));
    return true;
}
