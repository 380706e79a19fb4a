// SPDX-License-Identifier: Apache-2.0
//
// What is said when memory runs out, before the program hears of it.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "engine.h"
#include "track/ledger.h"
#include "track/place.h"
#include "track/steps.h"

// A script may look for the largest batch by running out of memory.
enum { OOM_FILES = 8 };

// What the program will still ask for.
static void look_ahead(struct as_engine *engine, struct as_oom *oom)
{
    for (int i = 0; i < ACTSWAP_CATEGORIES; i++) {
        const uint64_t expected = atomic_load(&engine->expected_bytes[i]);
        const uint64_t held = oom->held[i].bytes;

        oom->to_come[i] = expected > held ? expected - held : 0;
    }
}

static void examine(struct as_engine *engine, struct as_oom *oom)
{
    struct as_ledger_totals totals;
    struct as_peak peak;

    as_ledger_presume(engine->ledger);
    as_ledger_totals(engine->ledger, -1, &totals);
    as_ledger_shares(engine->ledger, oom->held);
    as_ledger_peak(engine->ledger, &peak);
    if (!oom->in_use_bytes)
        oom->in_use_bytes = totals.live_bytes;
    if (!oom->reserved_bytes)
        oom->reserved_bytes = totals.reserved_bytes;
    oom->total_bytes = engine->device_bytes;
    oom->step = as_steps_count(engine->steps);
    oom->phase = as_ledger_phase(engine->ledger);
    as_place_text(as_place_now(), oom->block, sizeof(oom->block));
    if (!atomic_load(&engine->events) ||
        !as_ledger_holes(engine->ledger, engine->segments, peak.device, &oom->holes))
        oom->holes = (struct as_holes){0};
    look_ahead(engine, oom);
}

// Beside the report, as that goes on if the program does. Under report_lock.
static void write_oom(struct as_engine *engine)
{
    char path[PATH_MAX];
    const size_t length = strlen(engine->path);
    const char *ending = ".json";
    const size_t stem = length - strlen(ending);

    if (!length || engine->oom_files >= OOM_FILES || length + 4 >= sizeof(path))
        return;
    if (length > strlen(ending) && strcmp(engine->path + stem, ending) == 0)
        snprintf(path, sizeof(path), "%.*s.oom%s", (int)stem, engine->path, ending);
    else
        snprintf(path, sizeof(path), "%.*s.oom", (int)length, engine->path);
    engine->oom_files++;
    const int err = as_engine_create_report(engine, path, sizeof(path));
    if (err)
        as_log(AS_LOG_WARN, "report: cannot write %s: %s", path, strerrordesc_np(-err));
    else
        as_log(AS_LOG_ERROR, "written %s", path);
}

static void say_oom(const struct as_oom *oom)
{
    char asked[AS_TEXT_AMOUNT], used[AS_TEXT_AMOUNT], reserved[AS_TEXT_AMOUNT];
    char holders[256], more[512], where[AS_PLACE_TEXT + 64] = "";

    as_oom_say_held(oom, holders, sizeof(holders));
    if (oom->phase != AS_PHASE_OTHER || *oom->block)
        snprintf(where, sizeof(where), "%s%s%s, ", as_phase_name(oom->phase),
                 *oom->block ? " of " : "", oom->block);
    as_log(AS_LOG_ERROR,
           "out of memory: step %llu, %sasked for %s, in use %s, reserved %s; held by %s",
           (unsigned long long)oom->step + 1, where,
           as_text_amount(oom->asked_bytes, asked),
           as_text_amount(oom->in_use_bytes, used),
           as_text_amount(oom->reserved_bytes, reserved), holders);
    as_oom_say_more(oom, more, sizeof(more));
    for (char *rest = more, *line; (line = strsep(&rest, "\n")) && *line;)
        as_log(AS_LOG_ERROR, "%s", line);
}

void as_engine_out_of_memory(uint64_t asked_bytes, uint64_t allocated_bytes,
                             uint64_t reserved_bytes)
{
    const int saved_errno = errno;
    struct as_engine *engine = as_engine_get();
    struct as_oom oom = {.asked_bytes = asked_bytes,
                         .in_use_bytes = allocated_bytes,
                         .reserved_bytes = reserved_bytes};

    // A hook's word counts only where no framework speaks: its allocator tries again.
    if (!engine || (!reserved_bytes && atomic_load(&engine->events)))
        return;
    as_engine_use(engine);
    atomic_store(&engine->oom, true);
    examine(engine, &oom);
    say_oom(&oom);
    pthread_mutex_lock(&engine->report_lock);
    engine->last_oom = oom;
    engine->had_oom = true;
    as_engine_write_report(engine, false);
    if (reserved_bytes) // a program that asks the driver itself may be trying
        write_oom(engine);
    pthread_mutex_unlock(&engine->report_lock);
    errno = saved_errno;
}
