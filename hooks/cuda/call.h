// SPDX-License-Identifier: Apache-2.0
#ifndef AS_HOOKS_CUDA_CALL_H
#define AS_HOOKS_CUDA_CALL_H

// One hooked call on its way: what it is about to do, in the words of the table (calls.h),
// and what is kept from before the driver is asked until it has answered.
//
// Thread-safety: a call belongs to its thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "card.h"
#include "engine.h"
#include "hooks.h"

enum as_api { AS_API_RUNTIME, AS_API_DRIVER };

enum as_effect {
    AS_GIVES,
    AS_NAMES,
    AS_FREES,
    AS_RESETS,
    AS_MAKES_STREAM,
    AS_ENDS_STREAM,
    AS_CREATES,
    AS_RETAINS,
    AS_RELEASES,
    AS_MAPS,
    AS_UNMAPS,
};

struct as_call {
    enum as_hook hook;
    enum as_api api;
    enum as_effect effect;
    enum actswap_memory kind;
    unsigned kinds; // a bit each
    const void *caller;
    void *const *address; // where the program wants its pointer
    void *given; // an address of the program's
    size_t bytes; // to ask the real function for
    const size_t *pitch;
    size_t rows;
    void *stream, *pool;
    int device; // AS_CALL_CURRENT: the current one; AS_CALL_NONE
    const unsigned long long *handle;
    bool ordered;
    // Below: the call's own.
    bool outermost, repeated;
    size_t asked_bytes;
    struct as_claim claim;
    struct as_freeing freeing;
    uint64_t stamp;
};

#define AS_CALL_KIND(kind) (1U << ACTSWAP_MEMORY_##kind)
#define AS_CALL_PINNED AS_CALL_KIND(PINNED)
#define AS_CALL_REGISTERED AS_CALL_KIND(REGISTERED)
#define AS_CALL_IMPORTED AS_CALL_KIND(IMPORTED)
#define AS_CALL_ORDERED (AS_CALL_KIND(DEVICE) | AS_CALL_KIND(GRAPH))
#define AS_CALL_ANY (AS_CALL_ORDERED | AS_CALL_KIND(MANAGED))

#define AS_CALL_CURRENT (-1)
#define AS_CALL_NONE (-2)

// Before the real function, which is returned; NULL: there is none.
void *as_call_begin(struct as_call *call);

// After it said `result`. True: what it gave was more than a smaller card has left, and was
// given back; ask again.
bool as_call_again(struct as_call *call, int result);

// After the last answer.
void as_call_end(struct as_call *call, int result);

// For the table. A product that does not fit is SIZE_MAX.
size_t as_call_area(size_t width, size_t height);
int as_call_device(const void *properties); // of struct CUmemAllocationProp
// What makes rows of the width, or of `call.bytes` in all if that is another size.
size_t as_call_width(const struct as_call *call, size_t width);

// --- What a call does

// Gives memory of a kind at *(where).
#define GIVES(of, where, size)                                                           \
    .effect = AS_GIVES, .kind = ACTSWAP_MEMORY_##of, .address = (void **)(where),        \
    .bytes = (size)
// In the order of a stream: captured, it is a graph's.
#define GIVES_ORDERED(where, size, on)                                                   \
    .effect = AS_GIVES, .address = (void **)(where), .bytes = (size), .ordered = true,   \
    .stream = (on)
// In rows, whose pitch the driver chooses.
#define GIVES_ROWS(where, pitch_at, width_bytes, count)                                  \
    .effect = AS_GIVES, .address = (void **)(where),                                     \
    .bytes = as_call_area(width_bytes, count), .pitch = (pitch_at), .rows = (count)
// Another process's: how much is asked afterwards.
#define IMPORTS(where)                                                                   \
    .effect = AS_GIVES, .kind = ACTSWAP_MEMORY_IMPORTED, .address = (void **)(where)
// Memory that is there already.
#define REGISTERS(where, size)                                                           \
    .effect = AS_NAMES, .kind = ACTSWAP_MEMORY_REGISTERED, .given = (where),             \
    .bytes = (size)
// Memory of one of these kinds: an address may have been another kind's a moment ago.
#define FREES(of, what)                                                                  \
    .effect = AS_FREES, .kinds = AS_CALL_##of, .given = (void *)(uintptr_t)(what)
#define RESETS(which) .effect = AS_RESETS, .device = (which)
#define MAKES_STREAM(where) .effect = AS_MAKES_STREAM, .address = (void **)(where)
#define ENDS_STREAM(what) .effect = AS_ENDS_STREAM, .stream = (what)
// Physical memory.
#define CREATES(where, size, properties)                                                 \
    .effect = AS_CREATES, .handle = (where), .bytes = (size),                            \
    .device = as_call_device(properties)
#define RETAINS(where, at) .effect = AS_RETAINS, .handle = (where), .given = (at)
#define RELEASES(which) .effect = AS_RELEASES, .handle = &(which)
#define MAPS(at, size, which)                                                            \
    .effect = AS_MAPS, .given = (void *)(uintptr_t)(at), .bytes = (size),                \
    .handle = &(which)
#define UNMAPS(at, size)                                                                 \
    .effect = AS_UNMAPS, .given = (void *)(uintptr_t)(at), .bytes = (size)

// No stream means the thread's own.
#define AS_CALL_OWN(stream) ((stream) ? (void *)(stream) : (void *)cudaStreamPerThread)

#define AS_API_RESULT_RUNTIME cudaError_t
#define AS_API_RESULT_DRIVER CUresult
#define AS_API_ABSENT_RUNTIME cudaErrorInitializationError
#define AS_API_ABSENT_DRIVER CUDA_ERROR_NOT_INITIALIZED

#define AS_CALL_WRAPPER(of, name, parameters, arguments, ...)                            \
    AS_API_RESULT_##of name parameters;                                                  \
    AS_EXPORT AS_API_RESULT_##of name parameters                                         \
    {                                                                                    \
        typedef AS_API_RESULT_##of real_fn parameters;                                   \
        struct as_call call = {.hook = AS_HOOK_##name,                                   \
                               .api = AS_API_##of,                                       \
                               .caller = __builtin_return_address(0),                    \
                               __VA_ARGS__};                                             \
        real_fn *const real = (real_fn *)as_call_begin(&call);                           \
        AS_API_RESULT_##of result;                                                       \
                                                                                         \
        if (!real)                                                                       \
            return AS_API_ABSENT_##of;                                                   \
        do                                                                               \
            result = real arguments;                                                     \
        while (as_call_again(&call, (int)result));                                       \
        as_call_end(&call, (int)result);                                                 \
        return result;                                                                   \
    }

#endif
