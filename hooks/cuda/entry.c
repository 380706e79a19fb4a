// SPDX-License-Identifier: Apache-2.0
//
// Who asks for a function of the driver by name gets ours where it is one that we stand
// before: compared by its address, as one name stands for several versions. All else,
// what the call returns and what it says of the symbol, is as the driver answered.
#include <stdint.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "core/export.h"
#include "cuda/runtime.h"
#include "hooks.h"

#undef cuGetProcAddress
#undef cudaGetDriverEntryPoint

#define CALLER __builtin_return_address(0)

// Declared nowhere under these names: what older programs ask for, and per-thread streams.
CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                          cuuint64_t flags);
cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
                                         unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *status);
cudaError_t
cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
                                      unsigned version, unsigned long long flags,
                                      enum cudaDriverEntryPointQueryResult *status);

typedef CUresult proc_fn(const char *symbol, void **function, int version,
                         cuuint64_t flags);
typedef CUresult proc_v2_fn(const char *symbol, void **function, int version,
                            cuuint64_t flags, CUdriverProcAddressQueryResult *status);
typedef cudaError_t entry_fn(const char *symbol, void **function,
                             unsigned long long flags,
                             enum cudaDriverEntryPointQueryResult *status);
typedef cudaError_t entry_version_fn(const char *symbol, void **function,
                                     unsigned version, unsigned long long flags,
                                     enum cudaDriverEntryPointQueryResult *status);

// Every hooked call of the driver.
#define DECLARE(api, name, parameters, ...) CUresult name parameters;
AS_DRIVER_CALLS(DECLARE)
#undef DECLARE

static const struct {
    enum as_hook hook;
    void (*ours)(void);
} routes[] = {
#define ROUTE(api, name, ...) {AS_HOOK_##name, (void (*)(void))(name)},
#define ROUTE_RUNTIME(name)
#define ROUTE_DRIVER(name) {AS_HOOK_##name, (void (*)(void))(name)},
#define ROUTE_OWN(api, name, what) ROUTE_##api(name)
    AS_DRIVER_CALLS(ROUTE) //
    AS_OWN_CALLS(ROUTE_OWN)};

// One name stands for several versions: each has another address.
static void route(const char *symbol, void **function, const void *caller)
{
    if (!function || !*function)
        return;
    for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
        if (strncmp(as_hook_name(routes[i].hook), symbol, strlen(symbol)) != 0 ||
            as_hook_real(routes[i].hook, caller) != *function)
            continue;
        *function = (void *)(uintptr_t)routes[i].ours;
        return;
    }
}

AS_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                       cuuint64_t flags,
                                       CUdriverProcAddressQueryResult *status)
{
    proc_v2_fn *real = (proc_v2_fn *)as_hook_real(AS_HOOK_cuGetProcAddress_v2, CALLER);

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    const bool outermost = as_hook_enter();
    const CUresult result = real(symbol, function, version, flags, status);
    as_hook_leave();
    if (outermost && result == CUDA_SUCCESS)
        route(symbol, function, CALLER);
    return result;
}

AS_EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                    cuuint64_t flags)
{
    proc_fn *real = (proc_fn *)as_hook_real(AS_HOOK_cuGetProcAddress, CALLER);

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    const bool outermost = as_hook_enter();
    const CUresult result = real(symbol, function, version, flags);
    as_hook_leave();
    if (outermost && result == CUDA_SUCCESS)
        route(symbol, function, CALLER);
    return result;
}

static cudaError_t entry(enum as_hook hook, const void *caller, const char *symbol,
                         void **function, unsigned long long flags,
                         enum cudaDriverEntryPointQueryResult *status)
{
    entry_fn *real = (entry_fn *)as_hook_real(hook, caller);

    if (!real)
        return cudaErrorInitializationError;
    const bool outermost = as_hook_enter();
    const cudaError_t result = real(symbol, function, flags, status);
    as_hook_leave();
    if (outermost && result == cudaSuccess)
        route(symbol, function, caller);
    return result;
}

AS_EXPORT cudaError_t
cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                        enum cudaDriverEntryPointQueryResult *status)
{
    return entry(AS_HOOK_cudaGetDriverEntryPoint, CALLER, symbol, function, flags,
                 status);
}

AS_EXPORT cudaError_t cudaGetDriverEntryPoint_ptsz(
    const char *symbol, void **function, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *status)
{
    return entry(AS_HOOK_cudaGetDriverEntryPoint_ptsz, CALLER, symbol, function, flags,
                 status);
}

struct wish {
    const char *symbol;
    unsigned version;
    unsigned long long flags;
};

static cudaError_t entry_by_version(enum as_hook hook, const void *caller,
                                    const struct wish *wish, void **function,
                                    enum cudaDriverEntryPointQueryResult *status)
{
    entry_version_fn *real = (entry_version_fn *)as_hook_real(hook, caller);

    if (!real)
        return cudaErrorInitializationError;
    const bool outermost = as_hook_enter();
    const cudaError_t result =
        real(wish->symbol, function, wish->version, wish->flags, status);
    as_hook_leave();
    if (outermost && result == cudaSuccess)
        route(wish->symbol, function, caller);
    return result;
}

AS_EXPORT cudaError_t cudaGetDriverEntryPointByVersion(
    const char *symbol, void **function, unsigned version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *status)
{
    return entry_by_version(AS_HOOK_cudaGetDriverEntryPointByVersion, CALLER,
                            &(struct wish){symbol, version, flags}, function, status);
}

AS_EXPORT cudaError_t cudaGetDriverEntryPointByVersion_ptsz(
    const char *symbol, void **function, unsigned version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *status)
{
    return entry_by_version(AS_HOOK_cudaGetDriverEntryPointByVersion_ptsz, CALLER,
                            &(struct wish){symbol, version, flags}, function, status);
}
