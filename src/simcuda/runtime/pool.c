// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/pool.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "simcuda/check/check.h"
#include "simcuda/order/graph.h"
#include "simcuda/order/queue.h"
#include "simcuda/runtime/device.h"
#include "simcuda/runtime/memory.h"
#include "simcuda/simcuda.h"

// The first ones are the devices' own. A handle is the address of its place.
static struct pool {
    int device;
    bool made, destroyed;
    uint64_t release_threshold;
    size_t bytes, peak_bytes;
} pools[SIM_POOLS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *currents[SIM_DEVICES_MAX]; // NULL: its own

void sim_pool_gave(unsigned pool, size_t bytes)
{
    struct pool *const from = &pools[pool];

    pthread_mutex_lock(&lock);
    from->bytes += bytes;
    if (from->bytes > from->peak_bytes)
        from->peak_bytes = from->bytes;
    pthread_mutex_unlock(&lock);
}

// With the lock held.
static void end(struct pool *pool)
{
    if (pool->destroyed && !pool->bytes)
        *pool = (struct pool){0};
}

void sim_pool_got(unsigned pool, size_t bytes)
{
    pthread_mutex_lock(&lock);
    pools[pool].bytes -= bytes;
    end(&pools[pool]);
    pthread_mutex_unlock(&lock);
}

static struct pool *own(int device)
{
    pools[device].device = device;
    return &pools[device];
}

static struct pool *find(cudaMemPool_t handle)
{
    const uintptr_t offset = (uintptr_t)handle - (uintptr_t)pools;
    struct pool *const pool = (struct pool *)(void *)handle;

    if (offset >= sizeof(pools) || offset % sizeof(pools[0]))
        return NULL;
    if (pool < pools + SIM_DEVICES_MAX)
        return sim_device((int)(pool - pools)) ? own((int)(pool - pools)) : NULL;
    return pool->made && !pool->destroyed ? pool : NULL;
}

static cudaMemPool_t handle_of(const struct pool *pool)
{
    return (cudaMemPool_t)(void *)(uintptr_t)pool; // NOLINT(performance-no-int-to-ptr)
}

static struct pool *current(int device)
{
    struct pool *const pool = __atomic_load_n(&currents[device], __ATOMIC_ACQUIRE);

    return pool ? pool : own(device);
}

static cudaError_t give_pool(cudaMemPool_t *handle, int device,
                             struct pool *(*which)(int device))
{
    if (!sim_device(device))
        return sim_error(cudaErrorInvalidDevice);
    if (!handle)
        return sim_error(cudaErrorInvalidValue);
    *handle = handle_of(which(device));
    return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    SIM_ENTER();
    return give_pool(pool, device, own);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    SIM_ENTER();
    return give_pool(pool, device, current);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t handle)
{
    SIM_ENTER();
    struct pool *const pool = find(handle);

    if (!sim_device(device))
        return sim_error(cudaErrorInvalidDevice);
    if (!pool || pool->device != device)
        return sim_error(cudaErrorInvalidValue);
    __atomic_store_n(&currents[device], pool, __ATOMIC_RELEASE);
    return cudaSuccess;
}

// Only memory of this process's devices: nothing is shared or kept on the host.
static bool is_makeable(const struct cudaMemPoolProps *wanted)
{
    return wanted->allocType == cudaMemAllocationTypePinned &&
           wanted->handleTypes == cudaMemHandleTypeNone &&
           wanted->location.type == cudaMemLocationTypeDevice &&
           sim_device(wanted->location.id);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *handle,
                              const struct cudaMemPoolProps *wanted)
{
    SIM_ENTER();
    struct pool *pool = pools + SIM_DEVICES_MAX;

    if (!handle || !wanted || !is_makeable(wanted))
        return sim_error(cudaErrorInvalidValue);
    pthread_mutex_lock(&lock);
    while (pool < pools + SIM_POOLS_MAX && pool->made)
        pool++;
    const bool found = pool < pools + SIM_POOLS_MAX;
    if (found)
        *pool = (struct pool){.device = wanted->location.id, .made = true};
    pthread_mutex_unlock(&lock);
    if (!found)
        return sim_error(cudaErrorMemoryAllocation);
    *handle = handle_of(pool);
    return cudaSuccess;
}

// What it gave stays until it is freed.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle)
{
    SIM_ENTER();
    struct pool *const pool = find(handle);

    if (!pool || pool < pools + SIM_DEVICES_MAX)
        return sim_error(cudaErrorInvalidValue);
    struct pool *expected = pool;
    __atomic_compare_exchange_n(&currents[pool->device], &expected, NULL, false,
                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    pthread_mutex_lock(&lock);
    pool->destroyed = true;
    end(pool);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                                    void *value)
{
    SIM_ENTER();
    const struct pool *const pool = find(handle);
    uint64_t number = 0;

    if (!pool || !value)
        return sim_error(cudaErrorInvalidValue);
    pthread_mutex_lock(&lock);
    const struct pool now = *pool;
    pthread_mutex_unlock(&lock);
    switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
        number = now.release_threshold;
        break;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
        number = now.peak_bytes;
        break;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
        number = now.bytes;
        break;
    default:
        return sim_error(cudaErrorInvalidValue);
    }
    memcpy(value, &number, sizeof(number));
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                                    void *value)
{
    SIM_ENTER();
    struct pool *const pool = find(handle);

    if (!pool || !value)
        return sim_error(cudaErrorInvalidValue);
    pthread_mutex_lock(&lock);
    if (attribute == cudaMemPoolAttrReleaseThreshold)
        memcpy(&pool->release_threshold, value, sizeof(uint64_t));
    if (attribute == cudaMemPoolAttrReservedMemHigh ||
        attribute == cudaMemPoolAttrUsedMemHigh)
        pool->peak_bytes = pool->bytes;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool,
                                 const struct cudaMemAccessDesc *accesses, size_t count)
{
    SIM_ENTER();
    if (!find(pool) || (count && !accesses))
        return sim_error(cudaErrorInvalidValue);
    return cudaSuccess;
}

// Every device of the simulator may use every other's memory.
cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location)
{
    SIM_ENTER();
    if (!flags || !find(pool) || !location ||
        location->type != cudaMemLocationTypeDevice || !sim_device(location->id))
        return sim_error(cudaErrorInvalidValue);
    *flags = cudaMemAccessFlagsProtReadWrite;
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
    SIM_ENTER();
    (void)keep_bytes;
    return find(pool) ? cudaSuccess : sim_error(cudaErrorInvalidValue);
}

