// SPDX-License-Identifier: Apache-2.0
#include "simcuda/order/entry.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "simcuda/check/check.h"
#include "simcuda/check/thread.h"
#include "simcuda/order/schedule.h"
#include "simcuda/runtime/device.h"
#include "simcuda/runtime/trace.h"
#include "simcuda/simcuda.h"

// A device's own queues are bounded, too: submission then waits for the oldest entries,
// many at a time, as each wait is a change of threads.
enum { PENDING_MAX = 16384, MAKE_ROOM = 1024 };

// A host function may wait for the program. One that takes longer than this is taken to do
// so, and others' work no longer waits for it. The program may as well wait for a host
// function, by means that are not CUDA's: none is left to lie for longer.
enum { USER_PATIENCE_NS = 200000000 };

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
    bool running; // an entry but a host function, with the lock let go
    bool calling_user; // a host function, likewise
    struct timespec user_deadline; // from then on others' work does not wait for it
    uint64_t numbers;
    unsigned pending;
    unsigned user_pending; // of them, host functions
    struct sim_entry *ready; // wanted, nothing missing, something to run: by number
    struct sim_entry *idle; // likewise, nothing to run
    struct sim_entry *oldest, *newest;
} queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .work = PTHREAD_COND_INITIALIZER,
    .done = PTHREAD_COND_INITIALIZER,
};

static __thread const struct sim_entry *inside;

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

const struct sim_entry *sim_entry_running(void)
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
    if (sim_check())
        entry->stamp = sim_stamp_create();
    return entry;
}

uint64_t sim_entry_age(const struct sim_entry *entry)
{
    return queue.numbers - entry->number;
}

const struct sim_entry *sim_entry_pending_at(unsigned lane, uint64_t epoch)
{
    const struct sim_entry *at = queue.newest;

    while (at && (at->stamp->lane != lane || at->stamp->epoch != epoch))
        at = at->older;
    return at;
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
    sim_stamp_destroy(entry->stamp);
    free(entry);
}

// Once `before` is enqueued.
static void start_after(struct sim_entry *entry, const struct sim_entry *before)
{
    const bool same_stream =
        entry->device == before->device && entry->stream == before->stream;

    sim_timeline_after(&entry->when, &before->when, same_stream);
}

bool sim_entry_after(struct sim_entry *entry, struct sim_entry *before)
{
    if (!before)
        return true;
    if (entry->stamp)
        sim_clock_join(&entry->stamp->past, &before->stamp->past);
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
    queue.user_pending -= entry->task.calls_user;
}

// For an entry that misses nothing.
static void make_runnable(struct sim_entry *entry)
{
    if (entry->wanted)
        make_ready(entry);
    else if (sim_order() == SIM_SEEDED)
        sim_schedule_open(entry);
}

static void complete(struct sim_entry *entry)
{
    entry->done = true;
    for (struct sim_edge *edge = entry->out; edge; edge = edge->next_out) {
        struct sim_entry *after = edge->after;

        edge->before = NULL;
        if (!--after->missing)
            make_runnable(after);
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
    sim_schedule_close(entry);
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
            sim_schedule_close(before);
            before->wanted = true;
            before->next = stack;
            stack = before;
        }
        if (!at->missing)
            make_ready(at);
    }
    settle();
}

static struct timespec in_patience(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += USER_PATIENCE_NS;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

// Of an entry that is in no list.
static void run(struct sim_entry *entry)
{
    const struct sim_task task = entry->task;
    const struct sim_entry *const was_inside = inside;
    bool *const busy = task.calls_user ? &queue.calling_user : &queue.running;

    entry->wanted = true;
    *busy = true;
    if (task.calls_user) {
        sim_check_begin(entry);
        queue.user_deadline = in_patience();
        pthread_cond_broadcast(&queue.done);
    }
    sim_queue_unlock();
    inside = entry;
    if (!sim_asserted())
        task.run(task.arg);
    if (task.destroy)
        task.destroy(task.arg);
    inside = was_inside;
    sim_queue_lock();
    *busy = false;
    complete(entry);
    settle();
}

// Takes the first, or by a seed any, of those that are ready; NULL: none that the calling
// thread may run.
static struct sim_entry *take_ready(bool user_too)
{
    struct sim_entry **at = &queue.ready;
    unsigned count = 0;

    for (const struct sim_entry *each = *at; each; each = each->next)
        count += user_too || !each->task.calls_user;
    if (!count)
        return NULL;

    unsigned before = sim_order() == SIM_SEEDED ? sim_schedule_choose(count) : 0;

    for (;; at = &(*at)->next)
        if ((user_too || !(*at)->task.calls_user) && !before--)
            break;

    struct sim_entry *entry = *at;

    *at = entry->next;
    return entry;
}

static bool is_past(const struct timespec *time)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec > time->tv_sec ||
           (now.tv_sec == time->tv_sec && now.tv_nsec >= time->tv_nsec);
}

