// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/path.h"
#include "core/text.h"
#include "cuda/object.h"
#include "cuda/runtime.h"
#include "pager/pager.h"
#include "plan/plan.h"
#include "track/gradients.h"
#include "track/ledger.h"
#include "track/physical.h"
#include "track/roots.h"
#include "track/steps.h"

#define WRITE_EVERY_NS UINT64_C(60000000000)

static struct as_engine *_Atomic the_engine;
static atomic_bool left_alone; // for good

// --- Life

static void destroy(struct as_engine *engine)
{
    as_pager_destroy(engine->pager);
    as_plan_destroy(engine->plan);
    as_gradients_destroy(engine->gradients);
    as_roots_destroy(engine->roots);
    as_steps_destroy(engine->steps);
    as_physical_destroy(engine->physical);
    as_ledger_destroy(engine->others);
    as_ledger_destroy(engine->segments);
    as_ledger_destroy(engine->ledger);
    free(engine);
}

// Says what is wrong with the settings, and then leaves unless told to be lenient.
static void complain(struct as_settings *settings, const char *message)
{
    if (settings->strict) {
        as_log(AS_LOG_ERROR, "%s", message);
        _exit(EX_CONFIG);
    }
    as_log(AS_LOG_WARN, "%s; ACTSWAP_STRICT=0: all settings are ignored, policy off",
           message);
    as_settings_switch_off(settings);
}

static bool is_simulated(void)
{
    return as_cuda_find("sim_compute", NULL);
}

static void read_settings(struct as_settings *settings)
{
    char message[768];

    if (as_settings_read(settings, environ, message, sizeof(message))) {
        complain(settings, message);
        return;
    }
    const bool simulates = settings->sim_gpu || settings->sim_order ||
                           settings->sim_compute || settings->sim_fault ||
                           settings->sim_gpus != 1;
    if (simulates && !is_simulated())
        complain(settings, "ACTSWAP_SIM_ settings are for a simulated GPU and this is "
                           "none: unset them, or start with actswap rehearse");
}

// True if a comma-separated list names this word.
static bool is_listed(const char *list, const char *word)
{
    const size_t length = strlen(word);

    while (list && *list) {
        const size_t entry = strcspn(list, ",");

        if (entry == length && strncmp(list, word, length) == 0)
            return true;
        list += entry + (list[entry] == ',');
    }
    return false;
}

static void set_up_log(struct as_engine *engine)
{
    const struct as_settings *settings = &engine->settings;
    char path[PATH_MAX];

    engine->log_level = settings->log_level;
    if (engine->log_level < 0)
        engine->log_level = engine->rank == 0 ? AS_LOG_INFO : AS_LOG_WARN;
    as_log_set_level((enum as_log_level)engine->log_level);
    if (!settings->log_file ||
        as_settings_path(settings, settings->log_file, path, sizeof(path)))
        return;
    int err = as_path_make_folders(path);
    if (!err)
        err = as_log_open(path);
    if (err)
        as_log(AS_LOG_WARN, "log: cannot write %s: %s; lines go to standard error", path,
               strerrordesc_np(-err));
}

static bool create_parts(struct as_engine *engine)
{
    engine->ledger = as_ledger_create();
    engine->segments = as_ledger_create();
    engine->others = as_ledger_create();
    engine->physical = as_physical_create();
    engine->steps = as_steps_create();
    engine->gradients = as_gradients_create();
    engine->plan = as_plan_create(&engine->settings);
    if (engine->steps)
        engine->roots = as_roots_create(engine->steps);
    if (engine->ledger)
        engine->pager = as_pager_create(&engine->settings, engine->ledger);
    return engine->segments && engine->others && engine->physical && engine->gradients &&
           engine->plan && engine->roots && engine->pager;
}

static struct as_engine *create(void)
{
    struct as_engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        return NULL;

