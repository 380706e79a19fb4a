// SPDX-License-Identifier: Apache-2.0
//
// A treap a device, ordered by address: one structure finds a block by its first byte
// and by any other. Nodes lie in one array and name each other by index, 0 being none,
// so that an event costs no allocation of its own.
#include "track/ledger.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 64, NODES_FIRST = 1024, STREAMS = 32 };

struct node {
    uintptr_t address;
    size_t bytes;
    uint64_t generation;
    void *stream;
    uint32_t left, right;
    uint32_t priority;
    uint8_t category;
    bool expected; // its free will be ours
};

struct stream {
    void *stream;
    uint64_t generation; // of the last allocation on it
};

struct device {
    uint32_t root;
    uint32_t stream_count;
    struct stream streams[STREAMS]; // the one used last comes first
    uint64_t peak_generation; // of the next block at the time of the peak
    struct as_ledger_totals totals;
};

struct as_ledger {
    pthread_mutex_t lock;
    struct node *nodes;
    uint32_t count, capacity; // count includes the unused node 0
    uint32_t spare; // list of nodes given back, through `left`
    uint32_t random;
    uint64_t next_generation; // written under the lock, read without
    uint64_t step;
    enum as_phase phase;
    struct device devices[DEVICES];
};

struct as_ledger *as_ledger_create(void)
{
    struct as_ledger *ledger = calloc(1, sizeof(*ledger));
    if (!ledger)
        return NULL;

    pthread_mutex_init(&ledger->lock, NULL);
    ledger->count = 1;
    ledger->random = 2463534242;
    ledger->next_generation = 1;
    return ledger;
}

void as_ledger_destroy(struct as_ledger *ledger)
{
    if (!ledger)
        return;
    pthread_mutex_destroy(&ledger->lock);
    free(ledger->nodes);
    free(ledger);
}

// --- Nodes

// 0: no memory.
static uint32_t take_node(struct as_ledger *ledger)
{
    const uint32_t spare = ledger->spare;
    if (spare) {
        ledger->spare = ledger->nodes[spare].left;
        return spare;
    }
    if (ledger->count >= ledger->capacity) {
        const uint32_t capacity = ledger->capacity ? ledger->capacity * 2 : NODES_FIRST;
        struct node *nodes = realloc(ledger->nodes, capacity * sizeof(*nodes));

        if (!nodes)
            return 0;
        ledger->nodes = nodes;
        ledger->capacity = capacity;
    }
    return ledger->count++;
}

static void give_node(struct as_ledger *ledger, uint32_t index)
{
    ledger->nodes[index].left = ledger->spare;
    ledger->spare = index;
}

static uint32_t random_priority(struct as_ledger *ledger)
{
    uint32_t x = ledger->random; // Marsaglia's xorshift

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    ledger->random = x;
    return x;
}

// --- Tree

static void tree_insert(struct as_ledger *ledger, uint32_t *root, uint32_t fresh)
{
    struct node *nodes = ledger->nodes;
    const uintptr_t address = nodes[fresh].address;
    uint32_t *link = root;

    while (*link && nodes[*link].priority >= nodes[fresh].priority)
        link = address < nodes[*link].address ? &nodes[*link].left : &nodes[*link].right;

    // What was there is split by address below the new node.
    uint32_t at = *link;
    uint32_t *left = &nodes[fresh].left, *right = &nodes[fresh].right;
    *link = fresh;
    while (at) {
        if (nodes[at].address < address) {
            *left = at;
            left = &nodes[at].right;
            at = *left;
        } else {
            *right = at;
            right = &nodes[at].left;
            at = *right;
        }
    }
    *left = *right = 0;
}

// The link that leads to the block beginning at `address`, or to nothing.
static uint32_t *tree_link(struct as_ledger *ledger, uint32_t *root, uintptr_t address)
{
    struct node *nodes = ledger->nodes;
    uint32_t *link = root;

    while (*link && nodes[*link].address != address)
        link = address < nodes[*link].address ? &nodes[*link].left : &nodes[*link].right;
    return link;
}

