// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_MEMORY_H
#define AS_TRACK_MEMORY_H

// The kinds of memory that a program takes from the driver.
//
// Thread-safety: there is nothing but constants.

enum as_memory {
    AS_MEMORY_DEVICE,
    AS_MEMORY_PINNED, // host memory of the driver's
    AS_MEMORY_REGISTERED, // host memory of the program's, pinned in place
    AS_MEMORY_MANAGED, // moves between both
    AS_MEMORY_IMPORTED, // another process's device memory
    AS_MEMORY_GRAPH, // addresses of graphs, which have memory while they run
    AS_MEMORIES,
};

// As the report has it.
const char *as_memory_name(enum as_memory kind);

#endif
