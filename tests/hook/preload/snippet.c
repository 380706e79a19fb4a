// SPDX-License-Identifier: Apache-2.0
//
// Runs the calls of calls.c in a surrounding of choice.
//
//   snippet plain       from main
//   snippet thread      from a second thread
//   snippet fork        from main, and again from a forked child
//   snippet child       from a forked child only
//   snippet _exit       from main, which then leaves without exit handlers
//   snippet none        not at all
//   snippet local LIB   from main, the library loaded late and for itself alone
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

static void (*calls)(void);

static void *in_thread(void *unused)
{
    calls();
    return unused;
}

static int from_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, in_thread, NULL))
        return 3;
    return pthread_join(thread, NULL) ? 3 : 0;
}

static int from_child(void)
{
    int status = -1;

    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        printf("child\n");
        calls();
        return 0;
    }
    if (waitpid(child, &status, 0) != child)
        return 3;
    printf("child ended %d\n", status);
    return 0;
}

#ifdef LOCAL
static void find_calls(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    calls = library ? (void (*)(void))dlsym(library, "hook_calls") : NULL;
    if (!calls)
        fprintf(stderr, "snippet: %s\n", dlerror());
}
#else
static void find_calls(const char *path)
{
    (void)path;
    calls = hook_calls;
}
#endif

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    if (strcmp(mode, "none") == 0)
        return 0;
    find_calls(argc > 2 ? argv[2] : "");
    if (!calls)
        return 2;
    if (strcmp(mode, "thread") == 0)
        return from_thread();
    if (strcmp(mode, "child") == 0)
        return from_child();
    calls();
    if (strcmp(mode, "fork") == 0)
        return from_child();
    if (strcmp(mode, "_exit") == 0)
        _exit(0);
    return 0;
}
