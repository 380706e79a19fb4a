// SPDX-License-Identifier: Apache-2.0
//
// The C interface of include/actswap/actswap.h, on top of the engine's parts.
#include <actswap/actswap.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/export.h"
#include "core/text.h"
#include "cuda/runtime.h"
#include "engine.h"
#include "pager/pager.h"
#include "plan/plan.h"
#include "plan/segments.h"
#include "track/gradients.h"
#include "track/ledger.h"
#include "track/native.h"
#include "track/place.h"
#include "track/roots.h"
#include "track/site.h"
#include "track/steps.h"
#include "track/telemetry.h"

AS_EXPORT int actswap_abi_version(void)
{
    return ACTSWAP_ABI_VERSION;
}

AS_EXPORT const char *actswap_version(void)
{
    return AS_VERSION;
}

// True if the caller's struct, `size` bytes long, has `field` of `type`.
#define HAS(type, field, size)                                                           \
    ((size) >= offsetof(type, field) + sizeof(((type *)NULL)->field))

AS_EXPORT int actswap_attach(const struct actswap_verbs *verbs, void *context)
{
    if (!verbs || !HAS(struct actswap_verbs, release, verbs->size) || !verbs->allocate ||
        !verbs->release)
        return -EINVAL;
    if (!as_cuda_find("cudaMalloc", NULL))
        return -ENODEV;
    struct as_engine *engine = as_engine_get();
    if (!engine)
        return -ENODEV;
    if (atomic_exchange(&engine->attached, true))
        return -EBUSY;

    if (HAS(struct actswap_verbs, framework, verbs->size))
        atomic_store(&engine->framework, verbs->framework);
    const char *glue = HAS(struct actswap_verbs, glue, verbs->size) ? verbs->glue : NULL;
    if (engine->settings.native_stacks &&
        !as_native_begin(__builtin_return_address(0), glue))
        as_engine_warn(engine, "no native stacks: libunwind.so.8 is not there (Debian's "
                               "package is libunwind8)");
    as_pager_attach(engine->pager, verbs, context);
    return 0;
}

AS_EXPORT void actswap_detach(void)
{
    struct as_engine *engine = as_engine_get();

    if (!engine)
        return;
    as_roots_collect_last(engine->roots);
    if (engine->settings.cupti && as_cupti_end)
        as_cupti_end();
    as_pager_attach(engine->pager, NULL, NULL);
    atomic_store(&engine->attached, false);
    // An interrupted Python kills itself next, and then nothing of ours runs at exit.
    as_engine_write_now(engine);
}

// What the thread does from here on may be another part's.
static void note_place(const struct as_engine *engine)
{
    if (engine->settings.cupti && as_cupti_place)
        as_cupti_place();
}

// --- Saved tensors

// While the framework's allocator has said nothing, a storage must be what one cudaMalloc
// gave. If it lies inside, the allocator cuts up memory and its events do not arrive.
static bool is_mistaken(struct as_engine *engine, const struct actswap_saved *saved)
{
    struct as_block block;

    if (atomic_load_explicit(&engine->mistaken, memory_order_relaxed))
        return true;
    if (atomic_load_explicit(&engine->events, memory_order_relaxed) ||
        !as_ledger_find(engine->ledger, saved->device, saved->address, &block) ||
        (block.address == saved->address && block.bytes >= saved->bytes))
        return false;
    atomic_store(&engine->mistaken, true);
    as_engine_warn(engine, "memory: the framework's allocations do not arrive here, so "
                           "peaks are not known and nothing is offloaded");
    return true;
}

// With native frames, where they are asked for: inside of Python's, or alone.
static uint32_t site_of(const struct as_engine *engine, uint32_t stack)
{
    void *frames[AS_NATIVE_FRAMES];

    if (!engine->settings.native_stacks)
        return stack;
    return as_site_keep_native(stack, frames, as_native_take(frames, stack));
}