static void tree_unlink(struct as_ledger *ledger, uint32_t *link)
{
    struct node *nodes = ledger->nodes;
    uint32_t left = nodes[*link].left, right = nodes[*link].right;

    while (left && right) {
        if (nodes[left].priority > nodes[right].priority) {
            *link = left;
            link = &nodes[left].right;
            left = *link;
        } else {
            *link = right;
            link = &nodes[right].left;
            right = *link;
        }
    }
    *link = left ? left : right;
}

static struct node *tree_find(struct as_ledger *ledger, int device, uintptr_t address)
{
    struct node *nodes = ledger->nodes, *below = NULL;

    for (uint32_t at = ledger->devices[device].root; at;) {
        if (nodes[at].address <= address) {
            below = &nodes[at];
            at = nodes[at].right;
        } else {
            at = nodes[at].left;
        }
    }
    return below && address - below->address < below->bytes ? below : NULL;
}

// The live block that holds `address`, or NULL; *device becomes its own if it is -1.
static struct node *find_block(struct as_ledger *ledger, int *device, const void *address)
{
    const int last = *device < 0 ? DEVICES - 1 : *device;

    for (int i = *device < 0 ? 0 : *device; i <= last && i < DEVICES; i++) {
        struct node *node = tree_find(ledger, i, (uintptr_t)address);

        if (node) {
            *device = i;
            return node;
        }
    }
    return NULL;
}

// --- Books

static void set_reserved(struct device *device, size_t reserved_bytes)
{
    struct as_ledger_totals *totals = &device->totals;

    totals->reserved_bytes =
        reserved_bytes == AS_LEDGER_ALL_LIVE ? totals->live_bytes : reserved_bytes;
    if (totals->reserved_bytes > totals->peak_reserved_bytes)
        totals->peak_reserved_bytes = totals->reserved_bytes;
    if (totals->reserved_bytes > totals->step_peak_reserved_bytes)
        totals->step_peak_reserved_bytes = totals->reserved_bytes;
}

static void count_live(struct as_ledger *ledger, struct device *device, size_t bytes)
{
    struct as_ledger_totals *totals = &device->totals;

    totals->allocations++;
    totals->live_bytes += bytes;
    totals->live_by_category[ACTSWAP_UNKNOWN] += bytes;
    if (totals->live_bytes > totals->step_peak_bytes)
        totals->step_peak_bytes = totals->live_bytes;
    if (totals->live_bytes > totals->peak_bytes) {
        totals->peak_bytes = totals->live_bytes;
        totals->peak_step = ledger->step;
        totals->peak_phase = (int)ledger->phase;
        device->peak_generation = ledger->next_generation;
        memcpy(totals->peak_by_category, totals->live_by_category,
               sizeof(totals->peak_by_category));
    }
}

static void note_stream(struct device *device, void *stream, uint64_t generation)
{
    struct stream *streams = device->streams;
    uint32_t at = 0;

    while (at < device->stream_count && streams[at].stream != stream)
        at++;
    if (at == device->stream_count) {
        if (device->stream_count < STREAMS)
            device->stream_count++;
        else
            at--; // the one unused for longest makes room
    }
    memmove(streams + 1, streams, at * sizeof(*streams));
    streams[0] = (struct stream){stream, generation};
}

static void remove_at(struct as_ledger *ledger, struct device *device, uint32_t *link)
{
    const uint32_t index = *link;
    const struct node *node = &ledger->nodes[index];
    struct as_ledger_totals *totals = &device->totals;

    totals->frees++;
    totals->live_bytes -= node->bytes;
    totals->live_by_category[node->category] -= node->bytes;
    if (node->expected)
        totals->released_bytes += node->bytes;
    tree_unlink(ledger, link);
    give_node(ledger, index);
}

