// SPDX-License-Identifier: Apache-2.0
//
// Preloaded behind libactswap: kills the process before the call to the file system that
// MORTAL_AT numbers, counting those of libactswap alone. So every moment between two of
// its calls can be the last one.
#undef _FILE_OFFSET_BITS // open and open64 are two functions here
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static void live_or_die(const void *caller)
{
    static long calls;
    const char *at = getenv("MORTAL_AT");
    Dl_info info;

    if (at && dladdr(caller, &info) && strstr(info.dli_fname, "libactswap") &&
        ++calls == strtol(at, NULL, 10))
        raise(SIGKILL);
}

#define MORTAL(name, parameters, ...)                                                    \
    __attribute__((visibility("default"))) int name parameters;                          \
    int name parameters                                                                  \
    {                                                                                    \
        int(*real) parameters = (int(*) parameters)dlsym(RTLD_NEXT, #name);              \
                                                                                         \
        live_or_die(__builtin_return_address(0));                                        \
        return real(__VA_ARGS__);                                                        \
    }

MORTAL(close, (int fd), fd)
MORTAL(unlink, (const char *path), path)
MORTAL(rename, (const char *from, const char *to), from, to)
MORTAL(link, (const char *from, const char *to), from, to)
MORTAL(mkdir, (const char *path, mode_t mode), path, mode)
MORTAL(renameat2, (int a, const char *from, int b, const char *to, unsigned flags), a,
       from, b, to, flags)

__attribute__((visibility("default"))) ssize_t write(int fd, const void *data,
                                                     size_t bytes)
{
    ssize_t (*real)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");

    live_or_die(__builtin_return_address(0));
    return real(fd, data, bytes);
}

#define MORTAL_OPEN(name)                                                                \
    __attribute__((visibility("default"))) int name(const char *path, int flags, ...)    \
    {                                                                                    \
        int (*real)(const char *, int, ...) =                                            \
            (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);                    \
        va_list args;                                                                    \
                                                                                         \
        va_start(args, flags);                                                           \
        const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;                  \
        va_end(args);                                                                    \
        live_or_die(__builtin_return_address(0));                                        \
        return real(path, flags, mode);                                                  \
    }

MORTAL_OPEN(open)
MORTAL_OPEN(open64)
