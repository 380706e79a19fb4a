// SPDX-License-Identifier: Apache-2.0
#include "cuda/runtime.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "cuda/object.h"

// Which library a symbol belongs to, by the longest prefix that fits.
static const struct {
    const char *symbol, *library;
} homes[] = {
    {"cuda", "libcudart.so"}, {"__cuda", "libcudart.so"},
    {"sim_", "libcudart.so"}, // there only if the runtime is simcuda's
    {"cupti", "libcupti.so"}, {"cu", "libcuda.so"},
};

static const char *library_of(const char *symbol)
{
    for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++)
        if (strncmp(symbol, homes[i].symbol, strlen(homes[i].symbol)) == 0)
            return homes[i].library;
    return NULL;
}

static void *not_ours(void *address)
{
    return address && as_object_same(address, (const void *)(uintptr_t)as_cuda_find)
               ? NULL
               : address;
}

static void *find_in(const char *name, const char *symbol)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    void *address = not_ours(dlsym(handle, symbol));
    dlclose(handle); // the count goes back to what it was; the object stays loaded
    return address;
}

// With two majors of the runtime in a process the next symbol is always the first one's.
// True if `next` is one major's own and the caller asks for another.
static bool other_major(const void *next, const char *library, const char *needed)
{
    char soname[AS_OBJECT_NAME];
    return as_object_soname(next, soname) &&
           strncmp(soname, library, strlen(library)) == 0 && strcmp(soname, needed) != 0;
}

void *as_cuda_find(const char *symbol, const void *caller)
{
    const char *library = library_of(symbol);
    if (!library)
        return NULL;
    char needed[AS_OBJECT_NAME];
    bool needs = caller && as_object_needs(caller, library, needed);
    void *next = not_ours(dlsym(RTLD_NEXT, symbol));
    if (next && !(needs && other_major(next, library, needed)))
        return next; // perhaps another preloaded tool's, which must stay in the chain
    void *own = needs ? find_in(needed, symbol) : NULL;
    if (own || next)
        return own ? own : next;
    char loaded[AS_OBJECT_NAME];
    return as_object_find(library, loaded) ? find_in(loaded, symbol) : NULL;
}

// --- Calls of our own

// A missing entry is looked up again at the next call: the runtime may be loaded later.
static void *own(void **place, const char *symbol)
{
    void *address = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!address) {
        address = as_cuda_find(symbol, NULL);
        __atomic_store_n(place, address, __ATOMIC_RELEASE);
    }
    return address;
}

static pthread_mutex_t refused_lock = PTHREAD_MUTEX_INITIALIZER;
static struct as_refused refused[AS_REFUSED_MAX];

// Not that something is not done yet, is not there, or that the process ends.
static bool is_refusal(cudaError_t result)
{
    return result != cudaSuccess && result != cudaErrorNotReady &&
           result != cudaErrorNotSupported && result != cudaErrorCudartUnloading;
}

static void note_refusal(const char *function, cudaError_t result)
{
    pthread_mutex_lock(&refused_lock);
    for (size_t i = 0; i < AS_REFUSED_MAX; i++) {
        struct as_refused *entry = &refused[i];
        if (entry->count && strcmp(entry->function, function) != 0)
            continue;
        if (!entry->count)
            *entry = (struct as_refused){.function = function, .error = (int)result};
        entry->count++;
        break;
    }
    pthread_mutex_unlock(&refused_lock);
}

void as_cuda_refused(struct as_refused found[AS_REFUSED_MAX])
{
    pthread_mutex_lock(&refused_lock);
    memcpy(found, refused, sizeof(refused));
    pthread_mutex_unlock(&refused_lock);
}

// What fails here is ours alone: it must not show up in the user's next
// cudaGetLastError(), where PyTorch looks after each kernel launch.
static int settle(const char *function, cudaError_t result)
{
    static void *place;
    if (is_refusal(result))
        note_refusal(function, result);
    cudaError_t (*last)(void) =
        result == cudaSuccess ? NULL : own(&place, "cudaGetLastError");
    if (last)
        last();
    return (int)result;
}

