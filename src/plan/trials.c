// SPDX-License-Identifier: Apache-2.0
#include "plan/trials.h"

#include <stddef.h>

#include "core/export.h"

// The order of the table is that in which faults explain a refusal: what comes first is the
// cause of what comes behind it.
static const struct {
    enum actswap_fault fault;
    const char *text;
} faults[] = {
    {ACTSWAP_FAULT_CHECKPOINT, "the script recomputes it, or a part of it, itself"},
    {ACTSWAP_FAULT_SAVES, "the script's own saved tensor hooks are at work"},
    {ACTSWAP_FAULT_FORWARD, "compiled, scripted or with a forward of its own"},
    {ACTSWAP_FAULT_CAPTURE, "a stream capture was in progress"},
    {ACTSWAP_FAULT_HOOKS, "hooks of the script would run again"},
    {ACTSWAP_FAULT_INPUT, "its input is changed in place before its backward"},
    {ACTSWAP_FAULT_PARAMETER, "its parameters change before its backward"},
    {ACTSWAP_FAULT_ERROR, "run again, it raised an error"},
    {ACTSWAP_FAULT_BUFFER, "it writes a tensor that cannot be put back"},
    {ACTSWAP_FAULT_RANDOM, "run again, it drew other random numbers"},
    {ACTSWAP_FAULT_STATE, "run again, it left other state behind"},
    {ACTSWAP_FAULT_COUNT, "run again, it saved another number of tensors"},
    {ACTSWAP_FAULT_KIND, "run again, it saved tensors of other shapes or types"},
    {ACTSWAP_FAULT_VALUES, "run again, it saved other values"},
    {ACTSWAP_FAULT_SAMPLE, "run again after its trials, it saved other values"},
};

enum { KNOWN = sizeof(faults) / sizeof(*faults) };

AS_EXPORT const char *actswap_fault_text(enum actswap_fault fault)
{
    for (int i = 0; i < KNOWN; i++)
        if (faults[i].fault == fault)
            return faults[i].text;
    return "not known";
}

static int first_of(uint32_t found)
{
    for (int i = 0; i < KNOWN; i++)
        if (found & 1U << faults[i].fault)
            return (int)faults[i].fault;
    return -1;
}

struct as_trial *as_trials_find(struct as_trials *trials, uint64_t block)
{
    size_t at = block * UINT64_C(0x9e3779b97f4a7c15) % AS_TRIALS;

    for (unsigned i = 0; i < AS_TRIALS; i++, at = (at + 1) % AS_TRIALS) {
        struct as_trial *entry = &trials->entries[at];
        if (entry->used && entry->block == block)
            return entry;
        if (entry->used)
            continue;
        *entry = (struct as_trial){
            .block = block, .used = true, .fault = -1, .broken_step = UINT64_MAX};
        trials->order[trials->count++] = (uint16_t)at;
        return entry;
    }
    return NULL;
}

bool as_trials_add(struct as_trial *entry, const struct actswap_trial *trial,
                   uint64_t step)
{
    const bool proven = entry->standing == AS_STANDING_PROVEN;

    if (!entry->trials)
        entry->first_step = step;
    entry->values = trial->values && (entry->values || !entry->trials);
    entry->trials++;
    entry->faults |= trial->faults;
    entry->repairs |= trial->repairs;
    if (trial->saved_bytes) { // it came that far
        entry->saved_bytes = trial->saved_bytes;
        entry->boundary_bytes = trial->boundary_bytes;
    }
    if (entry->faults) {
        entry->standing = AS_STANDING_REFUSED;
        entry->fault = first_of(entry->faults);
        if (proven)
            entry->broken_step = step;
        return proven;
    }
    entry->last_step = step;
    if (entry->standing == AS_STANDING_UNTRIED) {
        entry->fault = -1;
        entry->standing = trial->saved_bytes > trial->boundary_bytes
                              ? AS_STANDING_PROVEN
                              : AS_STANDING_USELESS;
    }
    return false;
}

void as_trials_renew(struct as_trials *trials, uint64_t block)
{
    for (unsigned i = 0; i < trials->count; i++) {
        struct as_trial *entry = &trials->entries[trials->order[i]];
        if (entry->block != block)
            continue;
        entry->standing = AS_STANDING_UNTRIED;
        entry->faults = entry->repairs = 0;
        entry->fault = -1;
        entry->broken_step = UINT64_MAX;
    }
}

bool as_trials_due(const struct as_trials *trials, const struct as_trial *entry,
                   uint64_t step)
{
    if (step % AS_TRIALS_EVERY || entry->last_step == step)
        return false;
    bool before = true; // in the order of their first entry
    for (unsigned i = 0; i < trials->count; i++) {
        const struct as_trial *other = &trials->entries[trials->order[i]];
        before = before && other != entry;
        if (other == entry || other->standing != AS_STANDING_PROVEN ||
            other->seen_step + 1 < step)
            continue;
        if (other->last_step == step && other->first_step != step)
            return false; // one a step
        if (other->last_step < entry->last_step ||
            (before && other->last_step == entry->last_step))
            return false;
    }
    return true;
}

uint64_t as_trials_round(const struct as_trials *trials)
{
    uint64_t proven = 0;
    for (unsigned i = 0; i < trials->count; i++)
        proven += trials->entries[trials->order[i]].standing == AS_STANDING_PROVEN;
    return proven * AS_TRIALS_EVERY;
}
