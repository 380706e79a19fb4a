// SPDX-License-Identifier: Apache-2.0
// Programs on the simulated device.
#include <cuda_runtime_api.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "program.h"
#include "simcuda/simcuda.h"

struct run {
    const struct program *program;
    cudaStream_t idle;
    struct seen *seen;
    int *places[PLACES];
    cudaStream_t streams[STREAMS];
    cudaEvent_t events[EVENTS];
    cudaGraphExec_t exec;
    bool freed[PLACES], destroyed[STREAMS];
    sem_t handovers[HANDOVERS];
    int posted; // by the driver's account
    int turn; // of a thread, changed behind the checker's back
    const struct statement *next; // the second thread's; NULL: it ends
};

#define OK(call)                                                                         \
    do {                                                                                 \
        const cudaError_t error_ = (call);                                               \
        if (error_) {                                                                    \
            printf("# %s: %s: %s\n", run->program->text, #call,                          \
                   cudaGetErrorString(error_));                                          \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

// A coin: other throws in each order, and the same whenever that is tried again.
static bool flip(void)
{
    static uint64_t drawn;

    if (!drawn)
        for (const char *at = getenv("ACTSWAP_SIM_ORDER"); at && *at; at++)
            drawn = drawn * 31 + (unsigned char)*at;
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return drawn >> 40 & 1;
}

struct body {
    int *to;
    const int *from;
    int by;
};

static void run_body(void *arg)
{
    const struct body *body = arg;

    *body->to = (body->from ? *body->from : 0) + body->by;
}

static void submit(struct run *run, cudaStream_t stream, struct body body)
{
    struct body *own = malloc(sizeof(*own));
    const struct sim_work work = {
        .name = "operator", .run = run_body, .destroy = free, .arg = own};
    const struct sim_access accesses[] = {
        {.address = body.to, .bytes = sizeof(int), .write = true, .unread = true},
        {.address = body.from, .bytes = sizeof(int)},
    };

    *own = body;
    OK((cudaError_t)sim_submit(stream, &work, accesses, body.from ? 2 : 1));
}

static void run_host(void *arg)
{
    const struct body *body = arg;

    run_body(arg);
    sim_check_host(body->to, sizeof(int), true, "the host");
    free(arg);
}

static void host_function(struct run *run, cudaStream_t stream, struct body body)
{
    struct body *own = malloc(sizeof(*own));

    *own = body;
    OK(cudaLaunchHostFunc(stream, run_host, own));
}

static void observe_query(struct run *run, const struct statement *at, cudaError_t error)
{
    if (error && error != cudaErrorNotReady)
        OK(error);
    run->seen->queries |= (uint32_t)!error << at->query;
    run->seen->at[at->seen] = !error;
}

static void work(struct run *run, const struct statement *at, cudaStream_t stream)
{
    int *to = run->places[at->to], *from = at->from < 0 ? NULL : run->places[at->from];
    const struct body body = {to, at->verb == ADD ? to : from, at->value};

    switch (at->verb) {
    case COPY:
        if (at->stream < 0)
            OK(cudaMemcpy(to, from, sizeof(int), cudaMemcpyDefault));
        else
            OK(cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyDefault, stream));
        return;
    case MEMSET:
        if (at->stream < 0)
            OK(cudaMemset(to, at->value, sizeof(int)));
        else
            OK(cudaMemsetAsync(to, at->value, sizeof(int), stream));
        return;
    case HOST:
        host_function(run, stream, body);
        return;
    default:
        submit(run, stream, body);
    }
}

static void memory(struct run *run, const struct statement *at, cudaStream_t stream)
{
    int **place = &run->places[at->to];

    switch (at->verb) {
    case ALLOC:
        OK(cudaMallocAsync((void **)place, sizeof(int), stream));
        return;
    case FREE_ASYNC:
        OK(cudaFreeAsync(*place, stream));
        break;
    case FREE:
        OK(cudaFree(*place));
        break;
    default:
        OK(cudaFreeHost(*place));
    }
    run->freed[at->to] = true;
}

static void graph(struct run *run, const struct statement *at, cudaStream_t stream)
{
    cudaGraph_t made;

    switch (at->verb) {
    case CAPTURE:
        OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        return;
    case END:
        OK(cudaStreamEndCapture(stream, &made));
        OK(cudaGraphInstantiate(&run->exec, made, 0));
        OK(cudaGraphDestroy(made));
        return;
    default:
        OK(cudaGraphLaunch(run->exec, stream));
    }
}

static void order(struct run *run, const struct statement *at, cudaStream_t stream)
{
    cudaEvent_t event = at->event < 0 ? NULL : run->events[at->event];

    switch (at->verb) {
    case RECORD:
        OK(cudaEventRecord(event, stream));
        return;
    case WAIT:
        OK(cudaStreamWaitEvent(stream, event, 0));
        return;
    case SYNC_STREAM:
        OK(cudaStreamSynchronize(stream));
        return;
    case SYNC_EVENT:
        OK(cudaEventSynchronize(event));
        return;
    case QUERY_STREAM:
        observe_query(run, at, cudaStreamQuery(stream));
        return;
    case QUERY_EVENT:
        observe_query(run, at, cudaEventQuery(event));
        return;
    case DESTROY:
        OK(cudaStreamDestroy(stream));
        run->destroyed[at->stream] = true;
        return;
    default:
        OK(cudaDeviceSynchronize());
    }
}

static void access_memory(struct run *run, const struct statement *at)
{
    int *place = run->places[at->to];

    if (at->verb == WRITE)
        *place = at->value;
    else
        run->seen->at[at->seen] = *place;
    sim_check_host(place, sizeof(*place), at->verb == WRITE, "the host");
}

static void step(struct run *run, const struct statement *at)
{
    cudaStream_t stream = at->stream < 0 ? NULL : run->streams[at->stream];

    if (at->stream >= 0)
        OK(cudaSetDevice(stream_device(at->stream)));
    switch (at->verb) {
    case SET:
    case MOVE:
    case ADD:
    case COPY:
    case MEMSET:
    case HOST:
        work(run, at, stream);
        break;
    case WRITE:
    case READ:
        access_memory(run, at);
        break;
    case ALLOC:
    case FREE_ASYNC:
    case FREE:
    case FREE_HOST:
        memory(run, at, stream);
        break;
    case CAPTURE:
    case END:
    case LAUNCH:
        graph(run, at, stream);
        break;
    case POST:
        sem_post(&run->handovers[at->handover]);
        break;
    case TAKE:
        sem_wait(&run->handovers[at->handover]);
        break;
    default:
        order(run, at, stream);
    }
    OK(cudaSetDevice(0));
    // By a seed work runs in calls only; a card's may between any two statements.
    OK(cudaStreamQuery(run->idle));
}

struct other {
    struct run *run;
    const struct statement *at;
};

static void *step_elsewhere(void *arg)
{
    const struct other *other = arg;

    step(other->run, other->at);
    return NULL;
}

static void step_on_other_thread(struct run *run, const struct statement *at)
{
    struct other other = {run, at};
    pthread_t thread;

    if (pthread_create(&thread, NULL, step_elsewhere, &other))
        exit(1);
    pthread_join(thread, NULL);
}

// --- The second thread: one at a time, which of the two is drawn. The checker must not see
// how they take turns.

static void give_turn(struct run *run, int thread)
{
    __atomic_store_n(&run->turn, thread, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &run->turn, FUTEX_WAKE, THREADS);
}

static void await_turn(struct run *run, int thread)
{
    while (__atomic_load_n(&run->turn, __ATOMIC_SEQ_CST) != thread)
        syscall(SYS_futex, &run->turn, FUTEX_WAIT, 1 - thread, NULL);
}

static void *second_thread(void *arg)
{
    struct run *run = arg;

    for (await_turn(run, 1); run->next; await_turn(run, 1)) {
        step(run, run->next);
        give_turn(run, 0);
    }
    return NULL;
}

static const struct statement *next_of(const struct run *run, int thread, int from)
{
    const struct statement *at = &run->program->at[from];
    const struct statement *end = &run->program->at[run->program->count];

    while (at < end && at->verb != SHOW && at->thread != thread)
        at++;
    if (at == end || at->verb == SHOW ||
        (at->verb == TAKE && !(run->posted >> at->handover & 1)))
        return NULL;
    return at;
}

static void step_of(struct run *run, const struct statement *at)
{
    if (at->verb == POST)
        run->posted |= 1 << at->handover;
    if (at->stream == 7)
        step_on_other_thread(run, at);
    else if (!at->thread)
        step(run, at);
    else {
        run->next = at;
        give_turn(run, 1);
        await_turn(run, 0);
    }
}

static void take_turns(struct run *run)
{
    int from[THREADS] = {0};

    for (;;) {
        const struct statement *at[THREADS] = {next_of(run, 0, from[0]),
                                               next_of(run, 1, from[1])};
        int thread = !at[0];

        if (!at[thread])
            break;
        if (at[0] && at[1])
            thread = flip();
        from[thread] = (int)(at[thread] - run->program->at) + 1;
        step_of(run, at[thread]);
    }
}

static void steps(struct run *run)
{
    pthread_t second;
    bool two = false;

    for (int i = 0; i < run->program->count; i++)
        two = two || run->program->at[i].thread;

    for (int i = 0; i < HANDOVERS; i++)
        sem_init(&run->handovers[i], 0, 0);
    if (two && pthread_create(&second, NULL, second_thread, run))
        exit(1);
    take_turns(run);
    if (two) {
        run->next = NULL;
        give_turn(run, 1);
        pthread_join(second, NULL);
    }
    for (int i = 0; i < HANDOVERS; i++)
        sem_destroy(&run->handovers[i]);
}

static void make_streams(struct run *run)
{
    static const unsigned flags[STREAMS] = {cudaStreamNonBlocking,
                                            cudaStreamNonBlocking,
                                            cudaStreamNonBlocking,
                                            cudaStreamDefault,
                                            cudaStreamDefault,
                                            0,
                                            0,
                                            0,
                                            cudaStreamNonBlocking};

    for (int i = 0; i < STREAMS; i++) {
        OK(cudaSetDevice(stream_device(i)));
        if (stream_is_legacy(i))
            run->streams[i] = cudaStreamLegacy;
        else if (i == 6 || i == 7)
            run->streams[i] = cudaStreamPerThread;
        else
            OK(cudaStreamCreateWithFlags(&run->streams[i], flags[i]));
    }
    OK(cudaSetDevice(0));
    OK(cudaStreamCreateWithFlags(&run->idle, cudaStreamNonBlocking));
    for (int i = 0; i < EVENTS; i++) {
        OK(cudaSetDevice(event_device(i)));
        OK(cudaEventCreateWithFlags(&run->events[i], cudaEventDisableTiming));
    }
    OK(cudaSetDevice(0));
}

static void make_places(struct run *run)
{
    for (int i = 0; i < PLACES; i++) {
        void **place = (void **)&run->places[i];

        if (place_kind(i) == POOL)
            continue;
        OK(cudaSetDevice(place_device(i)));
        if (place_kind(i) == PINNED)
            OK(cudaMallocHost(place, sizeof(int)));
        else if (place_kind(i) == PAGEABLE)
            *place = calloc(1, sizeof(int));
        else
            OK(cudaMalloc(place, sizeof(int)));
        if (place_kind(i) == DEVICE)
            OK(cudaMemset(*place, 0, sizeof(int)));
        OK(cudaDeviceSynchronize());
    }
    OK(cudaSetDevice(0));
}

static void sync_all(struct run *run)
{
    const int first = flip();

    for (int i = 0; i < 2; i++) {
        OK(cudaSetDevice(i ^ first));
        OK(cudaDeviceSynchronize());
    }
}

static void unmake(struct run *run)
{
    for (int i = 0; i < STREAMS; i++)
        if (!stream_is_legacy(i) && i != 6 && i != 7 && !run->destroyed[i])
            OK(cudaStreamDestroy(run->streams[i]));
    OK(cudaStreamDestroy(run->idle));
    for (int i = 0; i < EVENTS; i++)
        OK(cudaEventDestroy(run->events[i]));
    if (run->exec)
        OK(cudaGraphExecDestroy(run->exec));
    for (int i = 0; i < PLACES; i++) {
        if (run->freed[i] || !run->places[i])
            continue;
        if (place_kind(i) == PAGEABLE)
            free(run->places[i]);
        else if (place_kind(i) == PINNED)
            OK(cudaFreeHost(run->places[i]));
        else
            OK(cudaFree(run->places[i]));
    }
}

static unsigned long races(void)
{
    struct sim_races races;

    sim_races_get(&races);
    return races.accesses;
}

void program_run(const struct program *program, struct seen *seen)
{
    struct run all = {.program = program, .seen = seen}, *run = &all;

    *seen = (struct seen){0};
    make_streams(run);
    make_places(run);

    const unsigned long before = races();

    seen->count = program->seen_count;
    steps(run);
    sync_all(run);
    seen->races = races() - before;
    for (int i = 0; i < program->count; i++)
        if (program->at[i].verb == SHOW)
            seen->at[seen->count++] = *(volatile int *)run->places[program->at[i].to];
    unmake(run);
}