// Looks up the function once and calls it.
#define OWN(symbol, ...)                                                                 \
    do {                                                                                 \
        static void *place_;                                                             \
        __typeof__(&symbol) call_ = (__typeof__(&symbol))own(&place_, #symbol);          \
        return call_ ? settle(#symbol, call_(__VA_ARGS__)) : (int)cudaErrorNotSupported; \
    } while (0)

int as_cuda_stream_create(void **stream)
{
    OWN(cudaStreamCreateWithFlags, (cudaStream_t *)stream, cudaStreamNonBlocking);
}

int as_cuda_stream_destroy(void *stream)
{
    OWN(cudaStreamDestroy, stream);
}

int as_cuda_stream_wait(void *stream, void *event)
{
    OWN(cudaStreamWaitEvent, stream, event, 0);
}

int as_cuda_stream_synchronize(void *stream)
{
    OWN(cudaStreamSynchronize, stream);
}

int as_cuda_stream_query(void *stream)
{
    OWN(cudaStreamQuery, stream);
}

static int capture_status(void *stream, enum cudaStreamCaptureStatus *status)
{
    OWN(cudaStreamIsCapturing, stream, status);
}

int as_cuda_stream_capturing(void *stream, int *capturing)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    int err = capture_status(stream, &status);
    *capturing = status != cudaStreamCaptureStatusNone;
    return err;
}

static int exchange_mode(enum cudaStreamCaptureMode *mode)
{
    OWN(cudaThreadExchangeStreamCaptureMode, mode);
}

static_assert(AS_CUDA_RELAXED == (int)cudaStreamCaptureModeRelaxed, "CUDA's own");

int as_cuda_capture_mode(int *mode)
{
    enum cudaStreamCaptureMode now = (enum cudaStreamCaptureMode) * mode;
    int err = exchange_mode(&now);
    *mode = (int)now;
    return err;
}

int as_cuda_event_create(void **event)
{
    OWN(cudaEventCreateWithFlags, (cudaEvent_t *)event,
        cudaEventDisableTiming | cudaEventBlockingSync);
}

int as_cuda_event_destroy(void *event)
{
    OWN(cudaEventDestroy, event);
}

int as_cuda_event_record(void *event, void *stream)
{
    OWN(cudaEventRecord, event, stream);
}

int as_cuda_event_query(void *event)
{
    OWN(cudaEventQuery, event);
}

int as_cuda_event_synchronize(void *event)
{
    OWN(cudaEventSynchronize, event);
}

int as_cuda_copy_out(void *host, const void *device, size_t bytes, void *stream)
{
    OWN(cudaMemcpyAsync, host, device, bytes, cudaMemcpyDeviceToHost, stream);
}

int as_cuda_copy_in(void *device, const void *host, size_t bytes, void *stream)
{
    OWN(cudaMemcpyAsync, device, host, bytes, cudaMemcpyHostToDevice, stream);
}

int as_cuda_copy_now(void *device, const void *host, size_t bytes)
{
    OWN(cudaMemcpy, device, host, bytes, cudaMemcpyHostToDevice);
}

int as_cuda_host_alloc(void **host, size_t bytes)
{
    OWN(cudaHostAlloc, host, bytes, cudaHostAllocDefault);
}

int as_cuda_host_free(void *host)
{
    OWN(cudaFreeHost, host);
}

int as_cuda_memory(size_t *free_bytes, size_t *total_bytes)
{
    OWN(cudaMemGetInfo, free_bytes, total_bytes);
}

int as_cuda_device_get(int *device)
{
    OWN(cudaGetDevice, device);
}

int as_cuda_device_set(int device)
{
    OWN(cudaSetDevice, device);
}

static int attribute_of(int *value, enum cudaDeviceAttr attribute, int device)
{
    OWN(cudaDeviceGetAttribute, value, attribute, device);
}

bool as_cuda_shares_memory(int device)
{
    static const enum cudaDeviceAttr signs[] = {
        cudaDevAttrIntegrated, cudaDevAttrPageableMemoryAccessUsesHostPageTables};
    int value = 0;
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (attribute_of(&value, signs[i], device) == 0 && value)
            return true;
    return false;
}

static int pool_of(cudaMemPool_t *pool, int device)
{
    OWN(cudaDeviceGetMemPool, pool, device);
}

static int pool_attribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                          uint64_t *value)
{
    OWN(cudaMemPoolGetAttribute, pool, attribute, value);
}

