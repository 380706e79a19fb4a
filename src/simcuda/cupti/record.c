// SPDX-License-Identifier: Apache-2.0
#include "simcuda/cupti/record.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/cupti/time.h"

enum { MANY = 4096, KINDS = 64 };

#define SPAN(kind, type)                                                                 \
    {                                                                                    \
        CUPTI_ACTIVITY_KIND_##kind, sizeof(type), offsetof(type, start)                  \
    }

// Where a kind has its start, behind which its end stands.
static const struct layout {
    CUpti_ActivityKind kind;
    size_t bytes, start; // 0: no times
} layouts[] = {
    SPAN(MEMCPY, CUpti_ActivityMemcpy6),
    SPAN(MEMCPY2, CUpti_ActivityMemcpyPtoP4),
    SPAN(MEMSET, CUpti_ActivityMemset4),
    SPAN(KERNEL, CUpti_ActivityKernel11),
    SPAN(CONCURRENT_KERNEL, CUpti_ActivityKernel11),
    SPAN(DRIVER, CUpti_ActivityAPI),
    SPAN(RUNTIME, CUpti_ActivityAPI),
    SPAN(SYNCHRONIZATION, CUpti_ActivitySynchronization2),
    SPAN(OVERHEAD, CUpti_ActivityOverhead3), // there is none to record
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation),
     0},
};

struct buffer {
    uint8_t *at; // NULL: none
    size_t bytes, most; // most: records; 0: as many as there is room for
};

static _Atomic uint64_t wanted; // bits by kind
static struct {
    pthread_mutex_t lock;
    CUpti_BuffersCallbackRequestFunc request;
    CUpti_BuffersCallbackCompleteFunc complete;
    union sim_record *pending;
    size_t count, capacity;
    size_t dropped;
    struct buffer open; // asked for, nothing in it yet
    bool asking;
} records = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct layout *layout_of(CUpti_ActivityKind kind)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (layouts[i].kind == kind)
            return &layouts[i];
    return NULL;
}

size_t sim_record_bytes(CUpti_ActivityKind kind)
{
    const struct layout *const layout = layout_of(kind);

    return layout ? layout->bytes : 0;
}

bool sim_records_enable(CUpti_ActivityKind kind, bool enable)
{
    if (!layout_of(kind))
        return false;
    if (enable)
        wanted |= 1ull << kind;
    else
        wanted &= ~(1ull << kind);
    return true;
}

bool sim_records_wants(CUpti_ActivityKind kind)
{
    return (int)kind < KINDS && wanted >> kind & 1;
}

bool sim_records_wants_any(void)
{
    return wanted;
}

void sim_records_use(CUpti_BuffersCallbackRequestFunc request,
                     CUpti_BuffersCallbackCompleteFunc complete)
{
    pthread_mutex_lock(&records.lock);
    records.request = request;
    records.complete = complete;
    pthread_mutex_unlock(&records.lock);
}

static bool make_room(void)
{
    const size_t capacity = records.capacity * 2 + MANY;
    union sim_record *pending = NULL;

    if (records.count < records.capacity)
        return true;
    pending = realloc(records.pending, capacity * sizeof(*pending));
    if (!pending)
        return false;
    records.pending = pending;
    records.capacity = capacity;
    return true;
}

void sim_records_add(const union sim_record *record)
{
    pthread_mutex_lock(&records.lock);
    if (make_room())
        memcpy(&records.pending[records.count++], record, sim_record_bytes(record->kind));
    else
        records.dropped++;
    pthread_mutex_unlock(&records.lock);
}

static size_t put(unsigned char *to, const union sim_record *record,
                  const struct sim_scale *scale)
{
    const struct layout *const layout = layout_of(record->kind);
    uint64_t times[2];

    memcpy(to, record, layout->bytes);
    if (layout->start) {
        memcpy(times, to + layout->start, sizeof(times));
        for (int i = 0; i < 2; i++)
            times[i] = sim_time_scaled(scale, times[i]);
        memcpy(to + layout->start, times, sizeof(times));
    }
    return layout->bytes;
}

// Asks for a buffer; one without room is none. No lock is held.
static struct buffer ask(CUpti_BuffersCallbackRequestFunc request)
{
    struct buffer buffer = {NULL, 0, 0};

    request(&buffer.at, &buffer.bytes, &buffer.most);
    return buffer;
}

// Taken from the store: nobody else has it.
struct batch {
    CUpti_BuffersCallbackRequestFunc request;
    CUpti_BuffersCallbackCompleteFunc complete;
    struct buffer open;
    union sim_record *records;
    size_t count;
};

// How many of them the buffer took, which is handed over.
static size_t fill(const struct batch *batch, size_t from, const struct buffer *buffer,
                   const struct sim_scale *scale)
{
    size_t used = 0, count = 0;

    while (from + count < batch->count && (!buffer->most || count < buffer->most)) {
        const union sim_record *const record = &batch->records[from + count];

        if (used + sim_record_bytes(record->kind) > buffer->bytes)
            break;
        used += put(buffer->at + used, record, scale);
        count++;
    }
    batch->complete(NULL, 0, buffer->at, buffer->bytes, used);
    return count;
}

static struct batch take(void)
{
    const struct batch batch = {records.request, records.complete, records.open,
                                records.pending, records.count};

    records.open = (struct buffer){NULL, 0, 0};
    records.pending = NULL;
    records.count = records.capacity = 0;
    return batch;
}

static void hand_over(const struct batch *batch)
{
    const struct sim_scale scale = sim_time_scale();
    struct buffer buffer = batch->open;
    size_t done = 0;

    while (buffer.at || done < batch->count) {
        if (!buffer.at && batch->request)
            buffer = ask(batch->request);
        if (!buffer.at)
            break;

        const size_t more = fill(batch, done, &buffer, &scale);

        buffer.at = NULL;
        done += more;
        if (!more)
            break;
    }
    free(batch->records);
    pthread_mutex_lock(&records.lock);
    records.dropped += batch->count - done;
    pthread_mutex_unlock(&records.lock);
}

void sim_records_deliver(void)
{
    pthread_mutex_lock(&records.lock);
    const struct batch batch = take();

    pthread_mutex_unlock(&records.lock);
    hand_over(&batch);
}

// As CUPTI's own does, a buffer is asked for when there is something to put into it.
void sim_records_settle(void)
{
    CUpti_BuffersCallbackRequestFunc request = NULL;

    pthread_mutex_lock(&records.lock);
    const bool many = records.count >= MANY;

    if (records.count && !records.open.at && !records.asking)
        request = records.request;
    records.asking = records.asking || request;
    pthread_mutex_unlock(&records.lock);
    if (request) {
        const struct buffer buffer = ask(request);

        pthread_mutex_lock(&records.lock);
        records.open = buffer;
        records.asking = false;
        pthread_mutex_unlock(&records.lock);
    }
    if (many)
        sim_records_deliver();
}

size_t sim_records_dropped(void)
{
    pthread_mutex_lock(&records.lock);
    const size_t dropped = records.dropped;

    records.dropped = 0;
    pthread_mutex_unlock(&records.lock);
    return dropped;
}

void sim_records_forget(void)
{
    wanted = 0;
    pthread_mutex_init(&records.lock, NULL);
    records.count = records.dropped = 0;
    records.open = (struct buffer){NULL, 0, 0};
    records.asking = false;
    records.request = NULL;
    records.complete = NULL;
}
