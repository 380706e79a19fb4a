// SPDX-License-Identifier: Apache-2.0
#include "simcuda/threads/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

enum { OWN_MAX = 8 };

static _Atomic(const struct sim_threads_watcher *) watcher;
static struct {
    uintptr_t start, end;
} own[OWN_MAX]; // code of libraries that are excluded
static atomic_size_t own_count;
static __thread bool busy; // with the watcher, who may allocate, and so lock

// The C library's own; conditions have an older version of the same name.
static void *find(const char *name)
{
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");

    if (!found)
        found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

// Names, types and parameter lists cannot be in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)

// Found at its first call, which may come before any constructor.
#define REAL(name)                                                                       \
    ({                                                                                   \
        static _Atomic(typeof(&name)) real_;                                             \
        typeof(&name) found_ = real_;                                                    \
        if (!found_)                                                                     \
            real_ = found_ = (typeof(&name))find(#name);                                 \
        found_;                                                                          \
    })

// Who is to be told of what the caller does, or NULL.
static const struct sim_threads_watcher *enter(const void *caller)
{
    const struct sim_threads_watcher *who = watcher;
    const uintptr_t at = (uintptr_t)caller;

    if (!who || busy)
        return NULL;
    for (size_t i = 0; i < own_count; i++)
        if (at >= own[i].start && at < own[i].end)
            return NULL;
    busy = true;
    return who;
}

static void gave(const void *object, const void *caller)
{
    const int error = errno;
    const struct sim_threads_watcher *who = enter(caller);

    if (who) {
        who->gave(object);
        busy = false;
    }
    errno = error;
}

static void took(const void *object, const void *caller)
{
    const int error = errno;
    const struct sim_threads_watcher *who = enter(caller);

    if (who) {
        who->took(object);
        busy = false;
    }
    errno = error;
}

static void polled(const void *caller)
{
    const int error = errno;
    const struct sim_threads_watcher *who = enter(caller);

    if (who) {
        who->polled();
        busy = false;
    }
    errno = error;
}

// --- What takes `object` if it succeeds, what gives it, and what waits for time to pass

#define TAKES(name, parameters, arguments)                                               \
    SHOWN int name parameters                                                            \
    {                                                                                    \
        const int result = REAL(name) arguments;                                         \
        if (!result || result == EOWNERDEAD)                                             \
            took((const void *)object, CALLER);                                          \
        return result;                                                                   \
    }
#define GIVES(name, type)                                                                \
    SHOWN int name(type *object)                                                         \
    {                                                                                    \
        gave((const void *)object, CALLER);                                              \
        return REAL(name)(object);                                                       \
    }
#define POLLS(result, name, parameters, arguments)                                       \
    SHOWN result name parameters                                                         \
    {                                                                                    \
        const result value = REAL(name) arguments;                                       \
        polled(CALLER);                                                                  \
        return value;                                                                    \
    }

// NOLINTEND(bugprone-macro-parentheses)

typedef const struct timespec when;

TAKES(pthread_mutex_lock, (pthread_mutex_t * object), (object))
TAKES(pthread_mutex_trylock, (pthread_mutex_t * object), (object))
TAKES(pthread_mutex_timedlock, (pthread_mutex_t * object, when *until), (object, until))
TAKES(pthread_mutex_clocklock, (pthread_mutex_t * object, clockid_t clock, when *until),
      (object, clock, until))
GIVES(pthread_mutex_unlock, pthread_mutex_t)

TAKES(pthread_rwlock_rdlock, (pthread_rwlock_t * object), (object))
TAKES(pthread_rwlock_wrlock, (pthread_rwlock_t * object), (object))
TAKES(pthread_rwlock_tryrdlock, (pthread_rwlock_t * object), (object))
TAKES(pthread_rwlock_trywrlock, (pthread_rwlock_t * object), (object))
TAKES(pthread_rwlock_timedrdlock, (pthread_rwlock_t * object, when *until),
      (object, until))
TAKES(pthread_rwlock_timedwrlock, (pthread_rwlock_t * object, when *until),
      (object, until))
TAKES(pthread_rwlock_clockrdlock,
      (pthread_rwlock_t * object, clockid_t clock, when *until), (object, clock, until))
TAKES(pthread_rwlock_clockwrlock,
      (pthread_rwlock_t * object, clockid_t clock, when *until), (object, clock, until))
GIVES(pthread_rwlock_unlock, pthread_rwlock_t)

TAKES(pthread_spin_lock, (pthread_spinlock_t * object), (object))
TAKES(pthread_spin_trylock, (pthread_spinlock_t * object), (object))
GIVES(pthread_spin_unlock, pthread_spinlock_t)

TAKES(sem_wait, (sem_t * object), (object))
TAKES(sem_trywait, (sem_t * object), (object))
TAKES(sem_timedwait, (sem_t * object, when *until), (object, until))
TAKES(sem_clockwait, (sem_t * object, clockid_t clock, when *until),
      (object, clock, until))
GIVES(sem_post, sem_t)

GIVES(pthread_cond_signal, pthread_cond_t)
GIVES(pthread_cond_broadcast, pthread_cond_t)

POLLS(int, sched_yield, (void), ())
POLLS(int, nanosleep, (when * length, struct timespec *left), (length, left))
POLLS(int, clock_nanosleep,
      (clockid_t clock, int flags, when *length, struct timespec *left),
      (clock, flags, length, left))
POLLS(int, usleep, (useconds_t length), (length))
POLLS(unsigned, sleep, (unsigned length), (length))

// --- Conditions: the mutex is given and taken, whatever ended the wait

static int waited(int result, const void *condition, const void *mutex,
                  const void *caller)
{
    took(mutex, caller);
    if (!result)
        took(condition, caller);
    return result;
}

SHOWN int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    gave(mutex, CALLER);
    return waited(REAL(pthread_cond_wait)(condition, mutex), condition, mutex, CALLER);
}

SHOWN int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                 when *until)
{
    gave(mutex, CALLER);
    return waited(REAL(pthread_cond_timedwait)(condition, mutex, until), condition, mutex,
                  CALLER);
}

