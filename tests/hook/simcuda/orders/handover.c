// SPDX-License-Identifier: Apache-2.0
// One thread of the program waits for a copy, another reads what it brought: clean where
// the first is seen to hand over to the second, a race elsewhere.
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "simcuda/simcuda.h"

enum { CASE_SECONDS = 60 };

static cudaStream_t stream;
static int *pinned, *memory;
static int reached; // behind the checker's back

// A hand-over: what the first thread does after its wait, and the second before it reads.
struct way {
    const char *name;
    void (*give)(void), (*take)(void);
    bool early; // handed over before the wait
    bool race;
};

static void reach(int step)
{
    __atomic_store_n(&reached, step, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &reached, FUTEX_WAKE, 2);
}

static void await(int step)
{
    for (int at; (at = __atomic_load_n(&reached, __ATOMIC_SEQ_CST)) < step;)
        syscall(SYS_futex, &reached, FUTEX_WAIT, at, NULL);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER,
                       other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_spinlock_t spinlock;
static pthread_barrier_t barrier;
static sem_t semaphore;
static bool ready;

static void nothing(void)
{
}

static void pass_mutex(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void try_mutex(void)
{
    if (!pthread_mutex_trylock(&mutex))
        pthread_mutex_unlock(&mutex);
}

static void pass_other(void)
{
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
}

static void signal_condition(void)
{
    pthread_mutex_lock(&mutex);
    ready = true;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
}

static void wait_for_condition(void)
{
    pthread_mutex_lock(&mutex);
    while (!ready)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void wait_a_second(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_mutex_lock(&mutex);
    while (!ready)
        pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
}

static void post(void)
{
    sem_post(&semaphore);
}

static void wait_for_post(void)
{
    sem_wait(&semaphore);
}

static void write_lock(void)
{
    pthread_rwlock_wrlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
}

static void read_lock(void)
{
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
}

static void spin(void)
{
    pthread_spin_lock(&spinlock);
    pthread_spin_unlock(&spinlock);
}

static void meet(void)
{
    pthread_barrier_wait(&barrier);
}

static void run_once(void)
{
    pthread_once(&once, nothing);
}

static void yield(void)
{
    sched_yield();
}

static void sleep_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
}

// The runtime locks, too.
static void allocate(void)
{
    void *own;

    if (cudaMalloc(&own, 4))
        exit(1);
}

static const struct way ways[] = {
    {"nothing", nothing, nothing, false, true},
    {"a mutex", pass_mutex, pass_mutex, false, false},
    {"a mutex that is tried", pass_mutex, try_mutex, false, false},
    {"another mutex", pass_mutex, pass_other, false, true},
    {"a mutex, before the wait", pass_mutex, pass_mutex, true, true},
    {"a condition", signal_condition, wait_for_condition, false, false},
    {"a condition, with a time", signal_condition, wait_a_second, false, false},
    {"a semaphore", post, wait_for_post, false, false},
    {"a semaphore, before the wait", post, wait_for_post, true, true},
    {"a lock of readers and writers", write_lock, read_lock, false, false},
    {"two readers", read_lock, read_lock, false, false},
    {"a spinlock", spin, spin, false, false},
    {"a barrier", meet, meet, false, false},
    {"a routine that runs once", run_once, run_once, false, false},
    {"a yield, where a flag may be looked at", nothing, yield, false, false},
    {"a sleep, likewise", nothing, sleep_a_little, false, false},
    {"the runtime's own locks", allocate, allocate, false, true},
};

static void set_up(void)
{
    pthread_spin_init(&spinlock, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    sem_init(&semaphore, 0, 0);
    if (cudaMallocHost((void **)&pinned, 4) || cudaMalloc((void **)&memory, 4) ||
        cudaMemset(memory, 0, 4) || cudaDeviceSynchronize() ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))
        exit(1);
}

static void copy(void)
{
    if (cudaMemcpyAsync(pinned, memory, 4, cudaMemcpyDeviceToHost, stream))
        exit(1);
}

static void *synchronise(void *unused)
{
    if (cudaStreamSynchronize(stream))
        exit(1);
    return unused;
}

static void *look(void *unused)
{
    sim_check_host(pinned, 4, false, "the program");
    return unused;
}

static void *first(void *arg)
{
    const struct way *way = arg;

    if (way->early)
        way->give();
    synchronise(NULL);
    // Two that meet there cannot wait for each other.
    if (way->give == meet)
        reach(1);
    if (!way->early)
        way->give();
    reach(1);
    return NULL;
}

static void *second(void *arg)
{
    const struct way *way = arg;

    await(1);
    way->take();
    return look(NULL);
}

static void start(pthread_t *thread, void *(*routine)(void *), const void *arg)
{
    if (pthread_create(thread, NULL, routine, (void *)arg))
        exit(1);
}

static void two_threads(const struct way *way)
{
    pthread_t threads[2];

    copy();
    start(&threads[0], first, way);
    start(&threads[1], second, way);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void created(const struct way *unused)
{
    pthread_t thread;

    (void)unused;
    copy();
    synchronise(NULL);
    start(&thread, look, NULL);
    pthread_join(thread, NULL);
}

static void joined(const struct way *unused)
{
    pthread_t thread;

    (void)unused;
    copy();
    start(&thread, synchronise, NULL);
    pthread_join(thread, NULL);
    look(NULL);
}

static void *synchronise_and_say_so(void *unused)
{
    synchronise(NULL);
    reach(1);
    return unused;
}

static void not_joined(const struct way *unused)
{
    pthread_t thread;

    (void)unused;
    copy();
    start(&thread, synchronise_and_say_so, NULL);
    await(1);
    look(NULL);
    pthread_join(thread, NULL);
}

// Threads that come and go do not make the checker's clocks grow: the thousandth is as
// good as the first.
static void many(const struct way *unused)
{
    for (int i = 0; i < 1000; i++)
        joined(unused);
}

// --- Each in a process of its own

static bool said(const char *text, const char *part)
{
    if (strstr(text, part))
        return true;
    fprintf(stderr, "# said:\n%s", text);
    return false;
}

static bool run_case(void (*run)(const struct way *), const struct way *way, bool race)
{
    char text[4096] = "";
    int ends[2], status;
    size_t used = 0;

    fflush(NULL);
    if (pipe(ends))
        return false;

    const pid_t child = fork();

    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        alarm(CASE_SECONDS);
        set_up();
        run(way);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0;)
        used += (size_t)got;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        return false;
    return race
               ? said(text, "may not have written yet: a thread knows it to be over, and "
                            "was not seen to hand over to this one\n")
               : said(text, "") && !*text;
}

static int number;

static bool tell(bool good, const char *name)
{
    printf("%sok %d - %s\n", good ? "" : "not ", ++number, name);
    return good;
}

int main(void)
{
    const size_t count = sizeof(ways) / sizeof(*ways);
    bool good = true;

    printf("1..%zu\n", count + 4);
    for (size_t i = 0; i < count; i++)
        good = tell(run_case(two_threads, &ways[i], ways[i].race), ways[i].name) && good;
    good = tell(run_case(created, NULL, false), "a thread is created") && good;
    good = tell(run_case(joined, NULL, false), "a thread is joined") && good;
    good = tell(run_case(not_joined, NULL, true), "a thread is joined too late") && good;
    good = tell(run_case(many, NULL, false), "many threads") && good;
    return good ? 0 : 1;
}
