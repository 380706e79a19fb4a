// SPDX-License-Identifier: Apache-2.0
//
// A card that is to be smaller than it is (ACTSWAP_MEMORY), and how much of it a run is
// to take (ACTSWAP_BUDGET).
#include <errno.h>
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "engine.h"
#include "track/ledger.h"

uint64_t as_engine_card_bytes(void)
{
    const struct as_engine *engine = as_engine_get();

    return engine ? atomic_load_explicit(&engine->card_bytes, memory_order_relaxed) : 0;
}

uint64_t as_engine_taken_bytes(int device)
{
    struct as_engine *engine = as_engine_get();
    struct as_ledger_totals totals = {0};

    if (engine)
        as_ledger_totals(engine->segments, device, &totals);
    return totals.live_bytes;
}

void as_engine_hold_to_budget(struct as_engine *engine, uint64_t device_bytes)
{
    const struct as_settings *settings = &engine->settings;
    const uint64_t bytes = settings->budget_percent
                               ? device_bytes * settings->budget_percent / 100
                               : settings->budget_bytes;

    if (!bytes)
        return;
    atomic_store(&engine->budget_bytes, bytes);
    as_ledger_budget(engine->ledger, bytes);
}

static void refuse(struct as_engine *engine, uint64_t limit_bytes, uint64_t used_bytes)
{
    char limit[AS_TEXT_AMOUNT], used[AS_TEXT_AMOUNT];
    const bool strict = engine->settings.strict;

    as_log(strict ? AS_LOG_ERROR : AS_LOG_WARN,
           "ACTSWAP_MEMORY: a card of %s has no room: %s are in use before the program "
           "takes any, by the driver's context and by other programs%s",
           as_text_amount(limit_bytes, limit), as_text_amount(used_bytes, used),
           strict ? "" : "; ACTSWAP_STRICT=0: the card's own size counts");
    if (strict)
        _exit(EX_CONFIG);
    atomic_store(&engine->card_bytes, 0);
}

void as_engine_card_seen(int device, uint64_t used_bytes, uint64_t total_bytes)
{
    const int saved_errno = errno;
    struct as_engine *engine = as_engine_get();
    const uint64_t bit = UINT64_C(1) << (device & 63);
    const uint64_t limit_bytes = as_engine_card_bytes();

    if (!limit_bytes || atomic_load(&engine->cards_seen) & bit ||
        atomic_fetch_or(&engine->cards_seen, bit) & bit)
        return;
    if (limit_bytes > total_bytes && !atomic_exchange(&engine->too_large, true)) {
        char limit[AS_TEXT_AMOUNT], total[AS_TEXT_AMOUNT];

        snprintf(engine->card_warning, sizeof(engine->card_warning),
                 "ACTSWAP_MEMORY: %s is more than the card has, %s: its own size counts",
                 as_text_amount(limit_bytes, limit), as_text_amount(total_bytes, total));
        as_engine_warn(engine, engine->card_warning);
    }
    if (used_bytes >= limit_bytes)
        refuse(engine, limit_bytes, used_bytes);
    errno = saved_errno;
}
