// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_STANDIN_STANDIN_H
#define AS_SIMCUDA_STANDIN_STANDIN_H

// Functions of a stand-in for a closed library. Nobody is meant to call them: each says
// its name once, is counted (sim_closed_calls of the runtime) and answers the library's
// "not supported". Versions are answered, as a program's host code chooses by them; and
// cuBLAS's work succeeds where kernel launches do nothing either, so that the host code
// around it makes the allocations of the card.
//
// Thread-safety: every function may be called from any thread.

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// Says and counts a call.
void standin_called(const char *function, atomic_flag *said);
// The same, returning false, where this thread's launches would have to compute.
bool standin_work(const char *function, atomic_flag *said);

#define STANDIN_FUNCTION(type, name, result)                                             \
    type name(void);                                                                     \
    type name(void)                                                                      \
    {                                                                                    \
        static atomic_flag said = ATOMIC_FLAG_INIT;                                      \
                                                                                         \
        standin_called(#name, &said);                                                    \
        return result;                                                                   \
    }

#define STANDIN_STATUS(name, status) STANDIN_FUNCTION(long, name, status)
#define STANDIN_WORK(name, status)                                                       \
    long name(void);                                                                     \
    long name(void)                                                                      \
    {                                                                                    \
        static atomic_flag said = ATOMIC_FLAG_INIT;                                      \
                                                                                         \
        return standin_work(#name, &said) ? 0 : (status);                                \
    }

#define STANDIN_NULL(name) STANDIN_FUNCTION(void *, name, NULL)
#define STANDIN_NOTHING(name) STANDIN_FUNCTION(long, name, 0)

// The text of any status: there is only one.
#define STANDIN_TEXT(name)                                                               \
    const char *name(void);                                                              \
    const char *name(void)                                                               \
    {                                                                                    \
        return "not supported on a simulated device";                                    \
    }

#define STANDIN_VALUE(name, value)                                                       \
    size_t name(void);                                                                   \
    size_t name(void)                                                                    \
    {                                                                                    \
        return value;                                                                    \
    }

// OUT(name, a) writes one value, OUT(name, a, b) two.
#define STANDIN_OUT(name, ...)                                                           \
    int name(int *first, int *second);                                                   \
    int name(int *first, int *second)                                                    \
    {                                                                                    \
        static const int values[] = {__VA_ARGS__};                                       \
                                                                                         \
        *first = values[0];                                                              \
        if (sizeof(values) / sizeof(values[0]) > 1)                                      \
            *second = values[sizeof(values) / sizeof(values[0]) - 1];                    \
        return 0;                                                                        \
    }

// libraryPropertyType: major 0, minor 1, patch level 2.
#define STANDIN_PROPERTY(name, major, minor, patch)                                      \
    int name(int property, int *value);                                                  \
    int name(int property, int *value)                                                   \
    {                                                                                    \
        *value = property == 0 ? (major) : property == 1 ? (minor) : (patch);            \
        return 0;                                                                        \
    }

#endif
