// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/virtual.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "simcuda/order/handles.h"
#include "simcuda/order/queue.h"
#include "simcuda/runtime/missing.h"
#include "simcuda/runtime/ranges.h"
#include "simcuda/runtime/values.h"
#include "simcuda/simcuda.h"

struct piece {
    int device;
    size_t bytes;
    unsigned holds; // of the program
    char *mapped; // where, or NULL
    bool used; // has been mapped
    sim_physical handle;
    struct piece *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_handles handles = {.tag = 0};
static struct piece *pieces;
static struct sim_ranges reserved;
static struct sim_ranges mapped; // neighbours of one device joined; `kind` is the device
static atomic_bool any; // reserved: without one, nothing is looked up

static uintptr_t number(const void *address)
{
    return (uintptr_t)address;
}

static bool whole(const void *address, size_t bytes)
{
    return bytes && !(bytes % SIM_PAGE_BYTES) && !(number(address) % SIM_PAGE_BYTES);
}

cudaError_t sim_virtual_reserve(void **address, size_t bytes)
{
    SIM_ENTER();
    const size_t more = bytes + SIM_PAGE_BYTES;

    if (!address || !whole(NULL, bytes) || more < bytes)
        return cudaErrorInvalidValue;
    char *const base = mmap(NULL, more, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (base == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    const size_t before =
        (SIM_PAGE_BYTES - number(base) % SIM_PAGE_BYTES) % SIM_PAGE_BYTES;
    char *const start = base + before;

    if (before)
        munmap(base, before);
    munmap(start + bytes, SIM_PAGE_BYTES - before);
    madvise(start, bytes, MADV_DONTFORK);
    madvise(start, bytes, MADV_DONTDUMP);
    pthread_mutex_lock(&lock);
    const bool entered = sim_ranges_insert(&reserved, number(start), bytes);
    pthread_mutex_unlock(&lock);
    if (!entered) {
        munmap(start, bytes);
        return cudaErrorMemoryAllocation;
    }
    atomic_store(&any, true);
    *address = start;
    return cudaSuccess;
}

// With the lock held.
static bool is_mapped(const char *address, size_t bytes)
{
    for (const struct piece *piece = pieces; piece; piece = piece->next)
        if (piece->mapped && piece->mapped < address + bytes &&
            address < piece->mapped + piece->bytes)
            return true;
    return false;
}

cudaError_t sim_virtual_unreserve(void *address, size_t bytes)
{
    SIM_ENTER();
    // Queued work may still go to where something was mapped.
    const cudaError_t waited = sim_queue_synchronize_all();

    if (waited)
        return waited;
    pthread_mutex_lock(&lock);
    struct sim_range *const range = sim_ranges_find(&reserved, number(address));
    const bool ours = range && range->start == number(address) && range->bytes == bytes &&
                      !is_mapped(address, bytes);

    if (ours) {
        sim_ranges_remove(&reserved, range);
        munmap(address, bytes);
    }
    pthread_mutex_unlock(&lock);
    return ours ? cudaSuccess : cudaErrorInvalidValue;
}

// With the lock held.
static struct piece *find(sim_physical handle)
{
    return sim_handles_find(&handles, (void *)(uintptr_t)handle);
}

cudaError_t sim_virtual_create(sim_physical *handle, int device, size_t bytes)
{
    SIM_ENTER();
    struct sim_device *const on = sim_device(device);

    if (!handle || !on || !whole(NULL, bytes))
        return on ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
    struct piece *const piece = calloc(1, sizeof(*piece));

    if (!piece || !sim_memory_commit(on, bytes)) {
        free(piece);
        return cudaErrorMemoryAllocation;
    }
    piece->device = device;
    piece->bytes = bytes;
    piece->holds = 1;
    pthread_mutex_lock(&lock);
    piece->handle = number(sim_handles_add(&handles, piece));
    piece->next = pieces;
    if (piece->handle)
        pieces = piece;
    pthread_mutex_unlock(&lock);
    *handle = piece->handle;
    if (piece->handle)
        return cudaSuccess;
    sim_memory_uncommit(on, bytes);
    free(piece);
    return cudaErrorMemoryAllocation;
}

// With the lock held: ends the piece if nobody needs it any more.
static void drop(struct piece *piece)
{
    struct piece **place = &pieces;

    if (piece->holds || piece->mapped)
        return;
    while (*place != piece)
        place = &(*place)->next;
    *place = piece->next;
    sim_handles_remove(&handles, (void *)(uintptr_t)piece->handle);
    sim_memory_uncommit(sim_device(piece->device), piece->bytes);
    free(piece);
}

cudaError_t sim_virtual_release(sim_physical handle)
{
    SIM_ENTER();
    pthread_mutex_lock(&lock);
    struct piece *const piece = find(handle);
    const bool held = piece && piece->holds;

    if (held) {
        piece->holds--;
        drop(piece);
    }
    pthread_mutex_unlock(&lock);
    return held ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t sim_virtual_device(sim_physical handle, int *device)
{
    pthread_mutex_lock(&lock);
    const struct piece *const piece = find(handle);

    if (piece)
        *device = piece->device;
    pthread_mutex_unlock(&lock);
    return piece ? cudaSuccess : cudaErrorInvalidValue;
}

// The two below with the lock held. Memory for a range is not found: the process ends,
// as the table would be wrong from there on.
static void enter(uintptr_t start, uintptr_t end, int device)
{
    struct sim_range *range = sim_ranges_find(&mapped, start - 1);

    if (range && range->kind == (unsigned)device) {
        start = range->start;
        sim_ranges_remove(&mapped, range);
    }
    range = sim_ranges_find(&mapped, end);
    if (range && range->kind == (unsigned)device) {
        end = range->start + range->bytes;
        sim_ranges_remove(&mapped, range);
    }
    range = sim_ranges_insert(&mapped, start, end - start);
    if (!range)
        sim_fail("no memory for the table of mappings");
    range->kind = (unsigned)device;
}

static void cut(uintptr_t start, uintptr_t end)
{
    struct sim_range *const range = sim_ranges_find(&mapped, start);
    const struct sim_range was = *range;

    sim_ranges_remove(&mapped, range);
    if (was.start < start)
        enter(was.start, start, (int)was.kind);
    if (end < was.start + was.bytes)
        enter(end, was.start + was.bytes, (int)was.kind);
}

cudaError_t sim_virtual_map(void *address, size_t bytes, sim_physical handle)
{
    SIM_ENTER();
    static atomic_flag said = ATOMIC_FLAG_INIT;
    cudaError_t error = cudaErrorInvalidValue;

    pthread_mutex_lock(&lock);
    struct piece *const piece = find(handle);
    const struct sim_range *const range = sim_ranges_find(&reserved, number(address));
    const bool fits = piece && range && piece->bytes == bytes && whole(address, bytes) &&
                      number(address) + bytes <= range->start + range->bytes &&
                      !is_mapped(address, bytes);

    if (fits && piece->used)
        error = cudaErrorNotSupported;
    else if (fits) {
        piece->mapped = address;
        piece->used = true;
        enter(number(address), number(address) + bytes, piece->device);
        error = cudaSuccess;
    }
    pthread_mutex_unlock(&lock);
    if (error == cudaErrorNotSupported)
        return sim_missing("cuMemMap of memory that was mapped before", &said);
    return error;
}

static bool inside(const struct piece *piece, const char *address, size_t bytes)
{
    return piece->mapped && piece->mapped >= address &&
           piece->mapped + piece->bytes <= address + bytes;
}

// With the lock held.
static void take_off(struct piece *piece)
{
    cut(number(piece->mapped), number(piece->mapped) + piece->bytes);
    madvise(piece->mapped, piece->bytes, MADV_DONTNEED);
    sim_values_set(piece->mapped, piece->bytes, SIM_UNKNOWN);
    piece->mapped = NULL;
}

cudaError_t sim_virtual_unmap(void *address, size_t bytes)
{
    SIM_ENTER();
    size_t found = 0;

    pthread_mutex_lock(&lock);
    for (const struct piece *piece = pieces; piece; piece = piece->next)
        found += inside(piece, address, bytes) ? piece->bytes : 0;
    for (struct piece *piece = pieces, *next; found == bytes && piece; piece = next) {
        next = piece->next;
        if (!inside(piece, address, bytes))
            continue;
        take_off(piece);
        drop(piece);
    }
    pthread_mutex_unlock(&lock);
    return found && found == bytes ? cudaSuccess : cudaErrorInvalidValue;
}

void sim_virtual_reset(int device)
{
    pthread_mutex_lock(&lock);
    for (struct piece *piece = pieces, *next; piece; piece = next) {
        next = piece->next;
        if (piece->device != device)
            continue;
        if (piece->mapped)
            take_off(piece);
        piece->holds = 0;
        drop(piece);
    }
    pthread_mutex_unlock(&lock);
}

cudaError_t sim_virtual_retain(sim_physical *handle, const void *address)
{
    SIM_ENTER();
    struct piece *piece;

    if (!handle)
        return cudaErrorInvalidValue;
    pthread_mutex_lock(&lock);
    for (piece = pieces; piece; piece = piece->next)
        if (piece->mapped && number(address) - number(piece->mapped) < piece->bytes)
            break;
    if (piece) {
        piece->holds++;
        *handle = piece->handle;
    }
    pthread_mutex_unlock(&lock);
    return piece ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t sim_virtual_extent(const void *address, void **start, size_t *bytes)
{
    const struct sim_location location = sim_memory_locate(address);

    if (location.place != SIM_DEVICE || !location.bytes_after)
        return cudaErrorInvalidValue;
    if (start)
        // NOLINTNEXTLINE(performance-no-int-to-ptr)
        *start = (void *)(number(address) - location.bytes_before);
    if (bytes)
        *bytes = location.bytes_before + location.bytes_after;
    return cudaSuccess;
}

bool sim_virtual_locate(const void *address, struct sim_location *location)
{
    if (!atomic_load(&any))
        return false;
    pthread_mutex_lock(&lock);
    const bool ours = sim_ranges_find(&reserved, number(address));
    const struct sim_range *const range = sim_ranges_find(&mapped, number(address));

    if (ours)
        *location = (struct sim_location){.place = SIM_DEVICE};
    if (range) {
        location->device = (int)range->kind;
        location->bytes_before = number(address) - range->start;
        location->bytes_after = range->bytes - location->bytes_before;
    }
    pthread_mutex_unlock(&lock);
    return ours;
}
