// SPDX-License-Identifier: Apache-2.0
// What the checker says, word for word, when it stops, and what it remembers.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "simcuda/check/shadow.h"
#include "simcuda/simcuda.h"

enum { BYTES = 4096, MANY = 100000, CELLS_MAX = 1 << 17, CASE_SECONDS = 60 };

static char *memory;
static cudaStream_t streams[2];

static const char *line(void)
{
    return "train.py:31";
}

static void set_up(void)
{
    if (cudaMalloc((void **)&memory, (size_t)MANY * 8) ||
        cudaMemset(memory, 0, MANY * 8) || cudaDeviceSynchronize())
        exit(1);
    for (int i = 0; i < 2; i++)
        if (cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking))
            exit(1);
}

static void use(int stream, const char *name, size_t at, size_t bytes, bool write)
{
    const struct sim_work work = {.name = name};
    const struct sim_access access = {
        .address = memory + at, .bytes = bytes, .write = write, .unread = write};

    if (sim_submit(stream < 0 ? NULL : streams[stream], &work, &access, 1))
        exit(1);
}

static void a_read_behind_a_write(void)
{
    sim_check_lines(line);
    use(-1, "aten::mul.Tensor", 0, BYTES, true);
    sim_check_lines(NULL);
    use(0, "aten::add.Tensor", 8, 16, false);
}

static void a_write_behind_a_read(void)
{
    use(1, "aten::sum", 0, BYTES, false);
    use(0, "aten::fill_", 0, 1, true);
}

static void a_write_behind_a_write(void)
{
    use(1, "aten::fill_", 0, BYTES, true);
    use(0, "aten::zero_", 0, BYTES, true);
}

static void the_same_pair_twice(void)
{
    a_write_behind_a_write();
    a_write_behind_a_write();
}

static void memory_given_out_again(void)
{
    use(1, "aten::sum", 0, BYTES, false);
    sim_check_block(memory, BYTES, false);
    sim_check_block(memory, BYTES, true);
    use(0, "aten::fill_", 0, BYTES, true);
}

static void memory_that_was_freed(void)
{
    use(0, "aten::fill_", 0, BYTES, true);
    sim_check_block(memory, BYTES, false);
    use(0, "aten::sum", 0, BYTES, false);
}

static void memory_that_nothing_has_written(void)
{
    sim_check_block(memory, BYTES, true);
    use(0, "aten::sum", 0, BYTES, false);
}

static void the_host_before_a_copy_is_done(void)
{
    char *pinned;

    if (cudaMallocHost((void **)&pinned, BYTES) ||
        cudaMemcpyAsync(pinned, memory, BYTES, cudaMemcpyDeviceToHost, streams[0]))
        exit(1);
    sim_check_host(pinned, 4, false, "aten::add.Tensor on the CPU");
}

// --- Host functions, and threads of the program

static int *pinned_number(void)
{
    int *pinned;

    if (cudaMallocHost((void **)&pinned, sizeof(*pinned)))
        exit(1);
    *pinned = 0;
    return pinned;
}

static void copy_to(int *pinned, int stream)
{
    if (cudaMemcpyAsync(pinned, memory, sizeof(*pinned), cudaMemcpyDeviceToHost,
                        streams[stream]))
        exit(1);
}

static void read_it(void *number)
{
    sim_check_host(number, sizeof(int), false, "the program");
}

static void write_it(void *number)
{
    sim_check_host(number, sizeof(int), true, "the program");
}

static void call(int stream, cudaHostFn_t function, void *arg)
{
    if (cudaLaunchHostFunc(streams[stream], function, arg))
        exit(1);
}

static void order(int from, int to)
{
    cudaEvent_t event;

    if (cudaEventCreate(&event) || cudaEventRecord(event, streams[from]) ||
        cudaStreamWaitEvent(streams[to], event, 0))
        exit(1);
}

static void synchronise(int stream)
{
    if (cudaStreamSynchronize(streams[stream]))
        exit(1);
}

static void a_host_function_before_a_copy_is_done(void)
{
    int *pinned = pinned_number();

    copy_to(pinned, 0);
    call(1, read_it, pinned);
    synchronise(1);
}

static void a_host_function_that_a_copy_does_not_wait_for(void)
{
    int *pinned = pinned_number();

    call(1, write_it, pinned);
    copy_to(pinned, 0);
    synchronise(1);
}

