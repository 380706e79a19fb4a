// SPDX-License-Identifier: Apache-2.0
#include "simcuda/runtime/values.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "simcuda/runtime/ranges.h"

// What differs from `usual`: disjoint ranges, each of one kind.
struct book {
    struct sim_ranges ranges;
    enum sim_values usual;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct book device = {.usual = SIM_UNKNOWN};
static struct book host = {.usual = SIM_KNOWN};
static struct book awaited = {.usual = SIM_KNOWN}; // SIM_UNKNOWN until the copy has run

static atomic_ulong missed_unknown, missed_assumed, missed_refused, missed_forgotten;
static atomic_bool always_lost;
static __thread struct sim_element element = {.bytes = 1};

static enum sim_values least(enum sim_values a, enum sim_values b)
{
    return a < b ? a : b;
}

static enum sim_values read_book(const struct book *book, uintptr_t start, size_t bytes)
{
    const uintptr_t end = start + bytes;
    enum sim_values values = SIM_KNOWN;

    for (uintptr_t at = start; at < end;) {
        const struct sim_range *range = sim_ranges_from(&book->ranges, at);

        if (!range || range->start > at)
            values = least(values, book->usual);
        if (!range || range->start >= end)
            break;
        values = least(values, (enum sim_values)range->kind);
        at = range->start + range->bytes;
    }
    return values;
}

static void enter(struct book *book, uintptr_t start, uintptr_t end, unsigned kind)
{
    struct sim_range *range =
        end > start ? sim_ranges_insert(&book->ranges, start, end - start) : NULL;

    if (range)
        range->kind = kind;
    else if (end > start)
        sim_fail("no memory for the books of values");
}

static void cut_out(struct book *book, uintptr_t start, uintptr_t end)
{
    for (;;) {
        struct sim_range *range = sim_ranges_from(&book->ranges, start);

        if (!range || range->start >= end)
            return;

        const struct sim_range was = *range;

        sim_ranges_remove(&book->ranges, range);
        enter(book, was.start, start, was.kind);
        enter(book, end, was.start + was.bytes, was.kind);
    }
}

static void write_book(struct book *book, uintptr_t start, size_t bytes,
                       enum sim_values values)
{
    uintptr_t end = start + bytes;
    struct sim_range *range = sim_ranges_find(&book->ranges, start);

    if (!bytes ||
        (range && range->kind == (unsigned)values && range->start + range->bytes >= end))
        return;
    cut_out(book, start, end);
    if (values == book->usual)
        return;
    range = sim_ranges_find(&book->ranges, start - 1);
    if (range && range->kind == (unsigned)values) {
        start = range->start;
        sim_ranges_remove(&book->ranges, range);
    }
    range = sim_ranges_find(&book->ranges, end);
    if (range && range->kind == (unsigned)values) {
        end = range->start + range->bytes;
        sim_ranges_remove(&book->ranges, range);
    }
    enter(book, start, end, values);
}

static enum sim_values get(struct book *book, const void *address, size_t bytes)
{
    if (sim_compute() != SIM_AUTO)
        return sim_compute() == SIM_VALUES ? SIM_KNOWN : SIM_UNKNOWN;
    pthread_mutex_lock(&lock);
    const enum sim_values values = read_book(book, (uintptr_t)address, bytes);
    pthread_mutex_unlock(&lock);
    return values;
}

static void set(struct book *book, const void *address, size_t bytes,
                enum sim_values values)
{
    if (sim_compute() != SIM_AUTO)
        return;
    pthread_mutex_lock(&lock);
    write_book(book, (uintptr_t)address, bytes, values);
    pthread_mutex_unlock(&lock);
}

enum sim_values sim_values_get(const void *address, size_t bytes)
{
    return get(&device, address, bytes);
}

void sim_values_set(const void *address, size_t bytes, enum sim_values values)
{
    set(&device, address, bytes, values);
}

enum sim_values sim_values_get_host(const void *address, size_t bytes)
{
    return get(&host, address, bytes);
}

void sim_values_set_host(const void *address, size_t bytes, enum sim_values values)
{
    set(&host, address, bytes, values);
    set(&awaited, address, bytes, values);
}

void sim_values_landed_host(const void *address, size_t bytes)
{
    set(&awaited, address, bytes, SIM_KNOWN);
}

bool sim_values_awaited_host(const void *address, size_t bytes)
{
    return get(&awaited, address, bytes) == SIM_UNKNOWN;
}

void sim_values_lose(const struct sim_lost *lost)
{
    if (sim_compute() != SIM_AUTO)
        return;
    if (lost->all) {
        missed_forgotten++;
        set(&device, NULL, SIZE_MAX, SIM_UNKNOWN);
    }
    for (size_t i = 0; i < lost->count; i++) {
        const struct sim_access *access = &lost->accesses[i];

        if (access->write && sim_is_device(access->address))
            sim_values_set(access->address, access->bytes, SIM_UNKNOWN);
        else if (access->write)
            sim_values_set_host(access->address, access->bytes, SIM_UNKNOWN);
    }
}

void sim_values_lose_always(void)
{
    always_lost = true;
    sim_values_lose(&(struct sim_lost){.all = true});
}

bool sim_values_always_lost(void)
{
    return always_lost;
}

// Of bytes between a tensor's own nothing new is known.
static void write_access(const struct sim_access *access, enum sim_values values)
{
    const uintptr_t start = (uintptr_t)access->address;

    if (access->gaps)
        values = least(values, read_book(&device, start, access->bytes));
    write_book(&device, start, access->bytes, values);
}

bool sim_values_pass(const struct sim_work *work, const struct sim_access *accesses,
                     size_t count, bool captured)
{
    static const enum sim_values left[] = {
        [SIM_ASSUMES_NOTHING] = SIM_KNOWN,
        [SIM_ASSUMES_LIKELY] = SIM_LIKELY,
        [SIM_ASSUMES_ANSWER] = SIM_ASSUMED,
    };
    enum sim_values values = left[work->assumes];

    if (sim_compute() != SIM_AUTO)
        return true;
    if (!work->run || captured)
        values = SIM_UNKNOWN;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && values != SIM_UNKNOWN; i++)
        if (!accesses[i].unread)
            values = least(values, read_book(&device, (uintptr_t)accesses[i].address,
                                             accesses[i].bytes));
    for (size_t i = 0; i < count; i++)
        if (accesses[i].write)
            write_access(&accesses[i], values);
    pthread_mutex_unlock(&lock);
    return values != SIM_UNKNOWN;
}

void sim_element_set(const struct sim_element *moved)
{
    element = moved ? *moved : (struct sim_element){.bytes = 1};
}

const struct sim_element *sim_element_get(void)
{
    return &element;
}

void sim_missed_read(enum sim_values values)
{
    if (values == SIM_UNKNOWN)
        missed_unknown++;
    else if (values != SIM_KNOWN)
        missed_assumed++;
}

void sim_missed_refuse(void)
{
    missed_refused++;
}

void sim_missed_get(struct sim_missed *missed)
{
    *missed = (struct sim_missed){missed_unknown, missed_assumed, missed_refused,
                                  missed_forgotten};
}