AS_EXPORT int actswap_save(const struct actswap_saved *saved, struct actswap_page **page)
{
    struct as_engine *engine = as_engine_get();

    *page = NULL;
    if (!engine || !HAS(struct actswap_saved, ref, saved->size))
        return ACTSWAP_KEPT_DETACHED;
    if (is_mistaken(engine, saved))
        return ACTSWAP_KEPT_UNKNOWN;
    struct actswap_saved all = {0};
    memcpy(&all, saved, saved->size < sizeof(all) ? saved->size : sizeof(all));
    all.size = sizeof(all);
    all.stack = site_of(engine, all.stack);
    return as_pager_save(engine->pager, &all, page);
}

AS_EXPORT int actswap_need(struct actswap_page *page, void *stream,
                           struct actswap_resident *out)
{
    struct as_engine *engine = as_engine_get();

    if (!engine || !page || !HAS(struct actswap_resident, ref, out->size))
        return -EINVAL;
    const int err = as_pager_need(engine->pager, page, stream, out);

    note_place(engine);
    return err;
}

AS_EXPORT void actswap_used(int device, const void *address)
{
    struct as_engine *engine = as_engine_get();

    if (!engine)
        return;
    as_ledger_use(engine->ledger, device, address);
    note_place(engine);
}

AS_EXPORT uint32_t actswap_stack(const char *frames)
{
    return as_site_keep(frames);
}

AS_EXPORT void actswap_drop(struct actswap_page *page)
{
    struct as_engine *engine = as_engine_get();

    if (engine && page)
        as_pager_drop(engine->pager, page);
}

// --- The framework's allocator

AS_EXPORT void actswap_allocated(int device, const void *address, size_t bytes,
                                 size_t reserved_bytes, void *stream)
{
    struct as_engine *engine = as_engine_get();

    if (!engine)
        return;
    // What cudaMalloc gave was counted until now, and holds these tensors.
    if (!atomic_load_explicit(&engine->events, memory_order_relaxed) &&
        !atomic_exchange(&engine->events, true))
        as_ledger_clear(engine->ledger);
    as_engine_use(engine);
    as_ledger_add(engine->ledger, device, address, bytes, reserved_bytes, stream);
}

AS_EXPORT void actswap_freed(int device, const void *address, size_t bytes,
                             size_t reserved_bytes)
{
    struct as_engine *engine = as_engine_get();

    (void)bytes; // the ledger knows
    if (engine)
        as_ledger_remove(engine->ledger, device, address, 0, reserved_bytes);
}

// --- Structure of the run

AS_EXPORT int actswap_block(enum actswap_edge edge, uint64_t block, void *stream)
{
    struct as_engine *engine = as_engine_get();

    if (!engine)
        return -ENODEV;
    if (edge == ACTSWAP_ENTER) {
        as_place_enter(block);
        const enum actswap_verdict verdict = as_plan_enter(engine->plan, block);

        as_pager_block(engine->pager, edge, block, verdict, stream);
        note_place(engine);
        return (int)verdict;
    }
    as_pager_block(engine->pager, edge, block, ACTSWAP_KEEP, stream);
    as_plan_exit(engine->plan);
    as_place_leave(block);
    note_place(engine);
    return 0;
}

AS_EXPORT int actswap_values(void)
{
    struct as_engine *engine = as_engine_get();

    if (!engine || !as_cuda_find("sim_compute", NULL))
        return 1;
    const char *compute = engine->settings.sim_compute;
    return compute && strcmp(compute, "values") == 0;
}

// A block that was proven misbehaves. A trial puts in doubt what it computed since the one
// before; a sample is of this step, whose gradients the script was told not to use.
static void say_broken(struct as_engine *engine, const struct as_trial *entry)
{
    char name[AS_PLACE_TEXT], *sentence;
    const bool sampled = entry->fault == ACTSWAP_FAULT_SAMPLE;

    as_place_text(as_place_of(entry->block), name, sizeof(name));
    // Lives as long as the report.
    if (asprintf(&sentence,
                 "block %s stopped to be the same when run again (%s): found in step "
                 "%llu, last proven in step %llu; %s. It is left alone from here on",
                 name, actswap_fault_text((enum actswap_fault)entry->fault),
                 (unsigned long long)entry->broken_step + 1,
                 (unsigned long long)entry->last_step + 1,
                 sampled ? "the step's gradients were refused"
                         : "gradients of the steps between may not be those of a run "
                           "without recompute") > 0)
        as_engine_warn(engine, sentence);
}

