// SPDX-License-Identifier: Apache-2.0
#include "report/budget.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/settings.h"
#include "core/text.h"
#include "pager/pager.h"
#include "report/json.h"
#include "report/report.h"
#include "track/ledger.h"
#include "track/place.h"

struct outcome {
    uint64_t over_bytes, spare_bytes; // one of them 0
    bool exceeded;
    struct as_excess excess;
    char block[128]; // or ""
};

// Each device has the budget; the one with the highest peak counts. False: nothing to say.
static bool judge(const struct as_facts *facts, struct outcome *outcome)
{
    const uint64_t budget = facts->budget_bytes;
    struct as_ledger_totals totals;
    struct as_peak peak;

    *outcome = (struct outcome){0};
    as_ledger_peak(facts->ledger, &peak);
    if (!budget || facts->source == AS_SOURCE_NONE || peak.device < 0)
        return false;
    as_ledger_totals(facts->ledger, peak.device, &totals);
    if (totals.peak_bytes <= budget) {
        outcome->spare_bytes = budget - totals.peak_bytes;
        return true;
    }
    outcome->over_bytes = totals.peak_bytes - budget;
    outcome->exceeded = as_ledger_excess(facts->ledger, peak.device, &outcome->excess);
    as_place_text(outcome->excess.block, outcome->block, sizeof(outcome->block));
    return true;
}

void as_budget_write(struct as_json *json, const struct as_facts *facts)
{
    struct outcome outcome;

    if (!judge(facts, &outcome))
        return;
    as_json_open(json, "budget", '{');
    as_json_number(json, "bytes", facts->budget_bytes);
    as_json_bool(json, "kept", !outcome.over_bytes);
    as_json_number(json, "over_bytes", outcome.over_bytes);
    as_json_number(json, "spare_bytes", outcome.spare_bytes);
    if (outcome.exceeded) {
        as_json_number(json, "step", outcome.excess.step);
        as_json_text(json, "phase", as_phase_name(outcome.excess.phase));
        as_json_text(json, "block", *outcome.block ? outcome.block : NULL);
        if (facts->settings->policy == AS_POLICY_OFFLOAD)
            as_json_number(json, "stayed_bytes", facts->pager->stayed_over_bytes);
    }
    as_json_close(json, '}');
}

// What offload had to do with it.
static const char *why(const struct as_facts *facts)
{
    if (facts->settings->policy != AS_POLICY_OFFLOAD)
        return "";
    return facts->pager->stayed_over_bytes ? "; the step before had room"
                                           : "; nothing more could go";
}

void as_budget_say(const struct as_facts *facts, char *text, size_t text_bytes)
{
    char budget[AS_TEXT_AMOUNT], rest[AS_TEXT_AMOUNT];
    struct outcome outcome;

    *text = '\0';
    if (!judge(facts, &outcome))
        return;
    as_text_amount(facts->budget_bytes, budget);
    if (!outcome.over_bytes)
        snprintf(text, text_bytes, "%s: kept, %s to spare", budget,
                 as_text_amount(outcome.spare_bytes, rest));
    else
        snprintf(text, text_bytes, "%s: exceeded by %s, first in step %llu, %s%s%s%s",
                 budget, as_text_amount(outcome.over_bytes, rest),
                 (unsigned long long)outcome.excess.step + 1,
                 as_phase_name(outcome.excess.phase), *outcome.block ? " of " : "",
                 outcome.block, why(facts));
}
