// SPDX-License-Identifier: Apache-2.0
#include "simcuda/order/entry.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "simcuda/runtime/device.h"
#include "simcuda/simcuda.h"

// A device's own queues are bounded, too: submission then waits for the oldest entries,
// many at a time, as each wait is a change of threads.
enum { PENDING_MAX = 16384, MAKE_ROOM = 1024 };

// Owned by `after`; `before` is NULL once that one is done.
struct sim_edge {
    struct sim_entry *before, *after;
    struct sim_edge *next_in, *next_out;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; // for the worker
    pthread_cond_t done; // for those who wait
    bool started;
    bool running; // an entry, with the lock let go
    bool calling_user;
    uint64_t numbers;
    unsigned pending;
    struct sim_entry *ready; // wanted, nothing missing, something to run: by number
    struct sim_entry *idle; // likewise, nothing to run
    struct sim_entry *oldest, *newest;
} queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .work = PTHREAD_COND_INITIALIZER,
    .done = PTHREAD_COND_INITIALIZER,
};

static __thread bool inside;

void sim_queue_lock(void)
{
    pthread_mutex_lock(&queue.lock);
}

void sim_queue_unlock(void)
{
    pthread_mutex_unlock(&queue.lock);
}

bool sim_queue_inside(void)
{
    return inside;
}

struct sim_entry *sim_entry_create(const struct sim_task *task)
{
    struct sim_entry *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return NULL;
    entry->references = 1;
    entry->task = *task;
    return entry;
}

struct sim_entry *sim_entry_hold(struct sim_entry *entry)
{
    entry->references++;
    return entry;
}

static void drop_edges(struct sim_entry *entry)
{
    while (entry->in) {
        struct sim_edge *edge = entry->in;

        entry->in = edge->next_in;
        free(edge);
    }
}

void sim_entry_release(struct sim_entry *entry)
{
    if (!entry || --entry->references)
        return;
    drop_edges(entry);
    free(entry);
}

uint64_t sim_entry_end_ns(const struct sim_entry *entry)
{
    return entry->start_ns + entry->task.cost_ns;
}

static void start_after(struct sim_entry *entry, const struct sim_entry *before)
{
    if (sim_entry_end_ns(before) > entry->start_ns)
        entry->start_ns = sim_entry_end_ns(before);
}

bool sim_entry_after(struct sim_entry *entry, struct sim_entry *before)
{
    if (!before)
        return true;
    if (before->done) {
        start_after(entry, before);
        return true;
    }

    struct sim_edge *edge = malloc(sizeof(*edge));

    if (!edge)
        return false;
    *edge = (struct sim_edge){before, entry, entry->in, before->out};
    entry->in = edge;
    before->out = edge;
    entry->missing++;
    return true;
}

void sim_entry_abandon(struct sim_entry *entry)
{
    for (struct sim_edge *edge = entry->in; edge; edge = edge->next_in) {
        struct sim_edge **at = &edge->before->out;

        while (*at != edge)
            at = &(*at)->next_out;
        *at = edge->next_out;
    }
    sim_entry_release(entry);
}

// Puts a wanted entry that misses nothing where it will be completed.
static void make_ready(struct sim_entry *entry)
{
    if (!entry->task.run) {
        entry->next = queue.idle;
        queue.idle = entry;
        return;
    }

    struct sim_entry **at = &queue.ready;

    while (*at && (*at)->number < entry->number)
        at = &(*at)->next;
    entry->next = *at;
    *at = entry;
}

static void unlink_pending(struct sim_entry *entry)
{
    if (entry->older)
        entry->older->newer = entry->newer;
    else
        queue.oldest = entry->newer;
    if (entry->newer)
        entry->newer->older = entry->older;
    else
        queue.newest = entry->older;
    queue.pending--;
}

static void complete(struct sim_entry *entry)
{
    entry->done = true;
    for (struct sim_edge *edge = entry->out; edge; edge = edge->next_out) {
        struct sim_entry *after = edge->after;

        edge->before = NULL;
        start_after(after, entry);
        if (!--after->missing && after->wanted)
            make_ready(after);
    }
    entry->out = NULL;
    drop_edges(entry);
    unlink_pending(entry);
    sim_entry_release(entry);
    pthread_cond_broadcast(&queue.done);
}