void as_ledger_add(struct as_ledger *ledger, int device, const void *address,
                   size_t bytes, size_t reserved_bytes, void *stream)
{
    if (device < 0 || device >= DEVICES || !bytes)
        return;

    struct device *books = &ledger->devices[device];
    pthread_mutex_lock(&ledger->lock);
    uint32_t *old = tree_link(ledger, &books->root, (uintptr_t)address);
    if (*old)
        remove_at(ledger, books, old);

    const uint32_t index = take_node(ledger);
    if (index) {
        ledger->nodes[index] = (struct node){
            .address = (uintptr_t)address,
            .bytes = bytes,
            .generation = ledger->next_generation,
            .stream = stream,
            .priority = random_priority(ledger),
        };
        note_stream(books, stream, ledger->next_generation);
        __atomic_store_n(&ledger->next_generation, ledger->next_generation + 1,
                         __ATOMIC_RELAXED);
        tree_insert(ledger, &books->root, index);
        count_live(ledger, books, bytes);
    } else {
        books->totals.untracked++;
    }
    set_reserved(books, reserved_bytes);
    pthread_mutex_unlock(&ledger->lock);
}

bool as_ledger_remove(struct as_ledger *ledger, int device, const void *address,
                      uint64_t generation, size_t reserved_bytes)
{
    if (device >= DEVICES)
        return false;

    const int first = device < 0 ? 0 : device, last = device < 0 ? DEVICES - 1 : device;
    bool found = false;
    pthread_mutex_lock(&ledger->lock);
    for (int i = first; i <= last && !found; i++) {
        struct device *books = &ledger->devices[i];
        uint32_t *link = tree_link(ledger, &books->root, (uintptr_t)address);

        found = *link && (!generation || ledger->nodes[*link].generation == generation);
        if (found)
            remove_at(ledger, books, link);
        if (found || device >= 0)
            set_reserved(books, reserved_bytes);
    }
    pthread_mutex_unlock(&ledger->lock);
    return found;
}

void as_ledger_clear(struct as_ledger *ledger)
{
    pthread_mutex_lock(&ledger->lock);
    ledger->count = 1;
    ledger->spare = 0;
    memset(ledger->devices, 0, sizeof(ledger->devices));
    pthread_mutex_unlock(&ledger->lock);
}

bool as_ledger_find(struct as_ledger *ledger, int device, const void *address,
                    struct as_block *block)
{
    pthread_mutex_lock(&ledger->lock);
    const struct node *node = find_block(ledger, &device, address);
    if (node)
        *block = (struct as_block){
            .address = (const void *)node->address, // NOLINT(performance-no-int-to-ptr)
            .bytes = node->bytes,
            .device = device,
            .generation = node->generation,
            .category = (enum actswap_category)node->category,
            .stream = node->stream,
        };
    pthread_mutex_unlock(&ledger->lock);
    return node;
}

uint64_t as_ledger_now(const struct as_ledger *ledger)
{
    return __atomic_load_n(&ledger->next_generation, __ATOMIC_RELAXED);
}

size_t as_ledger_streams(struct as_ledger *ledger, int device, uint64_t generation,
                         void *streams[], size_t count)
{
    size_t found = 0;
    if (device < 0 || device >= DEVICES)
        return 0;

    pthread_mutex_lock(&ledger->lock);
    const struct device *books = &ledger->devices[device];
    for (uint32_t i = 0; i < books->stream_count; i++) {
        if (books->streams[i].generation < generation)
            break; // those behind were used earlier still
        if (found < count)
            streams[found] = books->streams[i].stream;
        found++;
    }
    pthread_mutex_unlock(&ledger->lock);
    return found;
}

static void recategorize(struct device *device, struct node *node,
                         enum actswap_category category)
{
    struct as_ledger_totals *totals = &device->totals;