AS_EXPORT void actswap_tried(uint64_t block, const struct actswap_trial *trial)
{
    struct as_engine *engine = as_engine_get();
    struct as_trial entry;

    if (engine && HAS(struct actswap_trial, values, trial->size) &&
        as_plan_tried(engine->plan, block, trial, &entry))
        say_broken(engine, &entry);
}

AS_EXPORT void actswap_skipped(uint64_t block, enum actswap_fault fault)
{
    struct as_engine *engine = as_engine_get();

    if (engine)
        as_plan_skipped(engine->plan, block, fault);
}

AS_EXPORT void actswap_renewed(uint64_t block)
{
    struct as_engine *engine = as_engine_get();

    if (engine)
        as_plan_renewed(engine->plan, block);
}

AS_EXPORT void actswap_part(enum actswap_edge edge, uint64_t part)
{
    const struct as_engine *engine = as_engine_get();

    if (edge == ACTSWAP_ENTER)
        as_place_enter(part);
    else
        as_place_leave(part);
    if (engine)
        note_place(engine);
}

AS_EXPORT void actswap_block_name(uint64_t block, const char *name)
{
    as_place_name(block, name);
}

// A policy that does nothing is worse than none: its user thinks that it helps.
static void check_effect(struct as_engine *engine)
{
    const enum as_policy policy = engine->settings.policy;
    struct as_pager_totals moves;
    struct as_plan_totals blocks;

    as_plan_totals(engine->plan, &blocks);
    if (engine->settings.disk && !engine->settings.policy_chosen)
        as_engine_warn(engine,
                       "ACTSWAP_DISK does nothing without a policy: with "
                       "ACTSWAP_POLICY=offload what pinned memory has no room for "
                       "goes there");
    if (policy == AS_POLICY_RECOMPUTE && !as_plan_blocks(engine->plan) && !blocks.blocks)
        as_engine_warn(engine,
                       "policy recompute changes nothing: no list of like blocks "
                       "was found in the model. A torch.nn.ModuleList, ModuleDict or "
                       "Sequential of at least two modules of one class "
                       "is one; offload needs none");
    else if (policy == AS_POLICY_RECOMPUTE && !blocks.proven)
        as_engine_warn(engine, "policy recompute changes nothing: each block was left "
                               "alone, and the report says why");
    if (policy != AS_POLICY_OFFLOAD)
        return;
    as_pager_totals(engine->pager, &moves);
    if (moves.kept[ACTSWAP_KEPT_COHERENT])
        as_engine_warn(engine, "policy offload changes nothing: the device shares its "
                               "memory with the host, where nothing is gained by moving");
    else if (!moves.let_go && moves.held_elsewhere)
        as_engine_warn(engine, "policy offload released nothing in the first step: the "
                               "program itself holds what its backward needs, such as "
                               "outputs in a list, until that has begun");
    else if (!moves.pages_made)
        as_engine_warn(engine, "policy offload moved nothing in the first step: the "
                               "summary at the end says what was left and why");
}

// Segments so long that running one of them again is what needs most memory: at its end,
// or where its backward begins.
static void check_segments(struct as_engine *engine, const struct as_step *step,
                           const struct as_ledger_totals *memory)
{
    char advice[256], top[AS_TEXT_AMOUNT], *sentence;

    if (engine->settings.policy != AS_POLICY_RECOMPUTE ||
        (memory->step_peak_phase != AS_PHASE_RECOMPUTE &&
         memory->step_peak_phase != AS_PHASE_BACKWARD) ||
        !as_segments_advise(engine->plan, &engine->settings, advice, sizeof(advice)))
        return;
    if (asprintf(&sentence, "recompute: the peak of %s is in backward, and %s",
                 as_text_amount(step->peak_bytes, top), advice) > 0)
        as_engine_warn(engine, sentence);
}

