// SPDX-License-Identifier: Apache-2.0
#include "simcuda/check/thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "simcuda/check/check.h"
#include "simcuda/order/entry.h"
#include "simcuda/simcuda.h"
#include "simcuda/threads/threads.h"

// Objects that fall into one slot are taken for one: that may hide a race, and invents
// none. A thread sleeps when it has used the device so many uses ago; what the others know
// need not be remembered for it.
enum { SLOTS = 1 << 16, AWAKE = 4096 };

// Never changed while several refer to it.
struct known {
    unsigned references;
    struct sim_clock clock;
};

struct thread {
    struct known *known;
    unsigned lane; // 0: none yet
    uint64_t used;
    bool is_ours; // it runs host functions
    struct thread *next;
};

// Taken with the queue's lock held, or without.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread *threads;
static struct thread shared; // where they count as one
static struct known *everyone; // what all were told, also those that are not here yet
static struct known *departed; // what threads knew that are no more
static struct known *slots[SLOTS];
static uint64_t uses;
static atomic_bool apart, changed;
static pthread_key_t key;
static __thread struct thread *own;
static __thread int paused;

// The queue's lock covers these.
static uint64_t steps;
static struct sim_clock common; // what all that are awake know, unless `changed`

// --- What is known

static struct known *hold(struct known *known)
{
    if (known)
        known->references++;
    return known;
}

static void drop(struct known *known)
{
    if (!known || --known->references)
        return;
    sim_clock_finish(&known->clock);
    free(known);
}

static struct known *copy(const struct known *from)
{
    struct known *known = calloc(1, sizeof(*known));

    if (!known)
        sim_fail("no memory for the checker's clocks");
    known->references = 1;
    if (from)
        sim_clock_join(&known->clock, &from->clock);
    return known;
}

static bool holds(const struct known *known, const struct sim_clock *clock)
{
    for (unsigned i = 0; i < clock->count; i++)
        if (clock->epochs[i] &&
            !(known && sim_clock_has(&known->clock, i, clock->epochs[i])))
            return false;
    return true;
}

static struct sim_clock *write_to(struct known **known)
{
    if (!*known || (*known)->references > 1) {
        struct known *own_copy = copy(*known);

        drop(*known);
        *known = own_copy;
    }
    return &(*known)->clock;
}

static void add(struct known **known, const struct sim_clock *clock)
{
    if (!holds(*known, clock))
        sim_clock_join(write_to(known), clock);
}

static void add_known(struct known **known, struct known *more)
{
    if (!more || *known == more || holds(*known, &more->clock))
        return;
    if (*known && !holds(more, &(*known)->clock)) {
        sim_clock_join(write_to(known), &more->clock);
        return;
    }
    drop(*known);
    *known = hold(more);
}

// --- Threads

static void leave(void *arg);

static struct thread *create(struct known *known)
{
    struct thread *made = calloc(1, sizeof(*made));

    if (!made)
        sim_fail("no memory for the checker's threads");
    made->known = hold(known);
    made->used = uses;
    made->next = threads;
    threads = made;
    changed = true;
    return made;
}

static void become(struct thread *made)
{
    if (pthread_setspecific(key, made))
        sim_fail("no memory for the checker's threads");
    own = made;
}

static void destroy(struct thread *gone)
{
    struct thread **at = &threads;

    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    drop(gone->known);
    free(gone);
    changed = true;
}

static struct thread *thread(void)
{
    if (!apart)
        return &shared;
    if (!own)
        become(create(everyone));
    return own;
}

static struct known **slot(const void *object)
{
    const uint64_t sum = (uintptr_t)object * 0x9e3779b97f4a7c15u;

    return &slots[sum >> 48];
}

static void learn(struct known *more)
{
    struct thread *me = own;

    if (!more || (me && me->known == more))
        return;
    me = thread();
    if (me->known == more)
        return;
    add_known(&me->known, more);
    changed = true;
}

// A body that a waiting thread computes is the device's.
static bool is_program(void)
{
    const struct sim_entry *within = sim_entry_running();

    return sim_check() && (!within || within->task.calls_user);
}

// Nothing to do where the slot has just that. It is looked at without the lock.
static bool is_alike(const void *object)
{
    const struct known *there = __atomic_load_n(slot(object), __ATOMIC_RELAXED);

    return there == (own ? own->known : NULL);
}

static void gave(const void *object)
{
    if (!own || !own->known || is_alike(object) || !is_program())
        return;
    pthread_mutex_lock(&lock);
    add_known(slot(object), own->known);
    pthread_mutex_unlock(&lock);
}

static void took(const void *object)
{
    if (is_alike(object) || !is_program())
        return;
    pthread_mutex_lock(&lock);
    learn(*slot(object));
    pthread_mutex_unlock(&lock);
}

static void polled(void)
{
    if (!is_program())
        return;
    pthread_mutex_lock(&lock);
    for (struct thread *at = threads; at; at = at->next)
        if (at != own)
            learn(at->known);
    learn(departed); // a flag outlives who set it
    pthread_mutex_unlock(&lock);
}

