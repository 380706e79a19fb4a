// SPDX-License-Identifier: Apache-2.0
#include "litmus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Long enough for valgrind; a case that waits for ever ends here.
enum { CASE_SECONDS = 60 };

static int faults;

bool litmus_late(void)
{
    const char *order = getenv("ACTSWAP_SIM_ORDER");

    return order && !strcmp(order, "late");
}

void litmus_expect(const char *file, int line, const char *what, long got, long want)
{
    if (got == want)
        return;
    fprintf(stderr, "# %s:%d: %s is %ld, not %ld\n", file, line, what, got, want);
    faults++;
}

static void run_child(const struct litmus *one, int output)
{
    alarm(CASE_SECONDS);
    if (one->dies)
        dup2(output, STDERR_FILENO);
    if (one->environment) {
        char *name = strdup(one->environment);
        char *value = strchr(name, '=');

        *value++ = '\0';
        setenv(name, value, 1);
    }
    one->run();
    fflush(stderr);
    _exit(faults ? 1 : 0);
}

static bool run_case(const struct litmus *one)
{
    char text[4096] = "";
    size_t used = 0;
    int ends[2], status;

    if (pipe(ends))
        return false;

    const pid_t child = fork();

    if (!child)
        run_child(one, ends[1]);
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0;)
        used += (size_t)got;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    if (!one->dies)
        return WIFEXITED(status) && !WEXITSTATUS(status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 70 && strstr(text, one->dies))
        return true;
    fprintf(stderr, "# status %x, not 70 with '%s': %s\n", (unsigned)status, one->dies,
            text);
    return false;
}

int litmus_run(const struct litmus *cases, size_t count)
{
    bool all = true;

    printf("1..%zu\n", count);
    for (size_t i = 0; i < count; i++) {
        const bool passed = run_case(&cases[i]);

        printf("%sok %zu - %s\n", passed ? "" : "not ", i + 1, cases[i].name);
        fflush(stdout);
        all = all && passed;
    }
    return all ? 0 : 1;
}

int *litmus_device(void)
{
    int *device = NULL;

    OK(cudaMalloc((void **)&device, sizeof(*device)));
    *device = 0;
    return device;
}

int *litmus_pinned(void)
{
    int *pinned = NULL;

    OK(cudaMallocHost((void **)&pinned, sizeof(*pinned)));
    return pinned;
}

int litmus_peek(const int *device)
{
    return __atomic_load_n(device, __ATOMIC_ACQUIRE);
}

cudaStream_t litmus_stream(void)
{
    cudaStream_t stream = NULL;

    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

cudaStream_t litmus_blocking_stream(void)
{
    cudaStream_t stream = NULL;

    OK(cudaStreamCreate(&stream));
    return stream;
}

cudaEvent_t litmus_event(void)
{
    cudaEvent_t event = NULL;

    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
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

static void submit(cudaStream_t stream, struct body body)
{
    struct body *own = malloc(sizeof(*own));
    const struct sim_work work = {
        .name = "litmus", .run = run_body, .destroy = free, .arg = own};
    const struct sim_access accesses[] = {
        {.address = body.to, .bytes = sizeof(int), .write = true}};

    *own = body;
    OK(sim_submit(stream, &work, accesses, 1));
}

void litmus_set(cudaStream_t stream, int *to, int value)
{
    submit(stream, (struct body){to, NULL, value});
}

void litmus_move(cudaStream_t stream, int *to, const int *from)
{
    submit(stream, (struct body){to, from, 0});
}

void litmus_add(cudaStream_t stream, int *to, int by)
{
    submit(stream, (struct body){to, to, by});
}
