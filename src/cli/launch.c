// SPDX-License-Identifier: Apache-2.0
#include "cli/launch.h"

#include "cli/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Those that ask a program to end or to do something; the rest keep their meaning for us.
static const int forwarded[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

int as_launch_set(const char *name, const char *value)
{
    if (value && setenv(name, value, 1))
        return as_error(AS_EXIT_CANNOT, "cannot set %s: %s", name, strerror(errno));
    return 0;
}

int as_launch_name_run(void)
{
    const char *const given = getenv("ACTSWAP_RUN_ID");
    if (given && *given)
        return 0;
    const time_t now = time(NULL);
    struct tm local;
    char day[16] = "0000";
    if (localtime_r(&now, &local))
        (void)strftime(day, sizeof(day), "%m%d", &local);
    char id[48];
    (void)snprintf(id, sizeof(id), "%s-%d", day, (int)getpid());
    return as_launch_set("ACTSWAP_RUN_ID", id);
}

static int cannot_execute(const char *path)
{
    const int code = errno == ENOENT ? AS_EXIT_NOT_FOUND : AS_EXIT_NOT_EXECUTABLE;
    return as_error(code, "cannot execute %s: %s", path, strerror(errno));
}

int as_launch_exec(const char *path, char *const program[])
{
    (void)execv(path, program);
    return cannot_execute(path);
}

static void collect_forwarded(sigset_t *set)
{
    (void)sigemptyset(set);
    for (size_t n = 0; n < sizeof(forwarded) / sizeof(forwarded[0]); n++)
        (void)sigaddset(set, forwarded[n]);
}

static _Noreturn void become(const char *path, char *const program[], const char *log,
                             const sigset_t *mask, int failure)
{
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    if (log) {
        const int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
            goto fail;
        (void)close(fd);
    }
    (void)execv(path, program);
fail:;
    const int err = errno;
    if (write(failure, &err, sizeof(err)) != sizeof(err))
        _exit(AS_EXIT_CANNOT);
    _exit(AS_EXIT_CANNOT);
}

// Starts it; a failed exec comes back through a pipe that a successful one closes.
static int start(const char *path, char *const program[], const char *log,
                 const sigset_t *mask, pid_t *child)
{
    int failure[2];
    if (pipe2(failure, O_CLOEXEC))
        return as_error(AS_EXIT_CANNOT, "cannot make a pipe: %s", strerror(errno));
    *child = fork();
    if (*child < 0) {
        const int err = errno;
        (void)close(failure[0]);
        (void)close(failure[1]);
        return as_error(AS_EXIT_CANNOT, "cannot start a process: %s", strerror(err));
    }
    if (!*child)
        become(path, program, log, mask, failure[1]);

    (void)close(failure[1]);
    int err = 0;
    const ssize_t got = read(failure[0], &err, sizeof(err));
    (void)close(failure[0]);
    if (got != (ssize_t)sizeof(err))
        return 0;
    (void)waitpid(*child, NULL, 0);
    errno = err;
    return cannot_execute(path);
}

// A terminal sends Ctrl-C to the whole group, so the program has that one already.
static bool came_from_terminal(const siginfo_t *info)
{
    return info->si_code == SI_KERNEL;
}

static int seconds_since(const struct timespec *start)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int)(now.tv_sec - start->tv_sec - (now.tv_nsec < start->tv_nsec));
}

static void wait_for(pid_t child, const sigset_t *set,
                     const struct as_launch_clock *clock, int *status)
{
    struct timespec begin;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        const pid_t ended = waitpid(child, status, WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR))
            return;
        siginfo_t info;
        const struct timespec second = {.tv_sec = 1};
        const int signal =
            clock ? sigtimedwait(set, &info, &second) : sigwaitinfo(set, &info);
        if (signal > 0 && signal != SIGCHLD && !came_from_terminal(&info))
            (void)kill(child, signal);
        if (clock)
            clock->tick(clock->context, seconds_since(&begin));
    }
}

int as_launch_wait(const char *path, char *const program[], const char *log,
                   const struct as_launch_clock *clock, int *status)
{
    // A parent that ignores SIGCHLD leaves that to us, and waitpid() then learns nothing.
    const struct sigaction child_ends = {.sa_handler = SIG_DFL};
    (void)sigaction(SIGCHLD, &child_ends, NULL);
    sigset_t set, before;
    collect_forwarded(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, &before);

    pid_t child = -1;
    const int err = start(path, program, log, &before, &child);
    if (!err)
        wait_for(child, &set, clock, status);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return err;
}

int as_launch_end_as(int status)
{
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    // Its core is the one worth keeping, not ours.
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    const int signal = WTERMSIG(status);
    const struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(signal, &action, NULL);
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, signal);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)raise(signal);
    return 128 + signal; // a signal that does not end a process here
}

void as_launch_describe(int status, char *text, int text_bytes)
{
    if (WIFSIGNALED(status)) {
        const char *const name = sigdescr_np(WTERMSIG(status));
        (void)snprintf(text, (size_t)text_bytes, "signal %d (%s)", WTERMSIG(status),
                       name ? name : "unknown");
    } else {
        (void)snprintf(text, (size_t)text_bytes, "status %d", WEXITSTATUS(status));
    }
}

void as_launch_print_word(const char *word, FILE *out)
{
    static const char special[] = " \t\n'\"\\$`*?[](){}<>|&;#~!";
    if (*word && !word[strcspn(word, special)]) {
        (void)fprintf(out, " %s", word);
        return;
    }
    (void)fputs(" '", out);
    for (; *word; word++)
        (void)(*word == '\'' ? fputs("'\\''", out) : fputc(*word, out));
    (void)fputc('\'', out);
}
