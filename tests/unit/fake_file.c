// SPDX-License-Identifier: Apache-2.0
#include "fake_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

struct call {
    const char *name, *symbol;
    int calls, fail_at, spoil_at, err;
    bool always, held;
    int waiting;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct call calls[] = {
    {.name = "open", .symbol = "open64"},
    {.name = "fcntl", .symbol = "fcntl64"},
    {.name = "fallocate", .symbol = "fallocate64"},
    {.name = "pwrite", .symbol = "pwrite64"},
    {.name = "pread", .symbol = "pread64"},
};

enum { CALLS = sizeof(calls) / sizeof(*calls) };

static struct call *find(const char *name)
{
    for (size_t i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    abort();
}

void fake_file_fail(const char *function, int nth, int err, bool always)
{
    struct call *call = find(function);
    call->fail_at = call->calls + nth;
    call->err = err;
    call->always = always;
}

void fake_file_spoil(const char *function, int nth, bool always)
{
    struct call *call = find(function);
    call->spoil_at = call->calls + nth;
    call->always = always;
}

static void set_held(const char *function, bool held)
{
    pthread_mutex_lock(&lock);
    find(function)->held = held;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void fake_file_hold(const char *function)
{
    set_held(function, true);
}

void fake_file_await_held(const char *function)
{
    const struct call *call = find(function);
    pthread_mutex_lock(&lock);
    while (!call->waiting)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void fake_file_let_through(const char *function)
{
    set_held(function, false);
}

void fake_file_reset(void)
{
    for (size_t i = 0; i < CALLS; i++)
        calls[i] = (struct call){.name = calls[i].name, .symbol = calls[i].symbol};
}

int fake_file_calls(const char *function)
{
    return find(function)->calls;
}

static bool hits(const struct call *call, int at)
{
    return at && (call->calls == at || (call->always && call->calls > at));
}

// Every call begins here. NULL: it is refused, and errno says why.
static void *begin(const char *name, bool *spoilt)
{
    struct call *call = find(name);
    pthread_mutex_lock(&lock);
    call->calls++;
    call->waiting++;
    pthread_cond_broadcast(&changed);
    while (call->held)
        pthread_cond_wait(&changed, &lock);
    call->waiting--;
    const bool refused = hits(call, call->fail_at);
    *spoilt = hits(call, call->spoil_at);
    pthread_mutex_unlock(&lock);
    if (refused)
        errno = call->err;
    return refused ? NULL : dlsym(RTLD_NEXT, call->symbol);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    bool spoilt;
    va_start(args, flags);
    const int mode = va_arg(args, int);
    va_end(args);
    int (*real)(const char *, int, ...) =
        (int (*)(const char *, int, ...))begin("open", &spoilt);
    return real ? real(path, flags, mode) : -1;
}

int fcntl(int fd, int command, ...)
{
    va_list args;
    bool spoilt;
    va_start(args, command);
    const long arg = va_arg(args, long);
    va_end(args);
    int (*real)(int, int, ...) = (int (*)(int, int, ...))begin("fcntl", &spoilt);
    return real ? real(fd, command, arg) : -1;
}

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    bool spoilt;
    int (*real)(int, int, off_t, off_t) =
        (int (*)(int, int, off_t, off_t))begin("fallocate", &spoilt);
    return real ? real(fd, mode, offset, bytes) : -1;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    bool spoilt;
    ssize_t (*real)(int, const void *, size_t, off_t) =
        (ssize_t(*)(int, const void *, size_t, off_t))begin("pwrite", &spoilt);
    if (!real || !spoilt)
        return real ? real(fd, data, bytes, offset) : -1;
    char *copy = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    memcpy(copy, data, bytes);
    copy[bytes / 2] ^= 1;
    const ssize_t written = real(fd, copy, bytes, offset);
    free(copy);
    return written;
}

ssize_t pread(int fd, void *data, size_t bytes, off_t offset)
{
    bool spoilt;
    ssize_t (*real)(int, void *, size_t, off_t) =
        (ssize_t(*)(int, void *, size_t, off_t))begin("pread", &spoilt);
    const ssize_t got = real ? real(fd, data, bytes, offset) : -1;
    if (got > 0 && spoilt)
        ((char *)data)[got / 2] ^= 1;
    return got;
}
