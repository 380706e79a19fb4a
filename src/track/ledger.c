// SPDX-License-Identifier: Apache-2.0
#include "track/ledger.h"

#include <errno.h>
#include <string.h>

#include "core/clock.h"
#include "track/books.h"

struct as_ledger *as_ledger_create(void)
{
    struct as_ledger *ledger = aligned_alloc(_Alignof(struct as_ledger), sizeof(*ledger));
    if (!ledger)
        return NULL;

    memset(ledger, 0, sizeof(*ledger));
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        pthread_mutex_init(&ledger->devices[i].lock, NULL);
        ledger->devices[i].next_generation = 1;
    }
    return ledger;
}

static void finish_books(struct as_books *books)
{
    as_index_finish(&books->index);
    free(books->timeline);
    free(books->tally);
}

void as_ledger_destroy(struct as_ledger *ledger)
{
    if (!ledger)
        return;
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        finish_books(&ledger->devices[i]);
        pthread_mutex_destroy(&ledger->devices[i].lock);
    }
    free(ledger);
}

struct as_node *as_books_hold(struct as_ledger *ledger, int *device, const void *address,
                              struct as_books **books)
{
    const int last = *device < 0 ? AS_LEDGER_DEVICES - 1 : *device;

    for (int i = *device < 0 ? 0 : *device; i <= last && i < AS_LEDGER_DEVICES; i++) {
        *books = &ledger->devices[i];
        pthread_mutex_lock(&(*books)->lock);
        struct as_node *node = as_index_find(&(*books)->index, (uintptr_t)address);

        if (node) {
            *device = i;
            return node;
        }
        pthread_mutex_unlock(&(*books)->lock);
    }
    return NULL;
}

// --- Events

static struct as_sample level_of(const struct as_ledger *ledger,
                                 const struct as_books *books, uint64_t now_ns)
{
    struct as_sample level = {
        .t_ns = now_ns,
        .generation = books->next_generation,
        .total_bytes = books->totals.live_bytes,
        .reserved_bytes = books->totals.reserved_bytes,
        .step = (uint32_t)ledger->step,
        .phase = (uint8_t)as_ledger_phase(ledger),
    };

    for (int i = 0; i < ACTSWAP_CATEGORIES; i++)
        level.bytes[i] = books->live[i].bytes;
    return level;
}

// Before each event: the time until now was as it was.
static uint64_t reach(struct as_ledger *ledger, struct as_books *books)
{
    const uint64_t now_ns = as_clock_ns();

    if (!books->tally)
        books->tally = calloc(1, sizeof(*books->tally));
    if (!books->timeline) {
        books->timeline = malloc(sizeof(*books->timeline));
        if (!books->timeline)
            return now_ns;
        as_timeline_start(books->timeline, now_ns);
    }
    if (now_ns >= as_timeline_end(books->timeline)) {
        const struct as_sample level = level_of(ledger, books, now_ns);

        as_timeline_reach(books->timeline, &level);
    }
    return now_ns;
}

static void set_reserved(struct as_books *books, size_t reserved_bytes)
{
    struct as_ledger_totals *totals = &books->totals;

    totals->reserved_bytes =
        reserved_bytes == AS_LEDGER_ALL_LIVE ? totals->live_bytes : reserved_bytes;
    if (totals->reserved_bytes > totals->peak_reserved_bytes)
        totals->peak_reserved_bytes = totals->reserved_bytes;
    if (totals->reserved_bytes > totals->step_peak_reserved_bytes)
        totals->step_peak_reserved_bytes = totals->reserved_bytes;
}

static void take_moment(const struct as_books *books, struct as_moment *moment)
{
    moment->generation = books->next_generation;
    memcpy(moment->shares, books->live, sizeof(moment->shares));
}

// After a new peak was noted.
static void hold_against_budget(const struct as_ledger *ledger, struct as_books *books)
{
    const struct as_ledger_totals *totals = &books->totals;
    const uint64_t budget =
        atomic_load_explicit(&ledger->budget_bytes, memory_order_relaxed);

    if (!budget || books->exceeded || totals->peak_bytes <= budget)
        return;
    books->exceeded = true;
    books->excess = (struct as_excess){
        .step = totals->peak_step,
        .phase = (enum as_phase)totals->peak_phase,
        .block = books->peak_block,
    };
}

