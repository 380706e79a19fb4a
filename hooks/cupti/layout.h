// SPDX-License-Identifier: Apache-2.0
#ifndef AS_HOOKS_CUPTI_LAYOUT_H
#define AS_HOOKS_CUPTI_LAYOUT_H

// Where the fields that are read stand in CUPTI's records, which grow at their end from
// version to version. scripts/check-records compares with the public headers.

// CUPTI's versions: 18 came with CUDA 12.0, from CUDA 13.0 on they are 130000 and more.
enum { AS_CUPTI_OLDEST = 18, AS_CUPTI_BEHIND = 140000 };

enum {
    AS_CUPTI_MEMCPY = 1,
    AS_CUPTI_DRIVER = 4,
    AS_CUPTI_RUNTIME = 5,
    AS_CUPTI_KERNEL = 10, // concurrent: it does not make kernels wait for each other
    AS_CUPTI_EXTERNAL = 39,
    AS_CUPTI_CUSTOM = 5, // a kind of external number that PyTorch does not use
    AS_CUPTI_IN = 1,
    AS_CUPTI_OUT = 2,
    AS_CUPTI_PINNED = 2,
};

// FIELD(record, name of ours, CUPTI's name, offset, bytes)
#define AS_CUPTI_FIELDS(FIELD)                                                           \
    FIELD(KERNEL, START, start, 16, 8)                                                   \
    FIELD(KERNEL, END, end, 24, 8)                                                       \
    FIELD(KERNEL, CALL, correlationId, 92, 4)                                            \
    FIELD(MEMCPY, WAY, copyKind, 4, 1)                                                   \
    FIELD(MEMCPY, FROM, srcKind, 5, 1)                                                   \
    FIELD(MEMCPY, TO, dstKind, 6, 1)                                                     \
    FIELD(MEMCPY, BYTES, bytes, 8, 8)                                                    \
    FIELD(MEMCPY, START, start, 16, 8)                                                   \
    FIELD(MEMCPY, END, end, 24, 8)                                                       \
    FIELD(EXTERNAL, KIND, externalKind, 4, 4)                                            \
    FIELD(EXTERNAL, ID, externalId, 8, 8)                                                \
    FIELD(EXTERNAL, CALL, correlationId, 16, 4)

#define AS_CUPTI_OFFSET(record, name, field, offset, bytes)                              \
    AS_CUPTI_##record##_##name = (offset),

enum { AS_CUPTI_FIELDS(AS_CUPTI_OFFSET) };

#endif