static void *forked(void)
{
    if (!own || !is_program())
        return NULL;
    pthread_mutex_lock(&lock);
    struct thread *child = create(own->known);
    pthread_mutex_unlock(&lock);
    return child;
}

static void began(void *child)
{
    become(child);
}

static void failed(void *child)
{
    pthread_mutex_lock(&lock);
    destroy(child);
    pthread_mutex_unlock(&lock);
}

// Whoever joins the thread comes after all of it.
static void leave(void *arg)
{
    struct thread *me = arg;

    sim_queue_lock();
    pthread_mutex_lock(&lock);
    add_known(slot((const void *)pthread_self()), me->known);
    add_known(&departed, me->known);
    if (me->lane)
        sim_lane_close(me->lane);
    destroy(me);
    own = NULL;
    pthread_mutex_unlock(&lock);
    sim_queue_unlock();
}

void sim_thread_exclude(const void *address)
{
    void (*exclude)(const void *);

    *(void **)&exclude = dlsym(RTLD_DEFAULT, "sim_threads_exclude");
    if (apart)
        exclude(address);
}

void sim_thread_start(void)
{
    static const struct sim_threads_watcher watcher = {gave,   took,  polled,
                                                       forked, began, failed};
    void (*watch)(const struct sim_threads_watcher *);

    *(void **)&watch = dlsym(RTLD_DEFAULT, "sim_threads_watch");
    if (!watch)
        return;
    if (pthread_key_create(&key, leave))
        sim_fail("no key for the checker's threads");
    apart = true;
    sim_thread_exclude((const void *)(uintptr_t)sim_thread_start);
    sim_thread_exclude(dlsym(RTLD_DEFAULT, "cuInit"));
    sim_thread_exclude(dlsym(RTLD_DEFAULT, "actswap_attach"));
    watch(&watcher);
}

bool sim_threads_are_apart(void)
{
    return apart;
}

static struct thread *use(void)
{
    struct thread *me = thread();

    // Somebody may have fallen asleep.
    if (!(++uses % AWAKE))
        changed = true;
    me->used = uses;
    return me;
}

const struct sim_clock *sim_thread_known(void)
{
    static const struct sim_clock nothing;

    pthread_mutex_lock(&lock);
    const struct thread *me = use();
    pthread_mutex_unlock(&lock);
    return me->known ? &me->known->clock : &nothing;
}

void sim_thread_pause(int by)
{
    paused += by;
}

bool sim_thread_is_paused(void)
{
    return paused;
}

void sim_thread_tell(const struct sim_clock *clock)
{
    if (paused)
        return;
    pthread_mutex_lock(&lock);
    add(&use()->known, clock);
    changed = true;
    pthread_mutex_unlock(&lock);
}

void sim_thread_tell_all(const struct sim_clock *clock)
{
    pthread_mutex_lock(&lock);
    add(&everyone, clock);
    add(&shared.known, clock);
    for (struct thread *at = threads; at; at = at->next)
        add(&at->known, clock);
    changed = true;
    pthread_mutex_unlock(&lock);
}

void sim_thread_enter(const struct sim_clock *past)
{
    if (!apart)
        return;
    pthread_mutex_lock(&lock);
    struct thread *me = thread();
    me->is_ours = true;
    drop(me->known);
    me->known = NULL;
    add(&me->known, past);
    pthread_mutex_unlock(&lock);
}

struct sim_step sim_thread_step(void)
{
    pthread_mutex_lock(&lock);
    struct thread *me = use();
    struct sim_clock *clock = write_to(&me->known);

    if (!me->lane)
        me->lane = sim_lane_open(clock);

    const struct sim_step step = {me->lane, ++steps};

    sim_lane_reach(clock, step.lane, step.epoch);
    pthread_mutex_unlock(&lock);
    return step;
}

uint64_t sim_thread_steps(void)
{
    return steps;
}

static void find_common(void)
{
    bool first = true;

    sim_clock_finish(&common);
    for (const struct thread *at = threads; at; at = at->next) {
        if (at->is_ours || at->used + AWAKE < uses)
            continue;
        if (!at->known) {
            sim_clock_finish(&common);
            return;
        }
        if (first)
            sim_clock_join(&common, &at->known->clock);
        else
            sim_clock_meet(&common, &at->known->clock);
        first = false;
    }
}

bool sim_threads_all_know(unsigned lane, uint64_t epoch)
{
    if (!apart)
        return shared.known && sim_clock_has(&shared.known->clock, lane, epoch);
    if (changed) {
        pthread_mutex_lock(&lock);
        changed = false;
        find_common();
        pthread_mutex_unlock(&lock);
    }
    return sim_clock_has(&common, lane, epoch);
}

bool sim_threads_one_knows(unsigned lane, uint64_t epoch)
{
    pthread_mutex_lock(&lock);
    bool found = departed && sim_clock_has(&departed->clock, lane, epoch);
    for (const struct thread *at = threads; at && !found; at = at->next)
        found = at->known && sim_clock_has(&at->known->clock, lane, epoch);
    pthread_mutex_unlock(&lock);
    return found;
}
