// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TESTS_HOOK_CALLS_PROGRAM_H
#define AS_TESTS_HOOK_CALLS_PROGRAM_H

// A random program: what it holds, and the model of what that adds up to.
//
// Thread-safety: none; a program belongs to its thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <actswap/actswap.h>

enum { CALLS = 40, THINGS = 24, DEVICES = 2, THREADS_MAX = 8, KINDS = ACTSWAP_MEMORIES };

#define PAGE ((size_t)2 << 20)
#define NOT_GIVEN ((void *)(uintptr_t)0x7000)

// What a program holds.
enum what { NOTHING, MEMORY, HOST, REGISTERED, STREAM, POOL, HANDLE, RESERVED };

struct thing {
    enum what what;
    enum actswap_memory kind;
    int device;
    void *address;
    size_t bytes; // of memory: as counted
    size_t used_bytes; // of the device
    unsigned flags; // of a stream
    unsigned long long handle;
    struct piece *piece; // of a handle; of a reservation: what is mapped there
};

// Physical memory.
struct piece {
    size_t bytes;
    int device;
    unsigned uses; // handles and mappings
};

struct program {
    uint32_t state;
    uint64_t digest;
    bool alone; // no other thread
    struct thing things[THINGS];
    uint64_t taken[KINDS]; // the model
    int64_t used[DEVICES];
    char last[96]; // the call
};

// Of a program's chance: the same programs each time.
unsigned chance(struct program *program, unsigned below);
size_t some_bytes(struct program *program);

// A call and what it said; its result.
int note(struct program *program, const char *call, int result);

#define DO(program, call) note(program, #call, (int)(call))

// One that is held, or NULL.
struct thing *any(struct program *program, enum what what);

int now_device(void);
size_t pages(size_t bytes);

// The model.
void hold(struct program *program, struct thing *thing, enum what what,
          enum actswap_memory kind, void *address, size_t bytes);
void let_go(struct program *program, struct thing *thing);
void unuse(struct program *program, struct piece *piece);

// A call on each of these kinds (`thing` is NOTHING before).
void take_plain(struct program *program, struct thing *thing);
void take_rows(struct program *program, struct thing *thing);
void take_ordered(struct program *program, struct thing *thing);
void take_host(struct program *program, struct thing *thing);
void take_registered(struct program *program, struct thing *thing);
void make(struct program *program, struct thing *thing);
void give(struct program *program);
void give_host(struct program *program);
void unmake(struct program *program);

// The same of physical memory.
void create(struct program *program, struct thing *thing);
void reserve(struct program *program, struct thing *thing);
void retain(struct program *program, struct thing *thing);
void map(struct program *program);
void release(struct program *program);
void unmap(struct program *program);

#endif