static void note_peak(struct as_ledger *ledger, struct as_books *books, uint64_t now_ns)
{
    struct as_ledger_totals *totals = &books->totals;

    for (int i = 0; i < AS_SWINGS; i++)
        if (totals->live_bytes > books->swing_bytes[i])
            books->swing_bytes[i] = totals->live_bytes;
    if (totals->live_bytes > totals->step_peak_bytes) {
        totals->step_peak_bytes = totals->live_bytes;
        totals->step_peak_phase = (int)as_ledger_phase(ledger);
    }
    if (totals->live_bytes > totals->peak_bytes) {
        if (totals->peak_step != ledger->step || !books->before.generation)
            books->before = books->start;
        totals->peak_bytes = totals->live_bytes;
        totals->reserved_at_peak_bytes = totals->reserved_bytes;
        totals->peak_step = ledger->step;
        totals->peak_phase = (int)as_ledger_phase(ledger);
        books->peak_ns = now_ns;
        books->peak_block = as_place_now();
        books->after.generation = 0;
        take_moment(books, &books->peak);
        hold_against_budget(ledger, books);
    }
    if (books->timeline && as_timeline_lacks(books->timeline, totals->live_bytes)) {
        const struct as_sample level = level_of(ledger, books, now_ns);

        as_timeline_note(books->timeline, &level);
    }
}

static void count_live(struct as_books *books, size_t bytes)
{
    books->totals.allocations++;
    books->totals.live_bytes += bytes;
    books->live[ACTSWAP_UNKNOWN].bytes += bytes;
    books->live[ACTSWAP_UNKNOWN].count++;
}

static void note_stream(struct as_books *books, void *stream, uint64_t generation)
{
    struct as_used_stream *streams = books->streams;
    uint32_t at = 0;

    while (at < books->stream_count && streams[at].stream != stream)
        at++;
    if (at == books->stream_count) {
        if (books->stream_count < AS_LEDGER_STREAMS)
            books->stream_count++;
        else
            at--; // the one unused for longest makes room
    }
    memmove(streams + 1, streams, at * sizeof(*streams));
    streams[0] = (struct as_used_stream){stream, generation};
}

// The block is no longer alive; its node is the caller's.
static void end_block(struct as_books *books, struct as_node *node, enum as_phase phase)
{
    struct as_ledger_totals *totals = &books->totals;

    as_books_end(books, node, phase);
    as_books_tally(books, node);
    struct as_share *share = &books->live[node->category];
    share->bytes -= node->bytes;
    share->inferred_bytes -= node->inferred ? node->bytes : 0;
    share->count--;
    if (node->category == ACTSWAP_UNKNOWN)
        books->unnamed_bytes[node->phase] -= node->bytes;
    totals->frees++;
    totals->live_bytes -= node->bytes;
    if (node->expected)
        totals->released_bytes += node->bytes;
}

void as_ledger_add(struct as_ledger *ledger, int device, const void *address,
                   size_t bytes, size_t reserved_bytes, void *stream)
{
    if (device < 0 || device >= AS_LEDGER_DEVICES || !bytes)
        return;

    struct as_books *books = &ledger->devices[device];
    const enum as_phase phase = as_ledger_phase(ledger);
    pthread_mutex_lock(&books->lock);
    const uint64_t now_ns = reach(ledger, books);
    struct as_node *node = as_index_take(&books->index, (uintptr_t)address);
    if (node) {
        if (node->bytes)
            end_block(books, node, phase);
        *node = (struct as_node){
            .address = (uintptr_t)address,
            .bytes = bytes,
            .generation = books->next_generation,
            .stream = stream,
            .phase = (uint8_t)phase,
            .block = as_place_now(),
        };
        note_stream(books, stream, node->generation);
        atomic_store_explicit(&books->next_generation, node->generation + 1,
                              memory_order_relaxed);
        books->unnamed_bytes[phase] += bytes;
        count_live(books, bytes);
    } else {
        books->totals.untracked++;
    }
    set_reserved(books, reserved_bytes);
    note_peak(ledger, books, now_ns);
    pthread_mutex_unlock(&books->lock);
}

// Under the lock.
static bool remove_block(struct as_ledger *ledger, struct as_books *books,
                         const void *address, uint64_t generation)
{
    struct as_node *node = as_index_at(&books->index, (uintptr_t)address);
    if (!node || (generation && node->generation != generation))
        return false;

    reach(ledger, books);
    end_block(books, node, as_ledger_phase(ledger));
    as_index_remove(&books->index, node);
    return true;
}

bool as_ledger_remove(struct as_ledger *ledger, int device, const void *address,
                      uint64_t generation, size_t reserved_bytes)
{
    if (device >= AS_LEDGER_DEVICES)
        return false;

    const int first = device < 0 ? 0 : device;
    const int last = device < 0 ? AS_LEDGER_DEVICES - 1 : device;
    bool found = false;
    for (int i = first; i <= last && !found; i++) {
        struct as_books *books = &ledger->devices[i];

        pthread_mutex_lock(&books->lock);
        found = remove_block(ledger, books, address, generation);
        if (found || device >= 0)
            set_reserved(books, reserved_bytes);
        pthread_mutex_unlock(&books->lock);
    }
    return found;
}