// Entries with nothing to run are done as soon as they may be, on any thread.
static void settle(void)
{
    while (queue.idle) {
        struct sim_entry *entry = queue.idle;

        queue.idle = entry->next;
        complete(entry);
    }
}

void sim_entry_want(struct sim_entry *entry)
{
    struct sim_entry *stack = NULL;

    if (entry->done || entry->wanted)
        return;
    entry->wanted = true;
    entry->next = NULL;
    stack = entry;
    while (stack) {
        struct sim_entry *at = stack;

        stack = at->next;
        for (struct sim_edge *edge = at->in; edge; edge = edge->next_in) {
            struct sim_entry *before = edge->before;

            if (!before || before->wanted)
                continue;
            before->wanted = true;
            before->next = stack;
            stack = before;
        }
        if (!at->missing)
            make_ready(at);
    }
    settle();
}

static void run_one(void)
{
    struct sim_entry *entry = queue.ready;
    const struct sim_task task = entry->task;
    const bool was_inside = inside;

    queue.ready = entry->next;
    queue.running = true;
    queue.calling_user = task.calls_user;
    if (task.calls_user)
        pthread_cond_broadcast(&queue.done);
    sim_queue_unlock();
    inside = true;
    task.run(task.arg);
    if (task.destroy)
        task.destroy(task.arg);
    inside = was_inside;
    sim_queue_lock();
    queue.running = false;
    queue.calling_user = false;
    complete(entry);
    settle();
}

static void *work(void *unused)
{
    (void)unused;
    sim_queue_lock();
    for (;;) {
        while (!queue.ready || queue.running)
            pthread_cond_wait(&queue.work, &queue.lock);
        run_one();
    }
    return NULL;
}

// The program's signals belong to its own threads.
static void start_worker(void)
{
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        sim_fail("no thread for the device's queue: error %d", error);
    pthread_detach(thread);
    queue.started = true;
}

// What is ready must not lie there once the lock is let go of. Whoever runs an entry now
// does this after it.
static void leave_to_worker(void)
{
    if (!queue.ready || queue.running)
        return;
    if (!queue.started)
        start_worker();
    pthread_cond_signal(&queue.work);
}

// A thread that waits runs what is ready itself: two changes of threads cost more than
// most entries. Host functions may wait for this very thread, so they are the worker's;
// for_room: and while one runs, there is no waiting either.
static void wait_until_done(const struct sim_entry *entry, bool for_room)
{
    while (!entry->done && !(for_room && queue.calling_user)) {
        if (queue.ready && !queue.running && !queue.ready->task.calls_user) {
            run_one();
        } else {
            leave_to_worker();
            pthread_cond_wait(&queue.done, &queue.lock);
        }
    }
    leave_to_worker();
}

void sim_entry_await(struct sim_entry *entry)
{
    sim_entry_hold(entry);
    sim_entry_want(entry);
    wait_until_done(entry, false);
    sim_entry_release(entry);
}

static void make_room(void)
{
    struct sim_entry *oldest[MAKE_ROOM];
    size_t count = 0;

    for (struct sim_entry *at = queue.oldest; at && count < MAKE_ROOM; at = at->newer)
        oldest[count++] = sim_entry_hold(at);
    for (size_t i = 0; i < count; i++)
        sim_entry_want(oldest[i]);
    for (size_t i = 0; i < count; i++) {
        wait_until_done(oldest[i], false);
        sim_entry_release(oldest[i]);
    }
}

void sim_entry_enqueue(struct sim_entry *entry)
{
    entry->number = ++queue.numbers;
    entry->older = queue.newest;
    if (queue.newest)
        queue.newest->newer = entry;
    else
        queue.oldest = entry;
    queue.newest = entry;
    queue.pending++;
    sim_entry_hold(entry);
}

void sim_entry_throttle(struct sim_entry *entry)
{
    sim_entry_hold(entry);
    if (sim_order() == SIM_EARLY) {
        sim_entry_want(entry);
        wait_until_done(entry, true);
    } else {
        while (queue.pending > PENDING_MAX)
            make_room();
    }
    sim_entry_release(entry);
}