// --- Memory in the order of a stream

// Memory is there at once, but who uses it must come after this.
static cudaError_t note_taken(const void *address, size_t bytes, cudaStream_t stream)
{
    const struct sim_access taken = {
        .address = address, .bytes = bytes, .write = true, .unread = true};
    const struct sim_task task = {
        .name = "cudaMallocAsync", .line = sim_check_line(), .lost = {&taken, 1, false}};

    return sim_check() ? sim_queue_submit(stream, &task) : cudaSuccess;
}

// `pool` NULL: the current one of the stream's device.
static cudaError_t give_ordered(struct pool *pool, void **address, size_t bytes,
                                cudaStream_t stream)
{
    int device;
    cudaError_t error = sim_stream_get(stream, &device, NULL, NULL);

    if (!error)
        error = sim_capture_refuse_on(stream);
    if (error || !bytes)
        return error ? error : cudaErrorInvalidValue;
    if (!pool)
        pool = current(device);
    sim_device_activate();
    const unsigned number = (unsigned)(pool - pools) + 1;
    error = sim_memory_take(sim_device(pool->device), address, bytes, number);
    if (error == cudaErrorMemoryAllocation) {
        // The pool waits for frees that are still queued before it gives up.
        error = sim_queue_synchronize_device(pool->device);
        if (!error)
            error = sim_memory_take(sim_device(pool->device), address, bytes, number);
    }
    return error ? error : note_taken(*address, bytes, stream);
}

cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream)
{
    SIM_ENTER();
    if (!address)
        return sim_error(cudaErrorInvalidValue);
    *address = NULL;
    return sim_error(give_ordered(NULL, address, bytes, stream));
}

cudaError_t cudaMallocFromPoolAsync(void **address, size_t bytes, cudaMemPool_t handle,
                                    cudaStream_t stream)
{
    SIM_ENTER();
    struct pool *const pool = find(handle);

    if (!address || !pool)
        return sim_error(cudaErrorInvalidValue);
    *address = NULL;
    return sim_error(give_ordered(pool, address, bytes, stream));
}

static void give_queued(void *address)
{
    if (sim_memory_give(address))
        sim_fail("cudaFreeAsync: %p was freed before its turn on the stream", address);
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
    SIM_ENTER();
    if (!address)
        return cudaSuccess;

    const struct sim_location location = sim_memory_locate(address);

    cudaError_t error = sim_stream_get(stream, NULL, NULL, NULL);

    if (!error)
        error = sim_capture_refuse_on(stream);
    if (!error)
        error = sim_memory_end(address);
    if (error)
        return sim_error(error);

    const struct sim_access freed = {
        .address = address, .bytes = location.bytes_after, .write = true, .unread = true};
    error = sim_queue_submit(stream, &(struct sim_task){
                                         .name = "cudaFreeAsync",
                                         .line = sim_check_line(),
                                         .run = give_queued,
                                         .arg = address,
                                         .uncapturable = true,
                                         .lost = {&freed, 1, false},
                                     });

    if (!error)
        sim_check_block(address, location.bytes_after, false);
    return sim_error(error);
}