    pthread_mutex_init(&engine->step_lock, NULL);
    pthread_mutex_init(&engine->report_lock, NULL);
    pthread_mutex_init(&engine->notes.lock, NULL);
    pthread_mutex_init(&engine->warnings.lock, NULL);
    read_settings(&engine->settings);
    atomic_store(&engine->card_bytes, engine->settings.memory_bytes);
    engine->rank = as_path_rank();
    engine->world = as_path_world();
    if (!create_parts(engine)) {
        as_log(AS_LOG_WARN, "no memory for the books: this run is not watched");
        destroy(engine);
        return NULL;
    }
    as_engine_hold_to_budget(engine, 0);
    return engine;
}

static void at_exit(void);
static void in_child(void);

// Several threads may be here at once: each makes an engine and one of them stays. There
// is no lock, as what is called here may be waiting for another thread that comes here.
static struct as_engine *come_to_life(void)
{
    struct as_engine *engine = create(), *none = NULL;

    if (!engine || is_listed(engine->settings.skip, program_invocation_short_name)) {
        atomic_store(&left_alone, true);
        return NULL;
    }
    if (!atomic_compare_exchange_strong(&the_engine, &none, engine)) {
        destroy(engine);
        return none;
    }
    set_up_log(engine);
    if (atexit(at_exit) || pthread_atfork(NULL, NULL, in_child))
        as_log(AS_LOG_WARN, "no exit handler: there will be no summary");
    return engine;
}

struct as_engine *as_engine_get(void)
{
    if (atomic_load_explicit(&left_alone, memory_order_relaxed))
        return NULL;
    struct as_engine *engine = atomic_load_explicit(&the_engine, memory_order_acquire);
    return engine ? engine : come_to_life();
}

// Locks may be held by threads that the child does not have, so nothing is touched. If
// the parent had not used CUDA yet, the child may, with a report of its own.
static void in_child(void)
{
    const struct as_engine *engine = atomic_load(&the_engine);

    if (!engine || !atomic_load(&engine->used))
        return;
    atomic_store(&left_alone, true);
    as_pager_forked(engine->pager);
}

// --- Report

static enum as_source source_of(const struct as_engine *engine)
{
    struct as_ledger_totals segments;

    if (atomic_load(&engine->mistaken))
        return AS_SOURCE_NONE;
    if (atomic_load(&engine->events))
        return AS_SOURCE_ALLOCATOR;
    as_ledger_totals(engine->segments, -1, &segments);
    return segments.allocations ? AS_SOURCE_DRIVER : AS_SOURCE_NONE;
}

static struct as_facts gather(struct as_engine *engine,
                              const struct as_pager_totals *pager, bool complete)
{
    const bool oom = atomic_load(&engine->oom);
    struct as_facts facts = {
        .settings = &engine->settings,
        .ledger = engine->ledger,
        .segments = engine->segments,
        .others = engine->others,
        .steps = engine->steps,
        .plan = engine->plan,
        .notes = &engine->notes,
        .warnings = &engine->warnings,
        .pager = pager,
        .run_id = engine->run_id,
        .framework = atomic_load(&engine->framework),
        .path = *engine->path ? engine->shown : NULL,
        .rank = engine->rank,
        .world = engine->world,
        .device_bytes = engine->device_bytes,
        .card_bytes = engine->own_bytes,
        .budget_bytes = atomic_load(&engine->budget_bytes),
        .simulated = engine->simulated,
        .compute = engine->compute,
        .missed = as_cuda_missed(),
        .races = as_cuda_races(),
        .race_said = as_cuda_race,
        .times = as_cuda_times(),
        .source = source_of(engine),
        .outside = {atomic_load(&engine->context_bytes), atomic_load(&engine->comm_bytes),
                    atomic_load(&engine->other_bytes)},
        .moments = atomic_load(&engine->moments),
        .oom = engine->had_oom ? &engine->last_oom : NULL,
        .complete = complete,
        .ended = oom        ? "oom"
                 : complete ? "exit"
                            : "running",
    };

    memcpy(facts.device, engine->device, sizeof(facts.device));
    return facts;
}

