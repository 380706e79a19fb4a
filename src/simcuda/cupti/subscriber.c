// SPDX-License-Identifier: Apache-2.0
#include "simcuda/cupti/subscriber.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "simcuda/cupti/enter.h"
#include "simcuda/cupti/names.h"
#include "simcuda/cupti/tracer.h"
#include "simcuda/runtime/trace.h"

enum { CALLBACKS = 4096, DOMAINS = CUPTI_CB_DOMAIN_SIZE };

struct CUpti_Subscriber_st {
    pthread_mutex_t lock;
    CUpti_CallbackFunc function; // NULL: nobody
    void *data;
    bool enabled[DOMAINS][CALLBACKS];
};

static struct CUpti_Subscriber_st only = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool sim_subscriber_is_there(void)
{
    pthread_mutex_lock(&only.lock);
    const bool there = only.function;

    pthread_mutex_unlock(&only.lock);
    return there;
}

void sim_subscriber_leave(void)
{
    pthread_mutex_lock(&only.lock);
    only.function = NULL;
    memset(only.enabled, 0, sizeof(only.enabled));
    pthread_mutex_unlock(&only.lock);
    sim_cupti_attach();
}

AS_EXPORT CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle *subscriber,
                                              CUpti_CallbackFunc callback, void *data)
{
    CUPTI_ENTER();
    if (!subscriber || !callback)
        return CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&only.lock);
    const bool taken = only.function;

    if (!taken) {
        only.function = callback;
        only.data = data;
    }
    pthread_mutex_unlock(&only.lock);
    if (taken)
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    *subscriber = &only;
    sim_cupti_attach();
    return CUPTI_SUCCESS;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    CUPTI_ENTER();
    if (subscriber != &only || !sim_subscriber_is_there())
        return CUPTI_ERROR_INVALID_PARAMETER;
    sim_subscriber_leave();
    return CUPTI_SUCCESS;
}

static CUptiResult enable(CUpti_SubscriberHandle subscriber, bool on,
                          CUpti_CallbackDomain domain, CUpti_CallbackId first,
                          size_t count)
{
    if (subscriber != &only || !sim_subscriber_is_there() || (int)domain <= 0 ||
        (int)domain >= DOMAINS || first + count > CALLBACKS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&only.lock);
    for (size_t i = 0; i < count; i++)
        only.enabled[domain][first + i] = on;
    pthread_mutex_unlock(&only.lock);
    return CUPTI_SUCCESS;
}

AS_EXPORT CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t on,
                                                   CUpti_SubscriberHandle subscriber,
                                                   CUpti_CallbackDomain domain,
                                                   CUpti_CallbackId cbid)
{
    CUPTI_ENTER();
    return enable(subscriber, on, domain, cbid, 1);
}

AS_EXPORT CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t on,
                                                 CUpti_SubscriberHandle subscriber,
                                                 CUpti_CallbackDomain domain)
{
    CUPTI_ENTER();
    return enable(subscriber, on, domain, 0, CALLBACKS);
}

// What it does for one call it may find again at the end of that.
static __thread uint64_t correlation_data;

void sim_subscriber_tell(const struct sim_traced_call *call, CUpti_ApiCallbackSite site)
{
    CUpti_CallbackDomain domain;
    const CUpti_CallbackId cbid = sim_cbid_of(call->name, &domain);
    const char *full = NULL;

    pthread_mutex_lock(&only.lock);
    const CUpti_CallbackFunc function =
        cbid && only.enabled[domain][cbid] ? only.function : NULL;
    void *const data = only.data;

    pthread_mutex_unlock(&only.lock);
    if (!function)
        return;
    if (site == CUPTI_API_ENTER)
        correlation_data = 0;
    (void)cuptiGetCallbackName(domain, cbid, &full);

    cudaError_t result = call->result;
    const CUpti_CallbackData about = {
        .callbackSite = site,
        .functionName = full,
        .functionReturnValue = &result,
        .contextUid = sim_cupti_context(call->device),
        .correlationData = &correlation_data,
        .correlationId = call->correlation,
    };

    function(data, domain, cbid, &about);
}
