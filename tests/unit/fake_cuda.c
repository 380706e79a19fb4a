// SPDX-License-Identifier: Apache-2.0
#include "fake_cuda.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime.h"

enum { NOT_READY = 600, FAILED = 2, NAMES = 32, LANES = 64 };

enum kind { FILL, COPY, RECORD, WAIT };

struct work {
    struct work *next, *queued;
    struct stream *stream;
    enum kind kind;
    bool done;
    void *to;
    const void *from;
    int value;
    size_t bytes;
    struct work *awaited; // a WAIT's record, or NULL
    struct work *older; // what was queued before, on any stream
};

struct stream {
    struct work *first, *last;
    enum fake_pace pace;
    bool capturing;
    struct stream *next;
};

struct event {
    struct work *record;
    bool captured;
};

static struct work *newest;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream legacy, *streams = &legacy;
static enum fake_pace lane_pace[LANES];
static int lanes, device_now;
static bool skips_bytes;
static int captures, spoilt;
static __thread int mode; // 0: global, as threads begin
static void (*watcher)(const char *function);
static struct {
    char name[48];
    int calls, fail_at;
} names[NAMES];

// --- Queue. Work is kept to the end: a test is short, and tests are processes.

static void run_until(struct work *work);

static void run_one(struct work *work)
{
    switch (work->kind) {
    case FILL:
        memset(work->to, work->value, work->bytes);
        break;
    case COPY:
        memcpy(work->to, work->from, work->bytes);
        break;
    case WAIT:
        if (work->awaited)
            run_until(work->awaited);
        break;
    case RECORD:
        break;
    }
    work->done = true;
}

static void run_until(struct work *work)
{
    struct stream *stream = work->stream;
    while (!work->done) {
        struct work *first = stream->first;
        run_one(first);
        stream->first = first->queued;
        if (!stream->first)
            stream->last = NULL;
    }
}

static struct work *queue(struct stream *stream, struct work work)
{
    struct work *fresh = malloc(sizeof(*fresh));
    *fresh = work;
    fresh->stream = stream;
    fresh->older = newest;
    newest = fresh;
    if (stream->last)
        stream->last->queued = fresh;
    else
        stream->first = fresh;
    stream->last = fresh;
    if (stream->pace == FAKE_EAGER)
        run_until(fresh);
    return fresh;
}

static struct stream *to_stream(void *stream)
{
    return stream ? stream : &legacy;
}

static struct stream *make_stream(enum fake_pace pace)
{
    struct stream *stream = calloc(1, sizeof(*stream));
    stream->pace = pace;
    stream->next = streams->next;
    streams->next = stream;
    return stream;
}

// --- For tests

void *fake_stream(enum fake_pace pace)
{
    pthread_mutex_lock(&lock);
    void *stream = make_stream(pace);
    pthread_mutex_unlock(&lock);
    return stream;
}

void fake_pace(void *stream, enum fake_pace pace)
{
    to_stream(stream)->pace = pace;
}

void fake_lane_pace(int nth, enum fake_pace pace)
{
    lane_pace[nth] = pace;
}

void fake_fill(void *stream, void *address, int value, size_t bytes)
{
    pthread_mutex_lock(&lock);
    queue(to_stream(stream),
          (struct work){.kind = FILL, .to = address, .value = value, .bytes = bytes});
    pthread_mutex_unlock(&lock);
}

void fake_read(void *stream, const void *address, void *sink, size_t bytes)
{
    pthread_mutex_lock(&lock);
    queue(to_stream(stream),
          (struct work){.kind = COPY, .to = sink, .from = address, .bytes = bytes});
    pthread_mutex_unlock(&lock);
}

void fake_finish(void)
{
    pthread_mutex_lock(&lock);
    for (struct stream *stream = streams; stream; stream = stream->next)
        while (stream->last)
            run_until(stream->last);
    pthread_mutex_unlock(&lock);
}

static int slot(const char *name)
{
    int at = 0;
    while (names[at].name[0] && strcmp(names[at].name, name) != 0)
        at++;
    snprintf(names[at].name, sizeof(names[at].name), "%s", name);
    return at;
}

void fake_fail(const char *function, int nth)
{
    int at = slot(function);
    names[at].fail_at = names[at].calls + nth;
}

int fake_calls(const char *function)
{
    return names[slot(function)].calls;
}

void fake_capture(void *stream, bool capturing)
{
    captures += capturing - to_stream(stream)->capturing;
    to_stream(stream)->capturing = capturing;
}

int fake_spoilt(void)
{
    return spoilt;
}

// A call that the guard of a capture would refuse.
static void unsafe(void)
{
    spoilt += captures && mode != AS_CUDA_RELAXED;
}

static void touch(const struct stream *stream)
{
    spoilt += stream->capturing;
}

void fake_skips_bytes(bool answer)
{
    skips_bytes = answer;
}

void fake_watch(void (*watch)(const char *function))
{
    watcher = watch;
}

// Every call begins here, with the lock taken. True: it is to fail.
static bool fails(const char *function)
{
    if (watcher)
        watcher(function);
    pthread_mutex_lock(&lock);
    int at = slot(function);
    names[at].calls++;
    return names[at].calls == names[at].fail_at;
}