// It runs when all that comes after it is submitted, and knows it.
static void a_host_function_between_two_copies(void)
{
    int *pinned = pinned_number();

    copy_to(pinned, 0);
    call(0, read_it, pinned);
    call(0, write_it, pinned);
    order(0, 1);
    copy_to(pinned, 1);
    call(1, read_it, pinned);
    synchronise(1);
    write_it(pinned);
}

static int told;

static void tell(void *number)
{
    (void)number;
    __atomic_store_n(&told, 1, __ATOMIC_RELEASE);
}

static void wait_to_be_told(void)
{
    while (!__atomic_load_n(&told, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void the_program_is_told_by_a_host_function(void)
{
    int *pinned = pinned_number();

    copy_to(pinned, 0);
    call(0, tell, NULL);
    wait_to_be_told();
    read_it(pinned);
}

static void *synchronise_and_tell(void *unused)
{
    synchronise(0);
    tell(unused);
    return NULL;
}

static void the_program_is_told_by_another_thread(void)
{
    int *pinned = pinned_number();
    pthread_t thread;

    copy_to(pinned, 0);
    if (pthread_create(&thread, NULL, synchronise_and_tell, NULL))
        exit(1);
    wait_to_be_told();
    read_it(pinned);
    pthread_join(thread, NULL);
}

static void *read_elsewhere(void *number)
{
    read_it(number);
    return NULL;
}

static void another_thread_before_a_copy_is_done(void)
{
    int *pinned = pinned_number();
    pthread_t thread;

    copy_to(pinned, 0);
    if (pthread_create(&thread, NULL, read_elsewhere, pinned) ||
        pthread_join(thread, NULL))
        exit(1);
    synchronise(0);
}

// --- Several at once

static void two_readers_of_two_pieces(void)
{
    use(1, "aten::sum", 0, 64, false);
    use(1, "aten::max", 64, 64, false);
    use(0, "aten::fill_", 0, BYTES, true);
}

static void nothing_that_races(void)
{
    use(0, "aten::fill_", 0, BYTES, true);
    use(0, "aten::sum", 0, BYTES, false);
    use(1, "aten::sum", BYTES, BYTES, false);
}

// Small pieces of one buffer, over and over, on two streams.
static void memory_stays_bounded(void)
{
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < MANY; i++)
            use((int)(i % 2), "piece", i * 8, 8, i % 3 == 0);
        cudaDeviceSynchronize();
    }
    if (sim_shadow_count() > CELLS_MAX)
        fprintf(stderr, "%zu cells\n", sim_shadow_count());
}

static const struct says {
    const char *name;
    void (*run)(void);
    const char *check;
    const char *text; // * stands for a number or an address
    int status;
} cases[] = {
    {"a read behind a write", a_read_behind_a_write, "races",
     "simcuda: race 1: aten::add.Tensor on stream * reads 16 bytes at *\n"
     "simcuda:    that aten::mul.Tensor (train.py:31) on the default stream may not have "
     "written yet: nothing orders the two\n",
     0},
    {"a write behind a read", a_write_behind_a_read, "races",
     "simcuda: race 1: aten::fill_ on stream * writes 1 byte at *\n"
     "simcuda:    that aten::sum on stream * may not have read yet: nothing orders the "
     "two\n",
     0},
    {"a write behind a write", a_write_behind_a_write, "races",
     "simcuda: race 1: aten::zero_ on stream * writes 4096 bytes at *\n"
     "simcuda:    that aten::fill_ on stream * may write later: nothing orders the two\n",
     0},
    {"the same pair is said once", the_same_pair_twice, "races",
     "simcuda: race 1: aten::zero_ on stream * writes 4096 bytes at *\n"
     "simcuda:    that aten::fill_ on stream * may write later: nothing orders the two\n"
     "simcuda: race 2: aten::fill_ on stream * writes 4096 bytes at *\n"
     "simcuda:    that aten::zero_ on stream * may write later: nothing orders the two\n",
     0},
    {"memory given out again", memory_given_out_again, "races",
     "simcuda: race 1: aten::fill_ on stream * writes 4096 bytes at *\n"
     "simcuda:    that aten::sum on stream * may not have read yet: they were freed and "
     "given out again meanwhile (record_stream, or wait before the free)\n",
     0},
    {"memory that was freed", memory_that_was_freed, "races",
     "simcuda: race 1: aten::sum on stream * reads 4096 bytes at *\n"
     "simcuda:    that were freed before; the last to write them: aten::fill_ on stream "
     "*\n",
     0},
    {"memory that nothing has written", memory_that_nothing_has_written, "races",
     "simcuda: unwritten: aten::sum on stream * reads 4096 bytes at *\n"
     "simcuda:    that nothing has written since they were allocated\n",
     0},
    {"the host before a copy is done", the_host_before_a_copy_is_done, "races",
     "simcuda: race 1: aten::add.Tensor on the CPU reads 4 bytes at *\n"
     "simcuda:    that copy to the host on stream * may not have written yet: nothing "
     "orders the two\n",
     0},
    {"a host function before a copy is done", a_host_function_before_a_copy_is_done,
     "races",
     "simcuda: race 1: host function on stream * reads 4 bytes at *\n"
     "simcuda:    that copy to the host on stream * may not have written yet: nothing "
     "orders the two\n",
     0},
    {"a host function that a copy does not wait for",
     a_host_function_that_a_copy_does_not_wait_for, "races",
     "simcuda: race 1: host function on stream * writes 4 bytes at *\n"
     "simcuda:    that copy to the host on stream * may write later: nothing orders the "
     "two\n",
     0},
    {"a host function between two copies", a_host_function_between_two_copies, "races",
     "", 0},
    {"the program is told by a host function", the_program_is_told_by_a_host_function,
     "races", "", 0},
    {"the program is told by another thread", the_program_is_told_by_another_thread,
     "races", "", 0},
    {"another thread before a copy is done", another_thread_before_a_copy_is_done,
     "races",
     "simcuda: race 1: the program reads 4 bytes at *\n"
     "simcuda:    that copy to the host on stream * may not have written yet: nothing "
     "orders the two\n",
     0},
    {"two readers of two pieces", two_readers_of_two_pieces, "races",
     "simcuda: race 1: aten::fill_ on stream * writes 4096 bytes at *\n"
     "simcuda:    that aten::sum on stream * may not have read yet: nothing orders the "
     "two\n"
     "simcuda: race 2: aten::fill_ on stream * writes 4096 bytes at *\n"
     "simcuda:    that aten::max on stream * may not have read yet: nothing orders the "
     "two\n",
     0},
    {"nothing that races", nothing_that_races, "races", "", 0},
    {"off says nothing", a_write_behind_a_write, "off", "", 0},
    {"the first race ends the run", the_same_pair_twice, "first-race",
     "simcuda: race 1: aten::zero_ on stream * writes 4096 bytes at *\n"
     "simcuda:    that aten::fill_ on stream * may write later: nothing orders the two\n"
     "simcuda: error: stopped at the first race (ACTSWAP_SIM_CHECK=first-race)\n",
     70},
    {"memory stays bounded", memory_stays_bounded, "races", NULL, 0},
};

enum { CASES = sizeof(cases) / sizeof(*cases) };

// Each number in hexadecimal becomes a star.
static void star(char *text)
{
    char *to = text;

    for (char *from = text; *from;) {
        if (!strncmp(from, "0x", 2)) {
            *to++ = '*';
            from += 2 + strspn(from + 2, "0123456789abcdef");
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

static bool run_case(const struct says *one)
{
    char text[8192] = "";
    size_t used = 0;
    int ends[2], status;

    if (pipe(ends))
        return false;
    fflush(stdout);

    const pid_t child = fork();

    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        setenv("ACTSWAP_SIM_CHECK", one->check, 1);
        setenv("ACTSWAP_SIM_COMPUTE", "values", 1);
        setenv("ACTSWAP_SIM_ORDER", "late", 1);
        alarm(CASE_SECONDS);
        set_up();
        one->run();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0;)
        used += (size_t)got;
    close(ends[0]);
    star(text);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != one->status)
        return false;
    if (one->text ? !strcmp(text, one->text) : !strstr(text, "cells"))
        return true;
    fprintf(stderr, "# %s said:\n%s", one->name, text);
    return false;
}

int main(void)
{
    bool good = true;

    printf("1..%d\n", CASES);
    for (int i = 0; i < CASES; i++) {
        const bool passed = run_case(&cases[i]);

        printf("%sok %d - %s\n", passed ? "" : "not ", i + 1, cases[i].name);
        good = good && passed;
    }
    return good ? 0 : 1;
}