int as_engine_create_report(struct as_engine *engine, char *path, size_t path_bytes)
{
    struct as_pager_totals pager;

    as_pager_totals(engine->pager, &pager);
    const struct as_facts facts = gather(engine, &pager, false);
    return as_report_create(path, path_bytes, &facts);
}

// What was written before stays; there may be room again later.
void as_engine_write_report(struct as_engine *engine, bool complete)
{
    if (!*engine->path)
        return;
    struct as_pager_totals pager;
    as_pager_totals(engine->pager, &pager);
    const struct as_facts facts = gather(engine, &pager, complete);
    const int err = as_report_write(engine->path, &facts);
    if (err && !engine->stale)
        as_log(AS_LOG_WARN, "report: cannot write %s: %s; it stays as it was",
               engine->shown, strerrordesc_np(-err));
    engine->stale = err;
}

static bool is_writer(const struct as_engine *engine)
{
    char rank[16];

    snprintf(rank, sizeof(rank), "%d", engine->rank);
    return strcmp(engine->settings.ranks, "all") == 0 ||
           is_listed(engine->settings.ranks, rank);
}

static int make_absolute(char *path, size_t path_bytes)
{
    char folder[PATH_MAX], relative[PATH_MAX];

    if (*path == '/')
        return 0;
    snprintf(relative, sizeof(relative), "%s", path);
    if (!getcwd(folder, sizeof(folder)))
        return -errno;
    const int length = snprintf(path, path_bytes, "%s/%s", folder, relative);
    return length < 0 || (size_t)length >= path_bytes ? -ENAMETOOLONG : 0;
}

static int create_report(struct as_engine *engine)
{
    int err = as_settings_path(&engine->settings, engine->settings.report, engine->shown,
                               sizeof(engine->shown));

    if (!err)
        err = as_path_make_folders(engine->shown);
    memcpy(engine->path, engine->shown, sizeof(engine->path));
    if (!err)
        err = make_absolute(engine->path, sizeof(engine->path));
    const size_t folder = strlen(engine->path) - strlen(engine->shown);
    if (!err)
        err = as_engine_create_report(engine, engine->path, sizeof(engine->path));
    if (!err) // the name may have got a number
        snprintf(engine->shown, sizeof(engine->shown), "%s", engine->path + folder);
    return err;
}

// Under report_lock.
static void begin_report(struct as_engine *engine)
{
    const int err = create_report(engine);

    if (!err)
        return;
    *engine->path = '\0';
    as_log(AS_LOG_WARN,
           "report: cannot write %s: %s; the run goes on without. Set ACTSWAP_REPORT to "
           "a path that can be written, or to off",
           engine->shown, strerrordesc_np(-err));
}

// "budget 44.0 GiB, ", or ""
static void describe_budget(const struct as_engine *engine, char *text, size_t text_bytes)
{
    const uint64_t bytes = atomic_load(&engine->budget_bytes);
    char amount[AS_TEXT_AMOUNT];

    *text = '\0';
    if (bytes)
        snprintf(text, text_bytes, "budget %s, ", as_text_amount(bytes, amount));
    else if (engine->settings.budget_percent)
        snprintf(text, text_bytes, "budget %u %%, ", engine->settings.budget_percent);
}

void as_engine_use(struct as_engine *engine)
{
    static const char *const policies[] = {"off", "offload", "recompute"};
    char budget[64];

    if (atomic_load_explicit(&engine->used, memory_order_relaxed) ||
        atomic_exchange(&engine->used, true))
        return;

    pthread_mutex_lock(&engine->report_lock);
    engine->simulated = is_simulated();
    engine->compute =
        engine->settings.sim_compute ? engine->settings.sim_compute : "auto";
    as_path_run_id(&engine->settings, engine->run_id, sizeof(engine->run_id));
    if (engine->settings.report && is_writer(engine))
        begin_report(engine);
    describe_budget(engine, budget, sizeof(budget));
    as_log(AS_LOG_INFO, "policy %s, %sreport %s", policies[engine->settings.policy],
           budget, *engine->path ? engine->shown : "off");
    pthread_mutex_unlock(&engine->report_lock);
}

