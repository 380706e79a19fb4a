// SPDX-License-Identifier: Apache-2.0
//
// What the hooks saw taken from the driver, and given back.
#include <errno.h>
#include <string.h>

#include "cuda/object.h"
#include "cuda/runtime.h"
#include "engine.h"
#include "track/ledger.h"
#include "track/physical.h"

static void raise_to(_Atomic uint64_t *highest, uint64_t value)
{
    uint64_t now = atomic_load(highest);

    while (now < value && !atomic_compare_exchange_weak(highest, &now, value))
        ;
}

static void name_segment(struct as_engine *engine, int device, const void *address,
                         const void *caller)
{
    struct as_ledger_totals totals;
    char name[AS_OBJECT_NAME];

    if (!as_object_soname(caller, name) || !strstr(name, "nccl"))
        return;
    as_ledger_tag(engine->segments, device, address, ACTSWAP_COMM);
    as_ledger_totals(engine->segments, -1, &totals);
    raise_to(&engine->comm_bytes, totals.live_by_category[ACTSWAP_COMM]);
}

static void add_segment(struct as_engine *engine, const struct as_taking *taking)
{
    int device;

    if (as_cuda_device_get(&device))
        device = 0;
    as_ledger_add(engine->segments, device, taking->address, taking->bytes,
                  AS_LEDGER_ALL_LIVE, taking->stream);
    name_segment(engine, device, taking->address, taking->caller);
    as_engine_identify(engine);
    as_engine_use(engine);
    if (!atomic_load(&engine->events))
        as_ledger_add(engine->ledger, device, taking->address, taking->bytes,
                      AS_LEDGER_ALL_LIVE, taking->stream);
}

void as_engine_taken(const struct as_taking *taking)
{
    const int saved_errno = errno;
    struct as_engine *engine = as_engine_get();

    if (engine && taking->address && taking->kind == ACTSWAP_MEMORY_DEVICE) {
        add_segment(engine, taking);
    } else if (engine && taking->address) {
        as_ledger_add(engine->others, (int)taking->kind, taking->address, taking->bytes,
                      AS_LEDGER_ALL_LIVE, NULL);
        as_engine_use(engine);
    }
    errno = saved_errno;
}

uint64_t as_engine_taken_by_kind(struct as_engine *engine, enum actswap_memory kind)
{
    struct as_ledger_totals totals;

    if (kind == ACTSWAP_MEMORY_DEVICE)
        as_ledger_totals(engine->segments, -1, &totals);
    else
        as_ledger_totals(engine->others, (int)kind, &totals);
    return totals.live_bytes;
}

static uint64_t generation_of(struct as_ledger *ledger, int device, const void *address)
{
    struct as_block block;

    return as_ledger_find(ledger, device, address, &block) && block.address == address
               ? block.generation
               : 0;
}

struct as_freeing as_engine_freeing(const void *address, unsigned kinds)
{
    const int saved_errno = errno;
    struct as_freeing freeing = {.address = address};
    struct as_engine *engine = as_engine_get();

    if (engine && address) {
        const bool device = kinds & 1U << ACTSWAP_MEMORY_DEVICE;

        if (device)
            freeing.segment = generation_of(engine->segments, -1, address);
        if (device && !atomic_load(&engine->events))
            freeing.block = generation_of(engine->ledger, -1, address);
        for (int i = 1; i < ACTSWAP_MEMORIES && !freeing.other; i++) {
            freeing.kind = i;
            if (kinds & 1U << i)
                freeing.other = generation_of(engine->others, i, address);
        }
    }
    errno = saved_errno;
    return freeing;
}

void as_engine_freed(const struct as_freeing *freeing)
{
    struct as_engine *engine = as_engine_get();

    if (!engine)
        return;
    if (freeing->segment)
        as_ledger_remove(engine->segments, -1, freeing->address, freeing->segment,
                         AS_LEDGER_ALL_LIVE);
    if (freeing->other)
        as_ledger_remove(engine->others, freeing->kind, freeing->address, freeing->other,
                         AS_LEDGER_ALL_LIVE);
    if (freeing->block && !atomic_load(&engine->events))
        as_ledger_remove(engine->ledger, -1, freeing->address, freeing->block,
                         AS_LEDGER_ALL_LIVE);
}

void as_engine_device_reset(int device)
{
    struct as_engine *engine = as_engine_get();

    if (!engine || device < 0 || device >= AS_LEDGER_DEVICES)
        return;
    as_ledger_empty(engine->segments, device);
    if (!atomic_load(&engine->events))
        as_ledger_empty(engine->ledger, device);
}

void as_engine_reconcile(struct as_engine *engine)
{
    struct as_ledger_totals tensors, segments;

    if (!atomic_load(&engine->events))
        return;
    as_ledger_totals(engine->ledger, -1, &tensors);
    as_ledger_totals(engine->segments, -1, &segments);
    const uint64_t known =
        tensors.reserved_bytes + segments.live_by_category[ACTSWAP_COMM];
    if (segments.live_bytes > known)
        raise_to(&engine->other_bytes, segments.live_bytes - known);
}

// --- Physical memory

static void forget(void *context, const void *key)
{
    struct as_engine *engine = context;

    as_ledger_remove(engine->segments, -1, key, 0, AS_LEDGER_ALL_LIVE);
}

static struct as_physical_sink sink_of(struct as_engine *engine)
{
    return (struct as_physical_sink){forget, engine};
}

void as_engine_handle_made(uint64_t handle, int device, size_t bytes, const void *caller)
{
    const int saved_errno = errno;
    struct as_engine *engine = as_engine_get();

    if (engine) {
        const struct as_physical_sink sink = sink_of(engine);
        const void *key = as_physical_add(engine->physical, handle, &sink);

        as_engine_use(engine);
        if (key) {
            as_ledger_add(engine->segments, device, key, bytes, AS_LEDGER_ALL_LIVE, NULL);
            name_segment(engine, device, key, caller);
        }
    }
    errno = saved_errno;
}

void as_engine_handle_retained(uint64_t handle, uint64_t address)
{
    struct as_engine *engine = as_engine_get();

    if (engine)
        as_physical_retain(engine->physical, handle, address);
}

uint64_t as_engine_stamp(void)
{
    const int saved_errno = errno;
    const struct as_engine *engine = as_engine_get();

    errno = saved_errno;
    return engine ? as_physical_stamp(engine->physical) : 0;
}

void as_engine_handle_released(uint64_t handle, uint64_t stamp)
{
    struct as_engine *engine = as_engine_get();

    if (engine) {
        const struct as_physical_sink sink = sink_of(engine);

        as_physical_release(engine->physical, handle, stamp, &sink);
    }
}

void as_engine_mapped(uint64_t address, size_t bytes, uint64_t handle)
{
    const int saved_errno = errno;
    struct as_engine *engine = as_engine_get();

    if (engine) {
        const struct as_physical_sink sink = sink_of(engine);

        as_physical_map(engine->physical, address, bytes, handle, &sink);
    }
    errno = saved_errno;
}

void as_engine_unmapped(uint64_t address, size_t bytes, uint64_t stamp)
{
    struct as_engine *engine = as_engine_get();

    if (engine) {
        const struct as_physical_sink sink = sink_of(engine);

        as_physical_unmap(engine->physical, address, bytes, stamp, &sink);
    }
}
