// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/memory.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "simcuda/check/check.h"
#include "simcuda/order/queue.h"
#include "simcuda/runtime/pool.h"
#include "simcuda/runtime/ranges.h"
#include "simcuda/runtime/values.h"
#include "simcuda/runtime/virtual.h"
#include "simcuda/simcuda.h"

// Addresses are not memory: with twice as many, a hole of the right size is found as
// long as enough memory is free in all, as on a card that remaps pages.
#define ARENA_FACTOR 2

struct book {
    pthread_mutex_t lock;
    struct sim_ranges ranges;
    size_t committed_bytes; // besides those of `ranges`
    char *arena;
    size_t arena_bytes;
};

static struct book books[SIM_DEVICES_MAX] = {
    [0 ... SIM_DEVICES_MAX - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

// Called with the book's lock held.
static bool reserve(struct book *book, const struct sim_device *device)
{
    if (book->arena)
        return true;

    const size_t bytes =
        round_up(device->gpu->total_bytes, SIM_PAGE_BYTES) * ARENA_FACTOR;
    char *base = mmap(NULL, bytes + SIM_PAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (base == MAP_FAILED)
        return false;

    char *arena =
        base + (SIM_PAGE_BYTES - (uintptr_t)base % SIM_PAGE_BYTES) % SIM_PAGE_BYTES;

    // A forked child has no device, and a core file no use for its memory.
    madvise(arena, bytes, MADV_DONTFORK);
    madvise(arena, bytes, MADV_DONTDUMP);
    if (!sim_ranges_add_free(&book->ranges, (uintptr_t)arena, bytes)) {
        munmap(base, bytes + SIM_PAGE_BYTES);
        return false;
    }
    book->arena_bytes = bytes;
    // Readers do not lock: the size must be there first.
    __atomic_store_n(&book->arena, arena, __ATOMIC_RELEASE);
    return true;
}

void *sim_arena(int device, size_t *bytes)
{
    // Also a process that calls no CUDA may ask.
    (void)sim_compute();
    if (!sim_device(device))
        return NULL;

    struct book *book = &books[device];

    pthread_mutex_lock(&book->lock);
    const bool there = reserve(book, sim_device(device));
    pthread_mutex_unlock(&book->lock);
    if (bytes)
        *bytes = there ? book->arena_bytes : 0;
    return there ? book->arena : NULL;
}

// The device whose arena holds the address, or -1.
static int device_of(const void *address)
{
    for (int i = 0; i < sim_device_count(); i++) {
        const char *arena = __atomic_load_n(&books[i].arena, __ATOMIC_ACQUIRE);

        if (arena && (uintptr_t)address - (uintptr_t)arena < books[i].arena_bytes)
            return i;
    }
    return -1;
}

bool sim_is_device(const void *address)
{
    struct sim_location location;

    return device_of(address) >= 0 || sim_virtual_locate(address, &location);
}

// With the book's lock held.
static size_t free_bytes_of(const struct sim_device *device)
{
    const struct book *book = &books[device->index];

    return device->gpu->total_bytes - device->gpu->context_bytes -
           book->ranges.used_bytes - book->committed_bytes;
}

bool sim_memory_commit(struct sim_device *device, size_t bytes)
{
    struct book *book = &books[device->index];

    pthread_mutex_lock(&book->lock);
    const bool fits = bytes <= free_bytes_of(device);

    if (fits)
        book->committed_bytes += bytes;
    pthread_mutex_unlock(&book->lock);
    return fits;
}

void sim_memory_uncommit(struct sim_device *device, size_t bytes)
{
    struct book *book = &books[device->index];

    pthread_mutex_lock(&book->lock);
    book->committed_bytes -= bytes;
    pthread_mutex_unlock(&book->lock);
}

cudaError_t sim_memory_take(struct sim_device *device, void **address, size_t bytes,
                            unsigned pool)
{
    struct book *book = &books[device->index];
    const size_t whole = round_up(bytes, SIM_PAGE_BYTES);
    struct sim_range *range = NULL;

    if (whole < bytes)
        return cudaErrorMemoryAllocation;
    pthread_mutex_lock(&book->lock);
    if (reserve(book, device) && whole <= free_bytes_of(device))
        range = sim_ranges_take(&book->ranges, whole);
    if (range) {
        range->asked_bytes = bytes;
        range->kind = pool;
        range->ending = false;
        *address = (void *)range->start; // NOLINT(performance-no-int-to-ptr)
    }
    pthread_mutex_unlock(&book->lock);
    if (range)
        sim_check_allocated(*address, whole);
    if (range && pool)
        sim_pool_gave(pool - 1, whole);
    return range ? cudaSuccess : cudaErrorMemoryAllocation;
}

// What begins at the address, with its book locked; NULL: nothing does.
static struct sim_range *lock_range(const void *address, struct book **book)
{
    const int device = device_of(address);

    if (device < 0)
        return NULL;
    *book = &books[device];
    pthread_mutex_lock(&(*book)->lock);

    struct sim_range *range = sim_ranges_find(&(*book)->ranges, (uintptr_t)address);

    if (range && range->start == (uintptr_t)address)
        return range;
    pthread_mutex_unlock(&(*book)->lock);
    return NULL;
}

cudaError_t sim_memory_end(const void *address)
{
    struct book *book;
    struct sim_range *range = lock_range(address, &book);

    if (!range)
        return cudaErrorInvalidValue;

    const bool ours = !range->ending;

    range->ending = true;
    pthread_mutex_unlock(&book->lock);
    return ours ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t sim_memory_give(void *address)
{
    struct book *book;
    struct sim_range *range = lock_range(address, &book);

    if (!range)
        return cudaErrorInvalidValue;

    const size_t bytes = range->bytes;
    const unsigned pool = range->kind;

    madvise(address, bytes, MADV_DONTNEED);
    sim_values_set(address, bytes, SIM_UNKNOWN);
    sim_ranges_give(&book->ranges, range);
    pthread_mutex_unlock(&book->lock);
    sim_check_block(address, bytes, false);
    if (pool)
        sim_pool_got(pool - 1, bytes);
    return cudaSuccess;
}

void sim_memory_reset(const struct sim_device *device)
{
    struct book *book = &books[device->index];
    uintptr_t at = (uintptr_t)book->arena;
    struct sim_range *range;

    do {
        pthread_mutex_lock(&book->lock);
        range = sim_ranges_from(&book->ranges, at);
        const bool used = range && range->used;
        void *const start = range ? (void *)range->start : NULL; // NOLINT
        at = range ? range->start + range->bytes : at;
        pthread_mutex_unlock(&book->lock);
        if (used)
            sim_memory_give(start);
    } while (range);
}

// Device memory only; false: elsewhere.
static bool locate_device(const void *address, struct sim_location *location)
{
    const int device = device_of(address);

    if (device < 0)
        return sim_virtual_locate(address, location);
    *location = (struct sim_location){.place = SIM_DEVICE, .device = device};

    struct book *book = &books[device];

    pthread_mutex_lock(&book->lock);
    const struct sim_range *range = sim_ranges_find(&book->ranges, (uintptr_t)address);

    if (range) {
        location->bytes_before = (uintptr_t)address - range->start;
        location->bytes_after = range->bytes - location->bytes_before;
    }
    pthread_mutex_unlock(&book->lock);
    return true;
}

// Pinned, registered and managed memory.
static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_ranges host_ranges;

struct sim_location sim_memory_locate(const void *address)
{
    struct sim_location location = {.place = SIM_PAGEABLE};

    if (locate_device(address, &location))
        return location;
    pthread_mutex_lock(&host_lock);
    const struct sim_range *range = sim_ranges_find(&host_ranges, (uintptr_t)address);

    if (range) {
        location.place = (enum sim_place)range->kind;
        location.bytes_after = range->bytes - ((uintptr_t)address - range->start);
    }
    pthread_mutex_unlock(&host_lock);
    return location;
}

static cudaError_t host_take(void **address, size_t bytes, enum sim_place place)
{
    if (!address)
        return cudaErrorInvalidValue;
    *address = NULL;
    if (!bytes)
        return cudaSuccess;

    const size_t whole = round_up(bytes, 4096);
    void *memory = whole < bytes
                       ? MAP_FAILED
                       : mmap(NULL, whole, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    pthread_mutex_lock(&host_lock);
    struct sim_range *range = sim_ranges_insert(&host_ranges, (uintptr_t)memory, whole);

    if (range)
        range->kind = place;
    pthread_mutex_unlock(&host_lock);
    if (!range) {
        munmap(memory, whole);
        return cudaErrorMemoryAllocation;
    }
    *address = memory;
    return cudaSuccess;
}

// Takes an entry of the kind, starting at the address, out of the table; its size, or 0.
static size_t host_remove(const void *address, enum sim_place place)
{
    size_t bytes = 0;

    pthread_mutex_lock(&host_lock);
    struct sim_range *range = sim_ranges_find(&host_ranges, (uintptr_t)address);

    if (range && range->start == (uintptr_t)address && range->kind == place) {
        bytes = range->bytes;
        sim_ranges_remove(&host_ranges, range);
    }
    pthread_mutex_unlock(&host_lock);
    return bytes;
}

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    SIM_ENTER_UNSAFE();
    if (!address)
        return sim_error(cudaErrorInvalidValue);
    *address = NULL;
    struct sim_device *device = sim_device_activate();

    return bytes ? sim_error(sim_memory_take(device, address, bytes, 0)) : cudaSuccess;
}

// Rows begin where every way of access may begin: cudaDeviceProp.memPitch and the Best
// Practices Guide have 512 on every card so far.
#define PITCH_BYTES ((size_t)512)

static cudaError_t take_rows(void **address, size_t *pitch, size_t width, size_t rows)
{
    size_t bytes;

    *address = NULL;
    *pitch = round_up(width, PITCH_BYTES);
    if (!width || !rows)
        return cudaSuccess;
    if (*pitch < width || __builtin_mul_overflow(*pitch, rows, &bytes))
        return cudaErrorMemoryAllocation;
    return sim_memory_take(sim_device_activate(), address, bytes, 0);
}

cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
    SIM_ENTER_UNSAFE();
    if (!address || !pitch)
        return sim_error(cudaErrorInvalidValue);
    return sim_error(take_rows(address, pitch, width, height));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
    SIM_ENTER_UNSAFE();
    size_t rows;

    if (!pitched)
        return sim_error(cudaErrorInvalidValue);
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
        return sim_error(cudaErrorMemoryAllocation);
    pitched->xsize = extent.width;
    pitched->ysize = extent.height;
    return sim_error(take_rows(&pitched->ptr, &pitched->pitch, extent.width, rows));
}

cudaError_t cudaFree(void *address)
{
    SIM_ENTER_UNSAFE();
    sim_device_activate();
    if (!address)
        return cudaSuccess;

    const struct sim_location location = sim_memory_locate(address);
    const int device =
        location.place == SIM_DEVICE ? location.device : sim_device_current()->index;
    cudaError_t error = sim_queue_synchronize_device(device);

    if (error)
        return sim_error(error);
    if (location.place == SIM_MANAGED) {
        const size_t bytes = host_remove(address, SIM_MANAGED);

        if (!bytes)
            return sim_error(cudaErrorInvalidValue);
        munmap(address, bytes);
        return cudaSuccess;
    }
    return sim_error(sim_memory_give(address));
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    SIM_ENTER();
    const struct sim_device *device = sim_device_activate();
    struct book *book = &books[device->index];

    if (!free_bytes || !total_bytes)
        return sim_error(cudaErrorInvalidValue);
    pthread_mutex_lock(&book->lock);
    *free_bytes = free_bytes_of(device);
    pthread_mutex_unlock(&book->lock);
    *total_bytes = device->gpu->total_bytes;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    SIM_ENTER_UNSAFE();
    const unsigned known =
        cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;

    if (flags & ~known)
        return sim_error(cudaErrorInvalidValue);
    sim_device_activate();
    return sim_error(host_take(address, bytes, SIM_PINNED));
}

cudaError_t cudaMallocHost(void **address, size_t bytes)
{
    SIM_ENTER_UNSAFE();
    sim_device_activate();
    return sim_error(host_take(address, bytes, SIM_PINNED));
}

cudaError_t cudaFreeHost(void *address)
{
    SIM_ENTER_UNSAFE();
    if (!address)
        return cudaSuccess;
    if (sim_memory_locate(address).place != SIM_PINNED)
        return sim_error(cudaErrorInvalidValue);

    // A queued copy may still read or write it; the real call waits, too.
    cudaError_t error = sim_queue_synchronize_all();
    const size_t bytes = error ? 0 : host_remove(address, SIM_PINNED);

    if (!bytes)
        return sim_error(error ? error : cudaErrorInvalidValue);
    sim_values_set_host(address, bytes, SIM_KNOWN);
    sim_check_forget(address, bytes);
    munmap(address, bytes);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned int flags)
{
    SIM_ENTER_UNSAFE();
    (void)flags;
    if (!address || !bytes || sim_is_device(address))
        return sim_error(cudaErrorInvalidValue);
    sim_device_activate();
    pthread_mutex_lock(&host_lock);
    struct sim_range *range = sim_ranges_insert(&host_ranges, (uintptr_t)address, bytes);

    if (range)
        range->kind = SIM_REGISTERED;
    pthread_mutex_unlock(&host_lock);
    return sim_error(range ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void *address)
{
    SIM_ENTER_UNSAFE();
    if (sim_memory_locate(address).place != SIM_REGISTERED)
        return sim_error(cudaErrorHostMemoryNotRegistered);

    cudaError_t error = sim_queue_synchronize_all();

    if (error)
        return sim_error(error);
    return sim_error(host_remove(address, SIM_REGISTERED)
                         ? cudaSuccess
                         : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *address, unsigned int flags)
{
    SIM_ENTER();
    const enum sim_place place = sim_memory_locate(address).place;

    if (!device || flags || (place != SIM_PINNED && place != SIM_REGISTERED))
        return sim_error(cudaErrorInvalidValue);
    *device = address;
    return cudaSuccess;
}

cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned int flags)
{
    SIM_ENTER_UNSAFE();
    if (!bytes || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return sim_error(cudaErrorInvalidValue);
    sim_device_activate();
    return sim_error(host_take(address, bytes, SIM_MANAGED));
}

// Managed memory is host memory: there is nowhere to move it.
cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes,
                                 struct cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream)
{
    SIM_ENTER();
    (void)location, (void)stream;
    if (!address || !bytes || flags)
        return sim_error(cudaErrorInvalidValue);
    return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void *address, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    SIM_ENTER();
    (void)advice, (void)location;
    if (!address || !bytes)
        return sim_error(cudaErrorInvalidValue);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *address)
{
    SIM_ENTER();
    static const enum cudaMemoryType types[] = {
        [SIM_PAGEABLE] = cudaMemoryTypeUnregistered,
        [SIM_PINNED] = cudaMemoryTypeHost,
        [SIM_REGISTERED] = cudaMemoryTypeHost,
        [SIM_MANAGED] = cudaMemoryTypeManaged,
        [SIM_DEVICE] = cudaMemoryTypeDevice,
    };

    if (!attributes)
        return sim_error(cudaErrorInvalidValue);

    const struct sim_location location = sim_memory_locate(address);
    void *pointer = (void *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)

    memset(attributes, 0, sizeof(*attributes));
    if (location.place == SIM_PAGEABLE ||
        (location.place == SIM_DEVICE && !location.bytes_after)) {
        attributes->type = cudaMemoryTypeUnregistered;
        attributes->device = cudaInvalidDeviceId;
        attributes->hostPointer = location.place == SIM_DEVICE ? NULL : pointer;
        return cudaSuccess;
    }
    attributes->type = types[location.place];
    attributes->device =
        location.place == SIM_DEVICE ? location.device : sim_device_current()->index;
    attributes->devicePointer = pointer;
    attributes->hostPointer = location.place == SIM_DEVICE ? NULL : pointer;
    return cudaSuccess;
}