void as_engine_identify(struct as_engine *engine)
{
    if (atomic_load_explicit(&engine->identified, memory_order_relaxed) ||
        atomic_exchange(&engine->identified, true))
        return;

    char name[sizeof(engine->device)] = "";
    int device;
    size_t left = 0, total = 0;
    struct as_ledger_totals segments;

    if (as_cuda_device_get(&device) || as_cuda_device_name(device, name, sizeof(name)))
        *name = '\0';
    if (as_cuda_memory(&left, &total))
        total = left = 0;
    as_ledger_totals(engine->segments, -1, &segments);
    if (total - left > segments.live_bytes)
        atomic_store(&engine->context_bytes, total - left - segments.live_bytes);

    const uint64_t limit = atomic_load(&engine->card_bytes);
    pthread_mutex_lock(&engine->report_lock);
    memcpy(engine->device, name, sizeof(name));
    engine->own_bytes = total;
    engine->device_bytes = limit && limit < total ? limit : total;
    as_engine_hold_to_budget(engine, engine->device_bytes);
    pthread_mutex_unlock(&engine->report_lock);
}

void as_engine_warn(struct as_engine *engine, const char *sentence)
{
    if (as_notes_add(&engine->warnings, sentence) == 1)
        as_log(AS_LOG_WARN, "%s", sentence);
}

void as_engine_write_now(struct as_engine *engine)
{
    if (!atomic_load(&engine->used))
        return;
    pthread_mutex_lock(&engine->report_lock);
    engine->written_ns = as_clock_ns();
    as_engine_write_report(engine, false);
    pthread_mutex_unlock(&engine->report_lock);
}

void as_engine_write_sometimes(struct as_engine *engine)
{
    const uint64_t now = as_clock_ns();

    pthread_mutex_lock(&engine->report_lock);
    if (!engine->written_ns || now - engine->written_ns >= WRITE_EVERY_NS) {
        engine->written_ns = now;
        as_engine_write_report(engine, false);
    }
    pthread_mutex_unlock(&engine->report_lock);
}

// Makes no CUDA call: what the device's work needs may be gone by now, and so may the
// runtime. What is to be read from the device is read when the framework detaches.
static void at_exit(void)
{
    struct as_engine *engine = atomic_load(&the_engine);
    struct as_pager_totals pager;
    char text[4096];

    if (!engine || atomic_load(&left_alone) || !atomic_load(&engine->used))
        return;
    as_engine_reconcile(engine);
    pthread_mutex_lock(&engine->report_lock);
    as_engine_write_report(engine, true);
    if (engine->rank == 0 && engine->log_level >= AS_LOG_INFO) {
        as_pager_totals(engine->pager, &pager);
        const struct as_facts facts = gather(engine, &pager, true);
        as_report_summary(&facts, text, sizeof(text));
        as_log_print(text);
    }
    pthread_mutex_unlock(&engine->report_lock);
    // What libraries free from here on is nobody's business.
    atomic_store(&left_alone, true);
}

// --- Streams

void as_engine_stream_made(void *stream)
{
    const int saved_errno = errno;
    struct as_engine *engine = as_engine_get();
    int device;

    if (engine && !as_cuda_device_get(&device))
        as_pager_stream_made(engine->pager, device, stream);
    errno = saved_errno;
}

void as_engine_stream_ending(void *stream)
{
    const int saved_errno = errno;
    struct as_engine *engine = as_engine_get();

    if (engine)
        as_pager_stream_ending(engine->pager, stream);
    errno = saved_errno;
}
