// SPDX-License-Identifier: Apache-2.0
#include "track/telemetry.h"

#include <pthread.h>
#include <stdatomic.h>

#include "track/place.h"

// What is known of a call: one of the two, until the other is.
struct call {
    uint32_t number;
    uint64_t id, ns; // 0: not known
};

static struct {
    pthread_mutex_t lock;
    struct as_telemetry telemetry;
    struct call calls[AS_TELEMETRY_CALLS];
    uint64_t places[AS_PLACES][AS_PHASES];
} books = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_int phase_now;

void as_telemetry_set(enum as_telemetry_state state, const char *reason)
{
    pthread_mutex_lock(&books.lock);
    if (books.telemetry.state < state) {
        books.telemetry.state = state;
        books.telemetry.reason = reason;
    }
    pthread_mutex_unlock(&books.lock);
}

// --- Whose

void as_telemetry_phase(enum as_phase phase)
{
    atomic_store_explicit(&phase_now, (int)phase, memory_order_relaxed);
}

uint64_t as_telemetry_id(void)
{
    const uint64_t phase =
        (uint64_t)atomic_load_explicit(&phase_now, memory_order_relaxed);

    return (uint64_t)as_place_now() * AS_PHASES + phase + 1;
}

static void add_to_place(uint64_t id, uint64_t ns)
{
    const uint64_t place = (id - 1) / AS_PHASES;

    if (place < AS_PLACES)
        books.places[place][(id - 1) % AS_PHASES] += ns;
}

// The entry of a call, which whoever had it before loses.
static struct call *find(uint32_t number)
{
    struct call *const call = &books.calls[number % AS_TELEMETRY_CALLS];

    if (call->number != number) {
        books.telemetry.nobodys_ns += call->ns;
        *call = (struct call){.number = number};
    }
    return call;
}

void as_telemetry_kernel(uint32_t number, uint64_t ns)
{
    pthread_mutex_lock(&books.lock);
    struct call *const call = find(number);

    books.telemetry.kernels++;
    books.telemetry.kernels_ns += ns;
    if (call->id)
        add_to_place(call->id, ns);
    else
        call->ns += ns;
    pthread_mutex_unlock(&books.lock);
}

void as_telemetry_call(uint32_t number, uint64_t id)
{
    pthread_mutex_lock(&books.lock);
    struct call *const call = find(number);

    call->id = id;
    add_to_place(id, call->ns);
    call->ns = 0;
    pthread_mutex_unlock(&books.lock);
}

void as_telemetry_copy(bool in, bool pinned, uint64_t bytes, uint64_t ns)
{
    struct as_telemetry_way *const way = in ? &books.telemetry.in : &books.telemetry.out;

    pthread_mutex_lock(&books.lock);
    way->count++;
    way->bytes += bytes;
    way->ns += ns;
    way->pinned_bytes += pinned ? bytes : 0;
    way->pinned_ns += pinned ? ns : 0;
    pthread_mutex_unlock(&books.lock);
}

void as_telemetry_drop(uint64_t records)
{
    pthread_mutex_lock(&books.lock);
    books.telemetry.dropped += records;
    pthread_mutex_unlock(&books.lock);
}

// --- Reading

void as_telemetry_read(struct as_telemetry *telemetry)
{
    pthread_mutex_lock(&books.lock);
    *telemetry = books.telemetry;
    for (size_t i = 0; i < AS_TELEMETRY_CALLS; i++)
        telemetry->nobodys_ns += books.calls[i].ns;
    pthread_mutex_unlock(&books.lock);
}

static bool is_used(const uint64_t ns[AS_PHASES])
{
    for (int i = 0; i < AS_PHASES; i++)
        if (ns[i])
            return true;
    return false;
}

bool as_telemetry_read_place(size_t index, struct as_telemetry_place *place)
{
    bool found = false;

    pthread_mutex_lock(&books.lock);
    for (uint32_t i = 0; i < AS_PLACES && !found; i++) {
        if (!is_used(books.places[i]) || index--)
            continue;
        found = true;
        place->place = i;
        for (int phase = 0; phase < AS_PHASES; phase++)
            place->ns[phase] = books.places[i][phase];
    }
    pthread_mutex_unlock(&books.lock);
    return found;
}