static void end_step(struct as_engine *engine)
{
    struct as_ledger_totals memory;
    struct as_pager_totals moves;

    as_roots_collect(engine->roots);
    as_ledger_totals(engine->ledger, -1, &memory);
    as_pager_totals(engine->pager, &moves);

    pthread_mutex_lock(&engine->step_lock);
    struct as_step step = {
        .peak_bytes = memory.step_peak_bytes,
        .peak_reserved_bytes = memory.step_peak_reserved_bytes,
        .after_forward_bytes = atomic_load(&engine->after_forward_bytes),
        .out_bytes = moves.out_bytes - engine->out_bytes,
        .in_bytes = moves.in_bytes - engine->in_bytes,
        .released_bytes = memory.released_bytes - engine->released_bytes,
        .end_ns = as_clock_ns(),
        .device_ns = as_cuda_times().end_ns,
    };
    memcpy(step.end_by_category, memory.live_by_category, sizeof(step.end_by_category));
    engine->out_bytes = moves.out_bytes;
    engine->in_bytes = moves.in_bytes;
    engine->released_bytes = memory.released_bytes;
    pthread_mutex_unlock(&engine->step_lock);

    step.has_digest = as_gradients_take(engine->gradients, &step.gradient_digest);
    as_steps_end(engine->steps, &step);
    as_ledger_step(engine->ledger);
    as_engine_reconcile(engine);
    atomic_store(&engine->oom, false);
    if (as_steps_count(engine->steps) == 1)
        check_effect(engine);
    if (as_steps_count(engine->steps) == 3) // the first one only tries
        check_segments(engine, &step, &memory);
}

static void keep_after_forward(struct as_engine *engine)
{
    struct as_ledger_totals totals;

    as_ledger_totals(engine->ledger, -1, &totals);
    atomic_store(&engine->after_forward_bytes, totals.live_bytes);
}

// What each moment begins.
static const enum as_phase phases[] = {
    [ACTSWAP_FORWARD] = AS_PHASE_FORWARD,    [ACTSWAP_BACKWARD] = AS_PHASE_BACKWARD,
    [ACTSWAP_BACKWARD_END] = AS_PHASE_OTHER, [ACTSWAP_OPTIMIZER] = AS_PHASE_OPTIMIZER,
    [ACTSWAP_STEP] = AS_PHASE_OTHER,         [ACTSWAP_AGAIN] = AS_PHASE_RECOMPUTE,
    [ACTSWAP_AGAIN_END] = AS_PHASE_BACKWARD,
};

static void mark_device_times(struct as_engine *engine, enum as_phase phase)
{
    as_telemetry_phase(phase);
    if (engine->settings.cupti && as_cupti_begin && atomic_load(&engine->used))
        as_cupti_begin();
    note_place(engine);
}

AS_EXPORT int actswap_mark(enum actswap_moment moment)
{
    struct as_engine *engine = as_engine_get();

    if (!engine)
        return -ENODEV;
    if ((unsigned)moment >= sizeof(phases) / sizeof(*phases))
        return -EINVAL;
    atomic_fetch_or(&engine->moments, 1U << moment);
    if (moment == ACTSWAP_AGAIN || moment == ACTSWAP_AGAIN_END)
        as_place_again(moment == ACTSWAP_AGAIN);
    else
        as_place_reset();
    as_plan_mark(engine->plan, moment);
    as_pager_mark(engine->pager, moment);
    as_ledger_settle(engine->ledger, moment);
    if (moment == ACTSWAP_BACKWARD) // with what the mark let go
        keep_after_forward(engine);
    if (moment == ACTSWAP_STEP)
        end_step(engine);
    as_ledger_place(engine->ledger, as_steps_count(engine->steps), phases[moment]);
    // Physical memory alone (cuMemCreate) does not say which device this is.
    if ((moment == ACTSWAP_BACKWARD || moment == ACTSWAP_STEP) &&
        atomic_load(&engine->used))
        as_engine_identify(engine);
    mark_device_times(engine, phases[moment]);
    if (moment == ACTSWAP_STEP && atomic_load(&engine->used))
        as_engine_write_sometimes(engine);
    return 0;
}

AS_EXPORT int actswap_enough(void)
{
    struct as_engine *engine = as_engine_get();

    if (!engine || !engine->settings.steps ||
        as_steps_count(engine->steps) < engine->settings.steps)
        return 0;
    as_notes_add(&engine->notes, "ended after as many steps as ACTSWAP_STEPS says");
    return 1;
}

// --- What only the framework knows

