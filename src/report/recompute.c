// SPDX-License-Identifier: Apache-2.0
#include "report/recompute.h"

#include <stdbool.h>
#include <stdio.h>

#include <actswap/actswap.h>

#include "core/settings.h"
#include "plan/plan.h"
#include "report/json.h"
#include "report/report.h"
#include "track/place.h"

// What is not run again although the user asked for it, by reason: the faults, and these.
enum {
    WHY_USELESS = ACTSWAP_FAULTS,
    WHY_NO_BACKWARD,
    WHY_PATTERN,
    WHYS,
};

static bool asks(const struct as_facts *facts)
{
    return facts->plan && facts->settings->policy == AS_POLICY_RECOMPUTE;
}

// -1: it is run again.
static int why_not(const struct as_trial *entry)
{
    if (!entry->chosen)
        return WHY_PATTERN;
    switch (entry->standing) {
    case AS_STANDING_PROVEN:
        return -1;
    case AS_STANDING_USELESS:
        return WHY_USELESS;
    case AS_STANDING_UNTRIED:
    case AS_STANDING_REFUSED:
        break;
    }
    return entry->fault >= 0 ? entry->fault : WHY_NO_BACKWARD;
}

static const char *text_of(int why)
{
    switch (why) {
    case WHY_USELESS:
        return "it saves no more than what it takes, which would have to be kept";
    case WHY_NO_BACKWARD:
        return "no backward has come to it yet, so that it was not tried";
    case WHY_PATTERN:
        return "its name does not match blocks=";
    default:
        return actswap_fault_text((enum actswap_fault)why);
    }
}

static void write_repairs(struct as_json *json, uint32_t repairs)
{
    as_json_open(json, "put_back", '[');
    if (repairs & ACTSWAP_REPAIR_RANDOM)
        as_json_text(json, NULL, "random generators");
    if (repairs & ACTSWAP_REPAIR_STATE)
        as_json_text(json, NULL, "attributes and counters");
    if (repairs & ACTSWAP_REPAIR_BUFFERS)
        as_json_text(json, NULL, "buffers");
    as_json_close(json, ']');
}

static void write_block(struct as_json *json, const struct as_trial *entry)
{
    char name[AS_PLACE_TEXT];
    const int why = why_not(entry);

    as_place_text(as_place_of(entry->block), name, sizeof(name));
    as_json_open(json, NULL, '{');
    as_json_text(json, "block", name);
    as_json_text(json, "decision", why < 0 ? "recompute" : "keep");
    as_json_text(json, "reason", why < 0 ? NULL : text_of(why));
    as_json_number(json, "trials", entry->trials);
    as_json_number(json, "recomputed", entry->recomputed);
    write_repairs(json, entry->repairs);
    as_json_number(json, "saved_bytes", entry->saved_bytes);
    as_json_number(json, "boundary_bytes", entry->boundary_bytes);
    if (entry->broken_step != UINT64_MAX) {
        as_json_number(json, "proven_step", entry->last_step);
        as_json_number(json, "broken_step", entry->broken_step);
    }
    as_json_close(json, '}');
}

void as_recompute_write(struct as_json *json, const struct as_facts *facts)
{
    struct as_plan_totals totals;
    struct as_trial entry;

    if (!asks(facts))
        return;
    as_plan_totals(facts->plan, &totals);
    as_json_open(json, "recompute", '{');
    as_json_number(json, "blocks_found", totals.blocks);
    as_json_number(json, "blocks_recomputed", totals.proven);
    as_json_number(json, "blocks_together", totals.segment);
    as_json_bool(json, "values_compared", totals.values && totals.blocks);
    as_json_number(json, "tried_again_within_steps", totals.round);
    char said[512];
    as_json_open(json, "said", '[');
    for (size_t line = 0; as_recompute_say(facts, line, said, sizeof(said)), *said;
         line++)
        as_json_text(json, NULL, said);
    as_json_close(json, ']');
    as_json_open(json, "blocks", '[');
    for (unsigned i = 0; as_plan_read(facts->plan, i, &entry); i++)
        write_block(json, &entry);
    as_json_close(json, ']');
    as_json_close(json, '}');
}

static void say_recomputed(const struct as_facts *facts, char *text, size_t text_bytes)
{
    struct as_plan_totals totals;

    as_plan_totals(facts->plan, &totals);
    if (!totals.blocks) {
        snprintf(text, text_bytes,
                 "no blocks found, so that nothing is run again: repeated layers in a "
                 "ModuleList, ModuleDict or Sequential are blocks; offload needs none");
        return;
    }
    int used = snprintf(text, text_bytes, "%u of %u blocks", totals.proven,
                        totals.blocks - totals.left_out);
    if (totals.proven && totals.segment > 1 && used < (int)text_bytes)
        used += snprintf(text + used, text_bytes - (size_t)used, ", %u together",
                         totals.segment);
    if (totals.proven && used < (int)text_bytes)
        snprintf(text + used, text_bytes - (size_t)used,
                 totals.values ? "; trials compared every bit, again within %llu steps"
                               : "; trials compared shapes only, there are no values",
                 (unsigned long long)totals.round);
}

// The blocks of the reason that is `line`th, from 1, among those that occur.
static void say_left(const struct as_facts *facts, size_t line, char *text,
                     size_t text_bytes)
{
    unsigned counts[WHYS] = {0};
    uint64_t firsts[WHYS] = {0};
    struct as_trial entry;
    char name[AS_PLACE_TEXT];

    for (unsigned i = 0; as_plan_read(facts->plan, i, &entry); i++) {
        const int why = why_not(&entry);
        if (why >= 0 && why < WHYS && !counts[why]++)
            firsts[why] = entry.block;
    }
    int why = 0;
    for (; why < WHYS; why++)
        if (counts[why] && --line == 0)
            break;
    if (why == WHYS)
        return;
    as_place_text(as_place_of(firsts[why]), name, sizeof(name));
    if (counts[why] > 1)
        snprintf(text, text_bytes, "%s and %u more blocks: %s", name, counts[why] - 1,
                 text_of(why));
    else
        snprintf(text, text_bytes, "block %s: %s", name, text_of(why));
}

void as_recompute_say(const struct as_facts *facts, size_t line, char *text,
                      size_t text_bytes)
{
    *text = '\0';
    if (!asks(facts))
        return;
    if (line)
        say_left(facts, line, text, text_bytes);
    else
        say_recomputed(facts, text, text_bytes);
}