    totals->live_by_category[node->category] -= node->bytes;
    totals->live_by_category[category] += node->bytes;
    // Alive now and born by then: it was part of the peak.
    if (node->generation < device->peak_generation) {
        totals->peak_by_category[node->category] -= node->bytes;
        totals->peak_by_category[category] += node->bytes;
    }
    node->category = (uint8_t)category;
}

int as_ledger_tag(struct as_ledger *ledger, int device, const void *address,
                  enum actswap_category category)
{
    if ((unsigned)category >= ACTSWAP_CATEGORIES)
        return -EINVAL;

    pthread_mutex_lock(&ledger->lock);
    struct node *node = find_block(ledger, &device, address);
    if (node && (category != ACTSWAP_ACTIVATION || node->category == ACTSWAP_UNKNOWN))
        recategorize(&ledger->devices[device], node, category);
    pthread_mutex_unlock(&ledger->lock);
    return node ? 0 : -ENOENT;
}

int as_ledger_expect_free(struct as_ledger *ledger, int device, const void *address,
                          uint64_t generation)
{
    pthread_mutex_lock(&ledger->lock);
    struct node *node = find_block(ledger, &device, address);
    const bool same = node && node->generation == generation;
    if (same)
        node->expected = true;
    pthread_mutex_unlock(&ledger->lock);
    return same ? 0 : -ENOENT;
}

static void sum(struct as_ledger_totals *to, const struct as_ledger_totals *from)
{
    to->live_bytes += from->live_bytes;
    to->peak_bytes += from->peak_bytes;
    to->reserved_bytes += from->reserved_bytes;
    to->peak_reserved_bytes += from->peak_reserved_bytes;
    to->step_peak_bytes += from->step_peak_bytes;
    to->step_peak_reserved_bytes += from->step_peak_reserved_bytes;
    to->released_bytes += from->released_bytes;
    to->allocations += from->allocations;
    to->frees += from->frees;
    to->untracked += from->untracked;
    for (int i = 0; i < ACTSWAP_CATEGORIES; i++) {
        to->live_by_category[i] += from->live_by_category[i];
        to->peak_by_category[i] += from->peak_by_category[i];
    }
}

void as_ledger_totals(struct as_ledger *ledger, int device,
                      struct as_ledger_totals *totals)
{
    uint64_t highest = 0;

    memset(totals, 0, sizeof(*totals));
    pthread_mutex_lock(&ledger->lock);
    for (int i = 0; i < DEVICES; i++) {
        const struct as_ledger_totals *own = &ledger->devices[i].totals;

        if (device >= 0 && device != i)
            continue;
        sum(totals, own);
        if (own->peak_bytes > highest) {
            highest = own->peak_bytes;
            totals->peak_step = own->peak_step;
            totals->peak_phase = own->peak_phase;
        }
    }
    pthread_mutex_unlock(&ledger->lock);
}

void as_ledger_step(struct as_ledger *ledger)
{
    pthread_mutex_lock(&ledger->lock);
    for (int i = 0; i < DEVICES; i++) {
        struct as_ledger_totals *totals = &ledger->devices[i].totals;

        totals->step_peak_bytes = totals->live_bytes;
        totals->step_peak_reserved_bytes = totals->reserved_bytes;
    }
    pthread_mutex_unlock(&ledger->lock);
}

const char *as_phase_name(enum as_phase phase)
{
    static const char *const names[AS_PHASES] = {
        [AS_PHASE_OTHER] = "other",
        [AS_PHASE_FORWARD] = "forward",
        [AS_PHASE_BACKWARD] = "backward",
        [AS_PHASE_OPTIMIZER] = "optimizer",
    };

    return (unsigned)phase < AS_PHASES ? names[phase] : "unknown";
}

void as_ledger_place(struct as_ledger *ledger, uint64_t step, enum as_phase phase)
{
    pthread_mutex_lock(&ledger->lock);
    ledger->step = step;
    ledger->phase = phase;
    pthread_mutex_unlock(&ledger->lock);
}
