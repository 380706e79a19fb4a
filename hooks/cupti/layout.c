// SPDX-License-Identifier: Apache-2.0
//
// Compiled by scripts/check-records against the headers of each CUDA: no program's part.
#include <cupti_activity.h>
#include <cupti_version.h>
#include <stddef.h>

#include "layout.h"

#define SAME(record, name, field, offset, bytes)                                         \
    _Static_assert(offsetof(AS_CUPTI_##record##_RECORD, field) == (offset),              \
                   #record "." #field);                                                  \
    _Static_assert(sizeof(((AS_CUPTI_##record##_RECORD *)0)->field) == (bytes),          \
                   #record "." #field);

AS_CUPTI_FIELDS(SAME)

_Static_assert(CUPTI_API_VERSION >= AS_CUPTI_OLDEST, "oldest");
_Static_assert(CUPTI_API_VERSION < AS_CUPTI_BEHIND, "newest");
_Static_assert((int)CUPTI_ACTIVITY_KIND_MEMCPY == AS_CUPTI_MEMCPY, "kind");
_Static_assert((int)CUPTI_ACTIVITY_KIND_DRIVER == AS_CUPTI_DRIVER, "kind");
_Static_assert((int)CUPTI_ACTIVITY_KIND_RUNTIME == AS_CUPTI_RUNTIME, "kind");
_Static_assert((int)CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL == AS_CUPTI_KERNEL, "kind");
_Static_assert((int)CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION == AS_CUPTI_EXTERNAL,
               "kind");
_Static_assert((int)CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 == AS_CUPTI_CUSTOM, "kind");
_Static_assert((int)CUPTI_ACTIVITY_MEMCPY_KIND_HTOD == AS_CUPTI_IN, "way");
_Static_assert((int)CUPTI_ACTIVITY_MEMCPY_KIND_DTOH == AS_CUPTI_OUT, "way");
_Static_assert((int)CUPTI_ACTIVITY_MEMORY_KIND_PINNED == AS_CUPTI_PINNED, "memory");
