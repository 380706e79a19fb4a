// SPDX-License-Identifier: Apache-2.0
#include "hooks.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "cuda/runtime.h"

enum { PLACES = 4 };

// A place is written once: first `real`, then `caller`.
struct place {
    const void *_Atomic caller;
    void *_Atomic real;
};

static struct entry {
    const char *name;
    atomic_uint used;
    struct place places[PLACES];
} hooks[AS_HOOK_COUNT] = {
#define ENTRY(api, fn, ...) [AS_HOOK_##fn] = {.name = #fn},
    AS_RUNTIME_CALLS(ENTRY) AS_DRIVER_CALLS(ENTRY) AS_OWN_CALLS(ENTRY)
#undef ENTRY
};

static __thread unsigned depth __attribute__((tls_model("initial-exec")));

static void remember(struct entry *entry, const void *caller, void *real)
{
    const unsigned n = atomic_fetch_add(&entry->used, 1);

    if (n >= PLACES) {
        atomic_store(&entry->used, PLACES);
        return; // rare callers are looked up each time
    }
    atomic_store_explicit(&entry->places[n].real, real, memory_order_relaxed);
    atomic_store_explicit(&entry->places[n].caller, caller, memory_order_release);
}

void *as_hook_real(enum as_hook hook, const void *caller)
{
    struct entry *entry = &hooks[hook];

    for (unsigned i = 0; i < PLACES; i++) {
        const struct place *place = &entry->places[i];

        if (atomic_load_explicit(&place->caller, memory_order_acquire) == caller)
            return atomic_load_explicit(&place->real, memory_order_relaxed);
    }
    const int saved_errno = errno;
    void *real = as_cuda_find(entry->name, caller);
    if (real)
        remember(entry, caller, real);
    errno = saved_errno;
    return real;
}

const char *as_hook_name(enum as_hook hook)
{
    return hooks[hook].name;
}

bool as_hook_enter(void)
{
    return depth++ == 0;
}

void as_hook_leave(void)
{
    depth--;
}