size_t as_cuda_pool_spare(void *pool)
{
    cudaMemPool_t from = pool;
    uint64_t reserved, used;
    int device;

    if ((!from && (as_cuda_device_get(&device) || pool_of(&from, device))) ||
        pool_attribute(from, cudaMemPoolAttrReservedMemCurrent, &reserved) ||
        pool_attribute(from, cudaMemPoolAttrUsedMemCurrent, &used))
        return 0;
    return reserved > used ? reserved - used : 0;
}

// The structure grew over the releases, always behind the name.
static int properties(void *room, int device)
{
    OWN(cudaGetDeviceProperties, room, device);
}

int as_cuda_device_name(int device, char *name, size_t name_bytes)
{
    union {
        struct cudaDeviceProp properties;
        char room[4096];
    } all;
    memset(&all, 0, sizeof(all));
    int err = properties(&all, device);
    if (!err)
        snprintf(name, name_bytes, "%s", all.properties.name);
    return err;
}

// As src/simcuda/simcuda.h has it, which only its own parts include.
enum { SIM_AUTO = 1, SIM_VALUES };
enum { SIM_KNOWN = 3 };

// A function of the simulated runtime, looked up once: also that there is none is known from
// the moment that there is a runtime.
static void *simulator(void **place, const char *symbol)
{
    static char nothing;
    void *address = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!address) {
        address = as_cuda_find(symbol, NULL);
        if (!address && as_cuda_find("cudaMalloc", NULL))
            address = &nothing;
        __atomic_store_n(place, address, __ATOMIC_RELEASE);
    }
    return address == &nothing ? NULL : address;
}

// The mode, SIM_VALUES on a real device: all is computed there.
static int compute_mode(void)
{
    static void *place;
    int (*mode)(void) = (int (*)(void))simulator(&place, "sim_compute");
    return mode ? mode() : SIM_VALUES;
}

bool as_cuda_skips_bytes(void)
{
    return compute_mode() != SIM_VALUES;
}

bool as_cuda_computed(const void *address, size_t bytes)
{
    static void *place;
    int (*get)(const void *, size_t) =
        (int (*)(const void *, size_t))simulator(&place, "sim_values_get");
    return !get || compute_mode() != SIM_AUTO || get(address, bytes) == SIM_KNOWN;
}

struct as_missed as_cuda_missed(void)
{
    struct as_missed missed = {0};
    void (*get)(struct as_missed *) =
        (void (*)(struct as_missed *))as_cuda_find("sim_missed_get", NULL);
    if (get)
        get(&missed);
    return missed;
}

struct as_races as_cuda_races(void)
{
    struct as_races races = {0};
    void (*get)(struct as_races *) =
        (void (*)(struct as_races *))as_cuda_find("sim_races_get", NULL);
    if (get)
        get(&races);
    return races;
}

const char *as_cuda_race(unsigned which)
{
    const char *(*said)(unsigned) =
        (const char *(*)(unsigned))as_cuda_find("sim_race_said", NULL);

    return said ? said(which) : NULL;
}

struct as_times as_cuda_times(void)
{
    struct as_times times = {0};
    void (*get)(int, struct as_times *) =
        (void (*)(int, struct as_times *))as_cuda_find("sim_times_get", NULL);
    if (get)
        get(-1, &times);
    return times;
}