SHOWN int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                 clockid_t clock, when *until)
{
    gave(mutex, CALLER);
    return waited(REAL(pthread_cond_clockwait)(condition, mutex, clock, until), condition,
                  mutex, CALLER);
}

SHOWN int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    gave(barrier, CALLER);

    const int result = REAL(pthread_barrier_wait)(barrier);

    took(barrier, CALLER);
    return result;
}

// Who did not run the routine comes after who did.
SHOWN int pthread_once(pthread_once_t *object, void (*routine)(void))
{
    const int result = REAL(pthread_once)(object, routine);

    gave(object, CALLER);
    took(object, CALLER);
    return result;
}

// --- Threads

struct beginning {
    void *(*routine)(void *);
    void *arg, *forked;
};

static void *run(void *arg)
{
    const struct beginning beginning = *(struct beginning *)arg;
    const struct sim_threads_watcher *who = enter(NULL);

    free(arg);
    if (who) {
        who->began(beginning.forked);
        busy = false;
    }
    return beginning.routine(beginning.arg);
}

static int create(pthread_t *thread, const pthread_attr_t *attributes,
                  const struct beginning *beginning)
{
    struct beginning *copy = malloc(sizeof(*copy));

    if (!copy)
        return EAGAIN;
    *copy = *beginning;

    const int error = REAL(pthread_create)(thread, attributes, run, copy);

    if (error)
        free(copy);
    return error;
}

SHOWN int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                         void *(*routine)(void *), void *arg)
{
    const struct sim_threads_watcher *who = enter(CALLER);
    void *forked = who ? who->forked() : NULL;
    int error = 0;

    if (forked) {
        error = create(thread, attributes, &(struct beginning){routine, arg, forked});
        if (error)
            who->failed(forked);
    }
    busy = who ? false : busy;
    return forked ? error : REAL(pthread_create)(thread, attributes, routine, arg);
}

// Its end is known by its name.
static int joined(int result, pthread_t thread, const void *caller)
{
    if (!result)
        took((const void *)thread, caller); // NOLINT(performance-no-int-to-ptr)
    return result;
}

SHOWN int pthread_join(pthread_t thread, void **value)
{
    return joined(REAL(pthread_join)(thread, value), thread, CALLER);
}

SHOWN int pthread_tryjoin_np(pthread_t thread, void **value)
{
    return joined(REAL(pthread_tryjoin_np)(thread, value), thread, CALLER);
}

SHOWN int pthread_timedjoin_np(pthread_t thread, void **value, when *until)
{
    return joined(REAL(pthread_timedjoin_np)(thread, value, until), thread, CALLER);
}

SHOWN int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock,
                               when *until)
{
    return joined(REAL(pthread_clockjoin_np)(thread, value, clock, until), thread,
                  CALLER);
}

// --- The watcher

static int add_own(struct dl_phdr_info *object, size_t bytes, void *arg)
{
    const uintptr_t inside = (uintptr_t)arg;

    (void)bytes;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t start = object->dlpi_addr + part->p_vaddr;

        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || inside < start ||
            inside >= start + part->p_memsz || own_count == OWN_MAX)
            continue;
        own[own_count].start = start;
        own[own_count].end = start + part->p_memsz;
        own_count++;
        return 1;
    }
    return 0;
}

static void unwatch(void)
{
    watcher = NULL;
}

SHOWN void sim_threads_exclude(const void *address)
{
    if (address)
        dl_iterate_phdr(add_own, (void *)(uintptr_t)address);
}

SHOWN void sim_threads_watch(const struct sim_threads_watcher *who)
{
    if (!pthread_atfork(NULL, NULL, unwatch))
        watcher = who;
}
