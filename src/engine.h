// SPDX-License-Identifier: Apache-2.0
#ifndef AS_ENGINE_H
#define AS_ENGINE_H

// The one engine of a process: everything that the hooks and the C interface share.
//
// It comes to life with the first CUDA call that the hooks see, or when a framework
// attaches, never at load: a process without CUDA pays nothing and writes nothing. A
// wrong setting ends the process there, with status 78. The report is begun when the
// first device memory is taken and finished by an exit handler. A forked child of a
// process that used CUDA is left alone, as CUDA cannot be used there.
//
// Thread-safety: every function may be called from any thread. No lock is held over a
// CUDA call.

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <actswap/actswap.h>

#include "core/settings.h"
#include "report/oom.h"
#include "report/report.h"
#include "track/notes.h"

struct as_engine {
    struct as_settings settings;
    struct as_ledger *ledger; // tensors
    struct as_ledger *segments; // what the hooks saw taken from the driver
    struct as_ledger
        *others; // the same, not on a device: enum actswap_memory in its place
    struct as_physical *physical;
    struct as_steps *steps;
    struct as_roots *roots;
    struct as_gradients *gradients;
    struct as_plan *plan;
    struct as_pager *pager;
    struct as_notes notes, warnings;

    atomic_bool used; // device memory was taken
    atomic_bool identified; // the device was asked for its name
    atomic_bool attached;
    atomic_bool events; // the framework's allocator speaks
    atomic_bool mistaken; // it should, and does not
    atomic_bool too_large; // card_warning is written
    atomic_bool oom; // out of memory, and no step since
    const char *_Atomic framework;
    _Atomic uint64_t after_forward_bytes;
    _Atomic uint64_t expected_bytes[ACTSWAP_CATEGORIES]; // 0: not known
    _Atomic unsigned moments; // as in struct as_facts
    _Atomic uint64_t context_bytes, comm_bytes, other_bytes; // as in struct as_outside

    _Atomic uint64_t budget_bytes; // as in struct as_facts
    _Atomic uint64_t card_bytes; // that a card is to have, 0: its own
    _Atomic uint64_t cards_seen; // a bit a device
    char card_warning[160];

    pthread_mutex_t step_lock; // the figures at the last step's end
    uint64_t out_bytes, in_bytes, released_bytes;

    pthread_mutex_t report_lock; // the rest; no CUDA call under it
    bool stale; // the last write failed
    struct as_oom last_oom;
    bool had_oom;
    unsigned oom_files;
    uint64_t written_ns; // 0: not since the first memory was taken
    int rank, world, log_level;
    uint64_t device_bytes, own_bytes; // as card_bytes of struct as_facts
    bool simulated;
    const char *compute;
    char device[128];
    char run_id[256];
    char shown[PATH_MAX]; // the report's name as the user gave it
    char path[PATH_MAX]; // absolute, as programs change their folder; "": none
};

// NULL: this process is left alone.
struct as_engine *as_engine_get(void);

// --- From the hooks. errno is kept.

// The driver gave memory to the code at `caller`.
struct as_taking {
    enum actswap_memory kind;
    const void *address;
    size_t bytes;
    void *stream; // as in actswap_allocated(), of device memory
    const void *caller;
};

void as_engine_taken(const struct as_taking *taking); // on the current device

// Memory that is about to be freed: afterwards its address may be another one's.
struct as_freeing {
    const void *address;
    uint64_t segment, block, other; // generations, 0: not known
    int kind; // enum actswap_memory of `other`
};

// `kinds` has a bit (1 << kind) for each kind that the call frees.
struct as_freeing as_engine_freeing(const void *address, unsigned kinds);
void as_engine_freed(const struct as_freeing *freeing);

// What was taken and not given back.
uint64_t as_engine_taken_by_kind(struct as_engine *engine, enum actswap_memory kind);

// All memory of a device went at once, after which the device is as new.
void as_engine_device_reset(int device);

// Physical memory behind handles, which a program maps where it likes (track/physical.h).
void as_engine_handle_made(uint64_t handle, int device, size_t bytes, const void *caller);
void as_engine_handle_retained(uint64_t handle, uint64_t address);
uint64_t as_engine_stamp(void);
void as_engine_handle_released(uint64_t handle, uint64_t stamp);
void as_engine_mapped(uint64_t address, size_t bytes, uint64_t handle);
void as_engine_unmapped(uint64_t address, size_t bytes, uint64_t stamp);

// A stream was made on the current device; one is about to be destroyed.
void as_engine_stream_made(void *stream);
void as_engine_stream_ending(void *stream);

// The size that a card is to have at most (ACTSWAP_MEMORY), 0: its own.
uint64_t as_engine_card_bytes(void);

// What the hooks saw taken on a device.
uint64_t as_engine_taken_bytes(int device);

// A card was asked what it has. The first time it is seen whether it can be as small as it
// is to be: if not, the process ends as with any wrong setting.
void as_engine_card_seen(int device, uint64_t used_bytes, uint64_t total_bytes);

// The driver had no memory left. Told by the framework: `allocated_bytes` and
// `reserved_bytes` are its totals; by a hook: both 0.
void as_engine_out_of_memory(uint64_t asked_bytes, uint64_t allocated_bytes,
                             uint64_t reserved_bytes);

// --- To the hooks: the device's own clock (hooks/cupti/cupti.h), which a program that is
// made of the engine alone does not have

__attribute__((weak)) void as_cupti_begin(void);
__attribute__((weak)) void as_cupti_place(void);
__attribute__((weak)) void as_cupti_end(void);

// --- For the C interface

// Device memory was taken: begins the report, once.
void as_engine_use(struct as_engine *engine);

// Asks the device for its name, once. Makes CUDA calls.
void as_engine_identify(struct as_engine *engine);

// The device's size is known, or 0: from then on its peak is held against ACTSWAP_BUDGET.
void as_engine_hold_to_budget(struct as_engine *engine, uint64_t device_bytes);

// A warning for the report, and for the user when it is the first of its kind.
void as_engine_warn(struct as_engine *engine, const char *sentence);

// Compares what the driver gave with what the framework's allocator has, at a time when
// neither changes.
void as_engine_reconcile(struct as_engine *engine);

// Writes a report under a name that did not exist, which `path` becomes. 0 or a negative
// errno. Under report_lock, as the next one.
int as_engine_create_report(struct as_engine *engine, char *path, size_t path_bytes);

// Rewrites the run's own report and tells the user when that fails.
void as_engine_write_report(struct as_engine *engine, bool complete);

// Rewrites the report at the end of a step, if it is time.
void as_engine_write_sometimes(struct as_engine *engine);
void as_engine_write_now(struct as_engine *engine);

#endif
