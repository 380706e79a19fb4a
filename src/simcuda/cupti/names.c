// SPDX-License-Identifier: Apache-2.0
#include "simcuda/cupti/names.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/export.h"

#define RESULT(error)                                                                    \
    {                                                                                    \
        error, #error                                                                    \
    }

static const struct row {
    CUpti_CallbackDomain domain;
    CUpti_CallbackId number;
    const char *name, *full;
} rows[] = {
#define ROW(domain, number, name, full)                                                  \
    {CUPTI_CB_DOMAIN_##domain##_API, number, name, full},
#include "cbids.inc"
#undef ROW
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const struct {
    CUptiResult result;
    const char *name;
} results[] = {
    RESULT(CUPTI_SUCCESS),
    RESULT(CUPTI_ERROR_INVALID_PARAMETER),
    RESULT(CUPTI_ERROR_INVALID_OPERATION),
    RESULT(CUPTI_ERROR_OUT_OF_MEMORY),
    RESULT(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT),
    RESULT(CUPTI_ERROR_MAX_LIMIT_REACHED),
    RESULT(CUPTI_ERROR_NOT_INITIALIZED),
    RESULT(CUPTI_ERROR_QUEUE_EMPTY),
    RESULT(CUPTI_ERROR_INVALID_KIND),
    RESULT(CUPTI_ERROR_NOT_SUPPORTED),
    RESULT(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES),
    RESULT(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED),
    RESULT(CUPTI_ERROR_UNKNOWN),
};

static CUpti_CallbackDomain domain_of(const char *function)
{
    return strncmp(function, "cuda", 4) ? CUPTI_CB_DOMAIN_DRIVER_API
                                        : CUPTI_CB_DOMAIN_RUNTIME_API;
}

// The headers have neither the runtime's calls first nor both sorted as one, so each
// domain is.
CUpti_CallbackId sim_cbid_of(const char *function, CUpti_CallbackDomain *domain)
{
    size_t low = 0, high = ROWS;

    *domain = domain_of(function);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct row *const row = &rows[middle];
        const int compared = row->domain != *domain
                                 ? (row->domain == CUPTI_CB_DOMAIN_RUNTIME_API ? -1 : 1)
                                 : strcmp(row->name, function);

        if (!compared)
            return row->number;
        if (compared < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

// --- Names that stay

enum { CHAINS = 1024 };

struct kept {
    struct kept *next;
    char text[];
};

const char *sim_name_keep(const char *name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct kept *chains[CHAINS];
    uint32_t hash = 2166136261u; // FNV-1a
    struct kept *at;

    for (const char *byte = name; *byte; byte++)
        hash = (hash ^ (unsigned char)*byte) * 16777619u;
    pthread_mutex_lock(&lock);
    for (at = chains[hash % CHAINS]; at && strcmp(at->text, name) != 0;)
        at = at->next;
    if (!at) {
        const size_t bytes = strlen(name) + 1;

        at = malloc(sizeof(*at) + bytes);
        if (at) {
            memcpy(at->text, name, bytes);
            at->next = chains[hash % CHAINS];
            chains[hash % CHAINS] = at;
        }
    }
    pthread_mutex_unlock(&lock);
    return at ? at->text : "";
}

// --- The public functions

AS_EXPORT CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain,
                                                    uint32_t cbid, const char **name)
{
    if (!name)
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].domain == domain && rows[i].number == cbid) {
            *name = rows[i].full;
            return CUPTI_SUCCESS;
        }
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **text)
{
    if (!text)
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        if (results[i].result == result) {
            *text = results[i].name;
            return CUPTI_SUCCESS;
        }
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}