void as_ledger_empty(struct as_ledger *ledger, int device)
{
    struct as_books *books = &ledger->devices[device];
    struct as_node *node;

    pthread_mutex_lock(&books->lock);
    while ((node = as_index_next(&books->index, &(struct as_cursor){0})))
        remove_block(ledger, books, (const void *)node->address, 0);
    set_reserved(books, AS_LEDGER_ALL_LIVE);
    pthread_mutex_unlock(&books->lock);
}

void as_ledger_clear(struct as_ledger *ledger)
{
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        struct as_books *books = &ledger->devices[i];

        pthread_mutex_lock(&books->lock);
        const uint64_t next_generation = books->next_generation;
        char *rest = (char *)books + sizeof(books->lock);
        finish_books(books);
        memset(rest, 0, sizeof(*books) - sizeof(books->lock));
        books->next_generation = next_generation;
        pthread_mutex_unlock(&books->lock);
    }
}

// --- Questions

bool as_ledger_find(struct as_ledger *ledger, int device, const void *address,
                    struct as_block *block)
{
    struct as_books *books;
    const struct as_node *node = as_books_hold(ledger, &device, address, &books);
    if (!node)
        return false;

    *block = (struct as_block){
        .address = (const void *)node->address, // NOLINT(performance-no-int-to-ptr)
        .bytes = node->bytes,
        .device = device,
        .generation = node->generation,
        .category = (enum actswap_category)node->category,
        .stream = node->stream,
    };
    pthread_mutex_unlock(&books->lock);
    return true;
}

uint64_t as_ledger_now(const struct as_ledger *ledger, int device)
{
    if (device < 0 || device >= AS_LEDGER_DEVICES)
        return 0;
    return atomic_load_explicit(&ledger->devices[device].next_generation,
                                memory_order_relaxed);
}

size_t as_ledger_streams(struct as_ledger *ledger, int device, uint64_t generation,
                         void *streams[], size_t count)
{
    size_t found = 0;
    if (device < 0 || device >= AS_LEDGER_DEVICES)
        return 0;

    struct as_books *books = &ledger->devices[device];
    pthread_mutex_lock(&books->lock);
    for (uint32_t i = 0; i < books->stream_count; i++) {
        if (books->streams[i].generation < generation)
            break; // those behind were used earlier still
        if (found < count)
            streams[found] = books->streams[i].stream;
        found++;
    }
    pthread_mutex_unlock(&books->lock);
    return found;
}

int as_ledger_expect_free(struct as_ledger *ledger, int device, const void *address,
                          uint64_t generation)
{
    struct as_books *books;
    struct as_node *node = as_books_hold(ledger, &device, address, &books);
    if (!node)
        return -ENOENT;

    const bool same = node->generation == generation;
    if (same)
        node->expected = true;
    pthread_mutex_unlock(&books->lock);
    return same ? 0 : -ENOENT;
}

static void sum(struct as_ledger_totals *to, const struct as_books *books)
{
    const struct as_ledger_totals *from = &books->totals;

    to->live_bytes += from->live_bytes;
    to->peak_bytes += from->peak_bytes;
    to->reserved_bytes += from->reserved_bytes;
    to->peak_reserved_bytes += from->peak_reserved_bytes;
    to->step_peak_bytes += from->step_peak_bytes;
    to->step_peak_reserved_bytes += from->step_peak_reserved_bytes;
    to->released_bytes += from->released_bytes;
    to->reserved_at_peak_bytes += from->reserved_at_peak_bytes;
    to->allocations += from->allocations;
    to->frees += from->frees;
    to->untracked += from->untracked;
    for (int i = 0; i < ACTSWAP_CATEGORIES; i++) {
        to->live_by_category[i] += books->live[i].bytes;
        to->peak_by_category[i] += books->peak.shares[i].bytes;
    }
}

void as_ledger_totals(struct as_ledger *ledger, int device,
                      struct as_ledger_totals *totals)
{
    uint64_t highest = 0;

    memset(totals, 0, sizeof(*totals));
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        struct as_books *books = &ledger->devices[i];