// Whether something runs that what is ready waits for: one entry runs at a time.
static bool is_busy(void)
{
    return queue.running || (queue.calling_user && !is_past(&queue.user_deadline));
}

// The host function that was submitted first, of those that nobody wants yet; or NULL.
static struct sim_entry *first_unwanted(void)
{
    struct sim_entry *at = queue.user_pending ? queue.oldest : NULL;

    while (at && (at->wanted || !at->task.calls_user))
        at = at->newer;
    return at;
}

static void await_work(void)
{
    struct sim_entry *next = first_unwanted();

    if (!next)
        pthread_cond_wait(&queue.work, &queue.lock);
    else if (is_past(&next->due))
        sim_entry_want(next);
    else
        pthread_cond_timedwait(&queue.work, &queue.lock, &next->due);
}

static void *work(void *unused)
{
    (void)unused;
    sim_queue_lock();
    for (;;) {
        while (!queue.ready || queue.running)
            await_work();
        run(take_ready(true));
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

static void wake_worker(void)
{
    if (!queue.started)
        start_worker();
    pthread_cond_signal(&queue.work);
}

// What is ready must not lie there once the lock is let go of. Whoever runs an entry now
// does this after it.
static void leave_to_worker(void)
{
    if (queue.ready && !queue.running)
        wake_worker();
}

static void wait_for_others(void)
{
    const bool impatient = queue.calling_user && !queue.running && is_busy();

    leave_to_worker();
    if (impatient)
        pthread_cond_timedwait(&queue.done, &queue.lock, &queue.user_deadline);
    else
        pthread_cond_wait(&queue.done, &queue.lock);
}

// Starts the open entry that a seed picks, before the `ready` ones. NULL: it picks none.
static struct sim_entry *start_picked(unsigned ready)
{
    struct sim_entry *entry =
        sim_order() == SIM_SEEDED && !is_busy() ? sim_schedule_pick(ready) : NULL;

    if (!entry)
        return NULL;
    sim_entry_hold(entry);
    sim_schedule_close(entry);
    if (entry->task.run && !entry->task.calls_user)
        run(entry);
    else
        sim_entry_want(entry);
    return entry;
}

static unsigned count_ready(void)
{
    unsigned count = 0;

    for (const struct sim_entry *at = queue.ready; at; at = at->next)
        count++;
    return count;
}

// A thread that waits runs what is ready itself: two changes of threads cost more than
// most entries. Host functions may wait for this very thread, so they are the worker's;
// for_room: and while one runs, there is no waiting either.
static void wait_until_done(const struct sim_entry *entry, bool for_room)
{
    while (!entry->done && !(for_room && queue.calling_user)) {
        struct sim_entry *next = start_picked(count_ready());

        if (next) {
            sim_entry_release(next);
            continue;
        }
        next = is_busy() ? NULL : take_ready(false);
        if (next)
            run(next);
        else
            wait_for_others();
    }
    leave_to_worker();
}

void sim_queue_stir(void)
{
    struct sim_entry *entry;

    while ((entry = start_picked(0))) {
        // A host function that waits for the program is left alone.
        while (!entry->done && (is_busy() || !queue.calling_user))
            wait_for_others();
        sim_entry_release(entry);
    }
    leave_to_worker();
}

void sim_entry_await(struct sim_entry *entry)
{
    sim_entry_hold(entry);
    sim_entry_want(entry);
    wait_until_done(entry, false);
    if (entry->stamp)
        sim_thread_tell(&entry->stamp->past);
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
    if (entry->task.calls_user) {
        entry->due = in_patience();
        queue.user_pending++;
        wake_worker();
    }
    for (const struct sim_edge *edge = entry->in; edge; edge = edge->next_in)
        start_after(entry, edge->before);
    sim_timeline_place(&entry->when, &entry->task.cost, entry->device);
    sim_entry_hold(entry);
    sim_check_entry(entry);
    sim_trace_entry(entry);
    if (!entry->missing)
        make_runnable(entry);
}

void sim_entry_throttle(struct sim_entry *entry)
{
    sim_entry_hold(entry);
    if (sim_order() == SIM_EARLY) {
        sim_entry_want(entry);
        wait_until_done(entry, true);
    } else {
        sim_queue_stir();
        while (queue.pending > PENDING_MAX)
            make_room();
    }
    sim_entry_release(entry);
}
