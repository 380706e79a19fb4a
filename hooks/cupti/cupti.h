// SPDX-License-Identifier: Apache-2.0
#ifndef AS_HOOKS_CUPTI_CUPTI_H
#define AS_HOOKS_CUPTI_CUPTI_H

// NVIDIA's CUPTI as a clock: the device's kernels and copies come as records of its
// activity API, into the books of track/telemetry.h. Never a subscriber to callbacks,
// which there can be one of only, and never in anybody's way: where CUPTI is not there, or
// another tool has it, nothing is measured; when one comes later, ours ends first.
//
// A record comes on whichever thread CUPTI chooses, perhaps inside of a CUDA call of the
// program's: no CUDA call is made there, and no lock taken that is held over one.
//
// Thread-safety: every function may be called from any thread, outside of CUDA calls.

#include <stddef.h>
#include <stdint.h>

// Begins, once a process. What comes of it is in the books.
void as_cupti_begin(void);

// The thread's work from now on is that of as_telemetry_id().
void as_cupti_place(void);

// Brings what there is into the books; nothing comes after.
void as_cupti_end(void);

// --- Between the files

// CUPTI's functions that are used, of the library that the process has, or of the one with
// the runtime's major version, which is loaded. NULL in `missing`: all are there; else the
// first that is not, or the library's name.
struct as_cupti_library {
    int (*GetVersion)(uint32_t *version);
    int (*ActivityRegisterCallbacks)(void (*request)(uint8_t **, size_t *, size_t *),
                                     void (*complete)(void *, uint32_t, uint8_t *, size_t,
                                                      size_t));
    int (*ActivityEnable)(int kind);
    int (*ActivityDisable)(int kind);
    int (*ActivityFlushAll)(uint32_t flag);
    int (*ActivityGetNextRecord)(uint8_t *buffer, size_t bytes, uint8_t **record);
    int (*ActivityGetNumDroppedRecords)(void *context, uint32_t stream, size_t *dropped);
    int (*ActivityPushExternalCorrelationId)(int kind, uint64_t id);
    int (*ActivityPopExternalCorrelationId)(int kind, uint64_t *last);
};

const char *as_cupti_load(struct as_cupti_library *library);

// The function of that name that code at `caller` would have called without us.
void *as_cupti_find(const char *name, const void *caller);

// Enters a record into the books.
void as_cupti_record(const uint8_t *record);

#endif
