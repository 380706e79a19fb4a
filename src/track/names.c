// SPDX-License-Identifier: Apache-2.0
#include <actswap/actswap.h>

#include "core/export.h"

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
        [ACTSWAP_KEPT_HELD] = "held by the program as well",
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

AS_EXPORT const char *actswap_memory_name(enum actswap_memory kind)
{
    static const char *const names[ACTSWAP_MEMORIES] = {
        [ACTSWAP_MEMORY_DEVICE] = "device",         [ACTSWAP_MEMORY_PINNED] = "pinned",
        [ACTSWAP_MEMORY_REGISTERED] = "registered", [ACTSWAP_MEMORY_MANAGED] = "managed",
        [ACTSWAP_MEMORY_IMPORTED] = "imported",     [ACTSWAP_MEMORY_GRAPH] = "graph",
    };

    return (unsigned)kind < ACTSWAP_MEMORIES ? names[kind] : "unknown";
}