AS_EXPORT int actswap_tag(int device, const void *address, enum actswap_category category)
{
    struct as_engine *engine = as_engine_get();

    return engine ? as_ledger_tag(engine->ledger, device, address, category) : -ENOENT;
}

AS_EXPORT int actswap_suggest(int device, const void *address,
                              enum actswap_category category)
{
    struct as_engine *engine = as_engine_get();

    return engine ? as_ledger_suggest(engine->ledger, device, address, category)
                  : -ENOENT;
}

AS_EXPORT int actswap_held(int device, const void *address)
{
    struct as_engine *engine = as_engine_get();

    return engine ? as_ledger_held(engine->ledger, device, address) : -ENOENT;
}

AS_EXPORT void actswap_looked(void)
{
    struct as_engine *engine = as_engine_get();

    if (engine)
        as_ledger_looked(engine->ledger);
}

AS_EXPORT void actswap_expect(enum actswap_category category, uint64_t bytes)
{
    struct as_engine *engine = as_engine_get();

    if (engine && (unsigned)category < ACTSWAP_CATEGORIES)
        atomic_store(&engine->expected_bytes[category], bytes);
}

AS_EXPORT uint64_t actswap_unnamed(enum actswap_moment moment)
{
    struct as_engine *engine = as_engine_get();

    if (!engine || (unsigned)moment >= sizeof(phases) / sizeof(*phases))
        return 0;
    return as_ledger_unnamed(engine->ledger, phases[moment]);
}

static const char *unread(int err)
{
    switch (err) {
    case -EBUSY:
        return "a loss inside a stream capture was not read";
    case -ENOSPC:
        return "more losses in a step than are read";
    default:
        return "a loss could not be read";
    }
}

AS_EXPORT int actswap_root(int device, const void *address, size_t bytes, void *stream)
{
    struct as_engine *engine = as_engine_get();

    if (!engine)
        return -ENODEV;
    const int err = as_roots_add(engine->roots, device, address, bytes, stream);
    if (err)
        as_notes_add(&engine->notes, unread(err));
    return err;
}

AS_EXPORT int actswap_gradient(int device, const void *address, size_t bytes,
                               void *stream)
{
    struct as_engine *engine = as_engine_get();

    (void)device; // addresses say it
    if (!engine)
        return -ENODEV;
    if (!engine->settings.digest)
        return 0;
    const int err = as_gradients_add(engine->gradients, address, bytes, stream);
    if (err)
        as_notes_add(&engine->notes, "a gradient is missing in the digest");
    return err;
}

AS_EXPORT void actswap_note(const char *what)
{
    struct as_engine *engine = as_engine_get();

    if (engine)
        as_notes_add(&engine->notes, what);
}

// --- Figures

AS_EXPORT int actswap_stats(struct actswap_stats *stats)
{
    struct as_engine *engine = as_engine_get();
    const size_t size = stats->size;
    struct as_ledger_totals memory;
    struct as_pager_totals moves;

    if (size < sizeof(stats->size))
        return -EINVAL;
    if (!engine)
        return -ENODEV;
    as_ledger_totals(engine->ledger, -1, &memory);
    as_pager_totals(engine->pager, &moves);
    struct actswap_stats all = {
        .size = size,
        .live_bytes = memory.live_bytes,
        .peak_bytes = memory.peak_bytes,
        .reserved_bytes = memory.reserved_bytes,
        .peak_reserved_bytes = memory.peak_reserved_bytes,
        .step_peak_bytes = memory.step_peak_bytes,
        .step_peak_reserved_bytes = memory.step_peak_reserved_bytes,
        .after_forward_bytes = atomic_load(&engine->after_forward_bytes),
        .out_bytes = moves.out_bytes,
        .in_bytes = moves.in_bytes,
        .released_bytes = memory.released_bytes,
        .pinned_bytes = moves.pinned_bytes,
        .steps = as_steps_count(engine->steps),
        .pages = moves.pages,
    };
    memcpy(all.live_by_category, memory.live_by_category,
           sizeof(memory.live_by_category));
    for (int i = 0; i < ACTSWAP_MEMORIES; i++)
        all.taken_by_kind[i] = as_engine_taken_by_kind(engine, (enum actswap_memory)i);
    memcpy(stats, &all, size < sizeof(all) ? size : sizeof(all));
    return 0;
}