        if (device >= 0 && device != i)
            continue;
        pthread_mutex_lock(&books->lock);
        sum(totals, books);
        if (books->totals.peak_bytes > highest) {
            highest = books->totals.peak_bytes;
            totals->peak_step = books->totals.peak_step;
            totals->peak_phase = books->totals.peak_phase;
            totals->step_peak_phase = books->totals.step_peak_phase;
        }
        pthread_mutex_unlock(&books->lock);
    }
}

static void add_shares(struct as_share to[], const struct as_share from[])
{
    for (int i = 0; i < ACTSWAP_CATEGORIES; i++) {
        to[i].bytes += from[i].bytes;
        to[i].inferred_bytes += from[i].inferred_bytes;
        to[i].count += from[i].count;
    }
}

void as_ledger_peak(struct as_ledger *ledger, struct as_peak *peak)
{
    uint64_t highest = 0;

    *peak = (struct as_peak){.device = -1};
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        struct as_books *books = &ledger->devices[i];

        pthread_mutex_lock(&books->lock);
        const bool over = books->after.generation;
        add_shares(peak->before, books->before.shares);
        add_shares(peak->at, books->peak.shares);
        add_shares(peak->after, over ? books->after.shares : books->live);
        if (books->totals.peak_bytes > highest) {
            highest = books->totals.peak_bytes;
            peak->device = i;
            peak->t_ns = books->peak_ns;
            peak->block = books->peak_block;
        }
        pthread_mutex_unlock(&books->lock);
    }
}

void as_ledger_budget(struct as_ledger *ledger, uint64_t bytes)
{
    atomic_store(&ledger->budget_bytes, bytes);
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        struct as_books *books = &ledger->devices[i];

        pthread_mutex_lock(&books->lock);
        hold_against_budget(ledger, books);
        pthread_mutex_unlock(&books->lock);
    }
}

uint64_t as_ledger_budget_bytes(const struct as_ledger *ledger)
{
    return atomic_load_explicit(&ledger->budget_bytes, memory_order_relaxed);
}

struct as_swing as_ledger_swing(struct as_ledger *ledger, int device,
                                enum as_swing_use use)
{
    struct as_books *books = &ledger->devices[device];
    pthread_mutex_lock(&books->lock);
    const struct as_swing swing = {books->swing_bytes[use], books->totals.live_bytes};
    books->swing_bytes[use] = swing.live_bytes;
    pthread_mutex_unlock(&books->lock);
    return swing;
}

bool as_ledger_excess(struct as_ledger *ledger, int device, struct as_excess *excess)
{
    if (device < 0 || device >= AS_LEDGER_DEVICES)
        return false;
    struct as_books *books = &ledger->devices[device];
    pthread_mutex_lock(&books->lock);
    const bool exceeded = books->exceeded;
    *excess = books->excess;
    pthread_mutex_unlock(&books->lock);
    return exceeded;
}

void as_ledger_timeline(struct as_ledger *ledger, int device,
                        struct as_timeline *timeline)
{
    timeline->count = 0;
    if (device < 0 || device >= AS_LEDGER_DEVICES)
        return;
    struct as_books *books = &ledger->devices[device];
    pthread_mutex_lock(&books->lock);
    if (books->timeline)
        *timeline = *books->timeline;
    pthread_mutex_unlock(&books->lock);
}

// --- Steps

void as_ledger_step(struct as_ledger *ledger)
{
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        struct as_books *books = &ledger->devices[i];
        struct as_ledger_totals *totals = &books->totals;

        pthread_mutex_lock(&books->lock);
        books->step_generation = books->next_generation;
        totals->step_peak_bytes = totals->live_bytes;
        totals->step_peak_reserved_bytes = totals->reserved_bytes;
        take_moment(books, &books->start);
        if (books->peak.generation && !books->after.generation)
            books->after = books->start;
        pthread_mutex_unlock(&books->lock);
    }
}

const char *as_phase_name(enum as_phase phase)
{
    static const char *const names[AS_PHASES] = {
        [AS_PHASE_OTHER] = "other",        [AS_PHASE_FORWARD] = "forward",
        [AS_PHASE_BACKWARD] = "backward",  [AS_PHASE_OPTIMIZER] = "optimizer",
        [AS_PHASE_RECOMPUTE] = "backward",
    };

    return (unsigned)phase < AS_PHASES ? names[phase] : "unknown";
}

enum as_phase as_ledger_phase(const struct as_ledger *ledger)
{
    return (enum as_phase)atomic_load_explicit(&ledger->phase, memory_order_relaxed);
}

void as_ledger_place(struct as_ledger *ledger, uint64_t step, enum as_phase phase)
{
    atomic_store_explicit(&ledger->step, step, memory_order_relaxed);
    atomic_store_explicit(&ledger->phase, (int)phase, memory_order_relaxed);
}
