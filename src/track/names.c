// SPDX-License-Identifier: Apache-2.0
#include <actswap/actswap.h>

#include "core/export.h"
#include "track/memory.h"

AS_EXPORT const char *actswap_reason_name(enum actswap_reason reason)
{
    static const char *const names[ACTSWAP_KEPT_REASONS] = {
        [ACTSWAP_KEPT_NOT] = "not kept",
        [ACTSWAP_KEPT_POLICY] = "the policy does not offload here",
        [ACTSWAP_KEPT_SMALL] = "small",
        [ACTSWAP_KEPT_PART] = "a small part of its storage",
        [ACTSWAP_KEPT_OLD] = "older than this forward",
        [ACTSWAP_KEPT_UNKNOWN] = "address not known",
        [ACTSWAP_KEPT_CAPTURE] = "a stream capture is in progress",
        [ACTSWAP_KEPT_HOST_FULL] = "no pinned memory left",
        [ACTSWAP_KEPT_TAIL] = "needed again at once",
        [ACTSWAP_KEPT_KIND] = "not a plain device tensor",
        [ACTSWAP_KEPT_BACKWARD] = "saved while a backward runs",
        [ACTSWAP_KEPT_DETACHED] = "no framework attached",
        [ACTSWAP_KEPT_DEVICE] = "the device refused",
        [ACTSWAP_KEPT_INSIDE] = "not at a block's boundary",
        [ACTSWAP_KEPT_BUDGET] = "within the budget",
        [ACTSWAP_KEPT_COHERENT] = "the device shares its memory with the host",
        [ACTSWAP_KEPT_DISK] = "no pinned memory left, nor on the disk",
    };

    return (unsigned)reason < ACTSWAP_KEPT_REASONS ? names[reason] : "unknown";
}

AS_EXPORT const char *actswap_category_name(enum actswap_category category)
{
    static const char *const names[ACTSWAP_CATEGORIES] = {
        [ACTSWAP_UNKNOWN] = "unknown",
        [ACTSWAP_PARAMETER] = "parameter",
        [ACTSWAP_GRADIENT] = "gradient",
        [ACTSWAP_OPTIMIZER_STATE] = "optimizer_state",
        [ACTSWAP_ACTIVATION] = "activation",
        [ACTSWAP_INPUT] = "input",
        [ACTSWAP_TEMPORARY] = "temporary",
        [ACTSWAP_WORKSPACE] = "workspace",
        [ACTSWAP_CACHED] = "cached",
        [ACTSWAP_CONTEXT] = "context",
        [ACTSWAP_COMM] = "comm",
    };

    return (unsigned)category < ACTSWAP_CATEGORIES ? names[category] : "unknown";
}

const char *as_memory_name(enum as_memory kind)
{
    static const char *const names[AS_MEMORIES] = {
        [AS_MEMORY_DEVICE] = "device",         [AS_MEMORY_PINNED] = "pinned",
        [AS_MEMORY_REGISTERED] = "registered", [AS_MEMORY_MANAGED] = "managed",
        [AS_MEMORY_IMPORTED] = "imported",     [AS_MEMORY_GRAPH] = "graph",
    };

    return names[kind];
}