static int leave(int result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

// --- The runtime

void *as_cuda_find(const char *symbol, const void *caller)
{
    (void)symbol;
    (void)caller;
    return NULL;
}

int as_cuda_stream_create(void **stream)
{
    if (fails(__func__))
        return leave(FAILED);
    *stream = make_stream(lanes < LANES ? lane_pace[lanes] : FAKE_EAGER);
    lanes++;
    return leave(0);
}

int as_cuda_stream_destroy(void *stream)
{
    (void)stream;
    return leave(fails(__func__) ? FAILED : 0);
}

int as_cuda_stream_wait(void *stream, void *event)
{
    if (fails(__func__))
        return leave(FAILED);
    struct event *awaited = event;
    spoilt += to_stream(stream)->capturing != awaited->captured;
    queue(to_stream(stream), (struct work){.kind = WAIT, .awaited = awaited->record});
    return leave(0);
}

int as_cuda_stream_synchronize(void *stream)
{
    if (fails(__func__))
        return leave(FAILED);
    touch(to_stream(stream));
    while (to_stream(stream)->last)
        run_until(to_stream(stream)->last);
    return leave(0);
}

int as_cuda_stream_query(void *stream)
{
    if (fails(__func__))
        return leave(FAILED);
    touch(to_stream(stream));
    return leave(to_stream(stream)->last ? NOT_READY : 0);
}

int as_cuda_stream_capturing(void *stream, int *capturing)
{
    if (fails(__func__))
        return leave(FAILED);
    *capturing = to_stream(stream)->capturing;
    return leave(0);
}

int as_cuda_capture_mode(int *exchanged)
{
    if (fails(__func__))
        return leave(FAILED);
    int before = mode;
    mode = *exchanged;
    *exchanged = before;
    return leave(0);
}

int as_cuda_event_create(void **event)
{
    if (fails(__func__))
        return leave(FAILED);
    *event = calloc(1, sizeof(struct event));
    return leave(0);
}

int as_cuda_event_destroy(void *event)
{
    bool failed = fails(__func__);
    free(event);
    return leave(failed ? FAILED : 0);
}

int as_cuda_event_record(void *event, void *stream)
{
    if (fails(__func__))
        return leave(FAILED);
    struct event *recorded = event;
    recorded->record = queue(to_stream(stream), (struct work){.kind = RECORD});
    recorded->captured = to_stream(stream)->capturing;
    return leave(0);
}

int as_cuda_event_query(void *event)
{
    if (fails(__func__))
        return leave(FAILED);
    const struct event *asked = event;
    unsafe();
    spoilt += asked->captured;
    return leave(!asked->record || asked->record->done ? 0 : NOT_READY);
}

int as_cuda_event_synchronize(void *event)
{
    if (fails(__func__))
        return leave(FAILED);
    struct event *awaited = event;
    unsafe();
    spoilt += awaited->captured;
    if (awaited->record)
        run_until(awaited->record);
    return leave(0);
}

static int copy(void *to, const void *from, size_t bytes, void *stream)
{
    queue(to_stream(stream),
          (struct work){.kind = COPY, .to = to, .from = from, .bytes = bytes});
    return leave(0);
}

int as_cuda_copy_out(void *host, const void *device, size_t bytes, void *stream)
{
    return fails(__func__) ? leave(FAILED) : copy(host, device, bytes, stream);
}

int as_cuda_copy_in(void *device, const void *host, size_t bytes, void *stream)
{
    return fails(__func__) ? leave(FAILED) : copy(device, host, bytes, stream);
}

int as_cuda_copy_now(void *device, const void *host, size_t bytes)
{
    if (fails(__func__))
        return leave(FAILED);
    memcpy(device, host, bytes);
    return leave(0);
}

int as_cuda_host_alloc(void **host, size_t bytes)
{
    if (fails(__func__))
        return leave(FAILED);
    unsafe();
    *host = malloc(bytes);
    return leave(0);
}

int as_cuda_host_free(void *host)
{
    bool failed = fails(__func__);
    unsafe();
    memset(host, 0xDD, malloc_usable_size(host)); // a copy from it comes too late
    free(host);
    return leave(failed ? FAILED : 0);
}

int as_cuda_device_get(int *device)
{
    if (fails(__func__))
        return leave(FAILED);
    *device = device_now;
    return leave(0);
}

int as_cuda_device_set(int device)
{
    if (fails(__func__))
        return leave(FAILED);
    device_now = device;
    return leave(0);
}

void as_cuda_refused(struct as_refused found[AS_REFUSED_MAX])
{
    memset(found, 0, AS_REFUSED_MAX * sizeof(*found));
}

static size_t device_free_bytes;

void fake_free_bytes(size_t bytes)
{
    device_free_bytes = bytes;
}

int as_cuda_memory(size_t *free_bytes, size_t *total_bytes)
{
    if (!device_free_bytes)
        return 801;
    *free_bytes = device_free_bytes;
    *total_bytes = device_free_bytes;
    return 0;
}

static bool shares_memory;

void fake_shares_memory(bool answer)
{
    shares_memory = answer;
}

bool as_cuda_shares_memory(int device)
{
    (void)device;
    return shares_memory;
}

int as_cuda_device_name(int device, char *name, size_t name_bytes)
{
    (void)device;
    bool failed = fails(__func__);
    snprintf(name, name_bytes, "fake");
    return leave(failed ? FAILED : 0);
}

bool as_cuda_computed(const void *address, size_t bytes)
{
    (void)address, (void)bytes;
    return true;
}

struct as_races as_cuda_races(void)
{
    return (struct as_races){0};
}

const char *as_cuda_race(unsigned which)
{
    (void)which;
    return NULL;
}

struct as_times as_cuda_times(void)
{
    return (struct as_times){0};
}

struct as_missed as_cuda_missed(void)
{
    return (struct as_missed){0};
}

bool as_cuda_skips_bytes(void)
{
    return skips_bytes;
}
