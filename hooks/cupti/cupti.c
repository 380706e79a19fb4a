// SPDX-License-Identifier: Apache-2.0
#include "cupti.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/export.h"
#include "core/log.h"
#include "layout.h"
#include "track/telemetry.h"

// NVIDIA recommends buffers of 1 to 10 MB.
enum { BUFFER_BYTES = 1 << 20, REASON_BYTES = 160, FORCED = 1 };
enum { MULTIPLE_SUBSCRIBERS = 39, UNKNOWN = 999 };

typedef void request_fn(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                         size_t used);
typedef int register_fn(request_fn *request, complete_fn *complete);

// Calls have records as well: without them nothing has a number.
static const int kinds[] = {AS_CUPTI_KERNEL, AS_CUPTI_MEMCPY, AS_CUPTI_RUNTIME,
                            AS_CUPTI_DRIVER, AS_CUPTI_EXTERNAL};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static struct as_cupti_library cupti;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of beginning and ending
static bool begun; // or never to begin
static bool taken; // by a profiler
static atomic_bool running;
static char reason[REASON_BYTES];

static __thread uint64_t pushed; // 0: nothing

// --- Records

static void request(uint8_t **buffer, size_t *bytes, size_t *records)
{
    *buffer = malloc(BUFFER_BYTES);
    *bytes = *buffer ? BUFFER_BYTES : 0;
    *records = 0; // as many as there is room for
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                     size_t used)
{
    uint8_t *record = NULL;

    (void)context, (void)stream, (void)bytes;
    while (used && !cupti.ActivityGetNextRecord(buffer, used, &record))
        as_cupti_record(record);
    free(buffer);
}

// --- Beginning and ending

static void miss(const char *what, const char *why, int code)
{
    (void)snprintf(reason, sizeof(reason), code ? "%s %s (%d)" : "%s %s", what, why,
                   code);
    as_telemetry_set(AS_TELEMETRY_MISSING, reason);
    as_log(AS_LOG_WARN, "device times: not measured: %s", reason);
}

static void refuse(const char *function, int code)
{
    miss(function,
         code == MULTIPLE_SUBSCRIBERS ? "is refused as another tool has CUPTI"
         : code == UNKNOWN            ? "fails: CUPTI does not work here"
                                      : "fails",
         code);
}

static void disable(void)
{
    for (int i = 0; i < KINDS; i++)
        (void)cupti.ActivityDisable(kinds[i]);
}

static void begin(void)
{
    const char *const missing = as_cupti_load(&cupti);
    uint32_t version = 0;
    int code = missing ? 0 : cupti.GetVersion(&version);

    if (missing) {
        miss(missing, "is not there", 0);
        return;
    }
    if (code) {
        refuse("cuptiGetVersion", code);
        return;
    }
    if (version < AS_CUPTI_OLDEST || version >= AS_CUPTI_BEHIND) {
        miss("CUPTI", "is of a version that is not known", (int)version);
        return;
    }
    code = cupti.ActivityRegisterCallbacks(request, complete);
    if (code) {
        refuse("cuptiActivityRegisterCallbacks", code);
        return;
    }
    for (int i = 0; i < KINDS && !code; i++)
        code = cupti.ActivityEnable(kinds[i]);
    if (code) {
        disable();
        refuse("cuptiActivityEnable", code);
        return;
    }
    as_telemetry_set(AS_TELEMETRY_ON, NULL);
    atomic_store(&running, true);
}

// CUPTI does not live on in a child.
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    atomic_store(&running, false);
    pushed = 0;
}

void as_cupti_begin(void)
{
    if (atomic_load_explicit(&running, memory_order_relaxed))
        return;
    pthread_mutex_lock(&lock);
    if (!begun && taken)
        miss("a profiler", "was there first", 0);
    else if (!begun && !pthread_atfork(NULL, NULL, in_child))
        begin();
    begun = true;
    pthread_mutex_unlock(&lock);
}

static void leave_thread(void)
{
    if (pushed)
        (void)cupti.ActivityPopExternalCorrelationId(AS_CUPTI_CUSTOM, NULL);
    pushed = 0;
}

// With the lock held.
static void end(void)
{
    size_t dropped = 0;

    leave_thread();
    (void)cupti.ActivityFlushAll(FORCED);
    disable();
    if (!cupti.ActivityGetNumDroppedRecords(NULL, 0, &dropped))
        as_telemetry_drop(dropped);
}

void as_cupti_end(void)
{
    pthread_mutex_lock(&lock);
    if (atomic_exchange(&running, false))
        end();
    begun = true;
    pthread_mutex_unlock(&lock);
}

void as_cupti_place(void)
{
    if (!atomic_load_explicit(&running, memory_order_relaxed)) {
        if (pushed)
            leave_thread();
        return;
    }
    const uint64_t id = as_telemetry_id();

    if (id == pushed)
        return;
    leave_thread();
    if (!cupti.ActivityPushExternalCorrelationId(AS_CUPTI_CUSTOM, id))
        pushed = id;
}

// --- Others

// A profiler takes the records: it has the field alone.
static void give_way(void)
{
    pthread_mutex_lock(&lock);
    taken = true;
    if (atomic_exchange(&running, false)) {
        end();
        as_telemetry_set(AS_TELEMETRY_CUT, "a profiler took CUPTI");
        as_log(AS_LOG_INFO, "device times: a profiler took CUPTI, no more are measured");
    }
    pthread_mutex_unlock(&lock);
}

AS_EXPORT int cuptiActivityRegisterCallbacks(request_fn *theirs, complete_fn *done);

int cuptiActivityRegisterCallbacks(request_fn *theirs, complete_fn *done)
{
    register_fn *const real = (register_fn *)as_cupti_find(
        "cuptiActivityRegisterCallbacks", __builtin_return_address(0));

    if (!real)
        return UNKNOWN;
    give_way();
    return real(theirs, done);
}
