// SPDX-License-Identifier: Apache-2.0
//
// What a block holds: said by the framework, told by its use, or by how long it lived.
#include <errno.h>
#include <string.h>

#include "core/clock.h"
#include "track/books.h"

static void move(struct as_share shares[], const struct as_node *node,
                 enum actswap_category category, bool inferred)
{
    struct as_share *from = &shares[node->category], *to = &shares[category];

    from->bytes -= node->bytes;
    from->inferred_bytes -= node->inferred ? node->bytes : 0;
    from->count--;
    to->bytes += node->bytes;
    to->inferred_bytes += inferred ? node->bytes : 0;
    to->count++;
}

// It is alive now: if it was born by then, it was alive then.
static void move_in(struct as_moment *moment, const struct as_node *node,
                    enum actswap_category category, bool inferred)
{
    if (node->generation < moment->generation)
        move(moment->shares, node, category, inferred);
}

void as_books_rename(struct as_books *books, struct as_node *node,
                     enum actswap_category category, bool inferred)
{
    if (node->category == category && node->inferred == inferred)
        return;
    move(books->live, node, category, inferred);
    move_in(&books->peak, node, category, inferred);
    move_in(&books->before, node, category, inferred);
    move_in(&books->after, node, category, inferred);
    move_in(&books->start, node, category, inferred);
    if (books->timeline && node->category != category)
        as_timeline_rename(books->timeline, node->generation, node->bytes,
                           (enum actswap_category)node->category, category);
    if (node->category == ACTSWAP_UNKNOWN)
        books->unnamed_bytes[node->phase] -= node->bytes;
    if (category == ACTSWAP_UNKNOWN)
        books->unnamed_bytes[node->phase] += node->bytes;
    node->category = (uint8_t)category;
    node->inferred = inferred;
}

// --- Said, or told by its use

// Names the block if `may` says so; 0 or -ENOENT.
static int name_block(struct as_ledger *ledger, int device, const void *address,
                      enum actswap_category category,
                      bool (*may)(const struct as_node *node))
{
    if ((unsigned)category >= ACTSWAP_CATEGORIES)
        return -EINVAL;

    struct as_books *books;
    struct as_node *node = as_books_hold(ledger, &device, address, &books);
    if (!node)
        return -ENOENT;
    if (may(node))
        as_books_rename(books, node, category, false);
    pthread_mutex_unlock(&books->lock);
    return 0;
}

static bool always(const struct as_node *node)
{
    (void)node;
    return true;
}

static bool has_no_name(const struct as_node *node)
{
    return node->category == ACTSWAP_UNKNOWN;
}

static bool was_given_none(const struct as_node *node)
{
    return node->inferred || has_no_name(node);
}

int as_ledger_tag(struct as_ledger *ledger, int device, const void *address,
                  enum actswap_category category)
{
    const bool by_use = category == ACTSWAP_ACTIVATION || category == ACTSWAP_INPUT;

    return name_block(ledger, device, address, category,
                      by_use ? was_given_none : always);
}

int as_ledger_suggest(struct as_ledger *ledger, int device, const void *address,
                      enum actswap_category category)
{
    return name_block(ledger, device, address, category, has_no_name);
}

void as_ledger_save(struct as_ledger *ledger, int device, const void *address,
                    enum actswap_category category, uint32_t stack)
{
    const bool by_use = category == ACTSWAP_ACTIVATION || category == ACTSWAP_INPUT;
    const uint64_t now_ns = as_clock_ns();
    struct as_books *books;
    struct as_node *node = as_books_hold(ledger, &device, address, &books);
    if (!node)
        return;

    if (!by_use || was_given_none(node))
        as_books_rename(books, node, category, false);
    if (!node->stack && stack < AS_PLACES)
        node->stack = stack;
    node->saved_ns = now_ns;
    pthread_mutex_unlock(&books->lock);
}

// Under the lock.
static void count_gap(struct as_books *books, uint32_t stack, uint64_t bytes,
                      uint64_t gap_ns)
{
    if (books->tally)
        as_tally_gap(books->tally, stack, bytes, gap_ns);
}

void as_ledger_use(struct as_ledger *ledger, int device, const void *address)
{
    const uint64_t now_ns = as_clock_ns();
    struct as_books *books;
    struct as_node *node = as_books_hold(ledger, &device, address, &books);
    if (!node)
        return;

    if (node->saved_ns && node->category == ACTSWAP_ACTIVATION) {
        count_gap(books, node->stack, node->bytes, now_ns - node->saved_ns);
        node->saved_ns = 0;
    }
    if (node->category == ACTSWAP_ACTIVATION)
        as_place_set(node->block);
    pthread_mutex_unlock(&books->lock);
}

void as_ledger_waited(struct as_ledger *ledger, int device, uint32_t stack,
                      uint64_t bytes, uint64_t gap_ns)
{
    if (device < 0 || device >= AS_LEDGER_DEVICES || stack >= AS_PLACES)
        return;
    struct as_books *books = &ledger->devices[device];
    pthread_mutex_lock(&books->lock);
    count_gap(books, stack, bytes, gap_ns);
    pthread_mutex_unlock(&books->lock);
}

// --- At the peak

void as_books_tally(struct as_books *books, const struct as_node *node)
{
    if (books->tally && node->generation < books->peak.generation)
        as_tally_count(books->tally, node, books->peak.generation);
}

// Of one device; false: it had nothing.
static bool take_tally(struct as_books *books, struct as_tally *tally)
{
    struct as_cursor cursor = {0};
    const struct as_node *node;
    pthread_mutex_lock(&books->lock);
    const uint64_t peak_generation = books->peak.generation;
    const bool any = books->tally;
    if (any)
        *tally = *books->tally;
    while (any && (node = as_index_next(&books->index, &cursor))) {
        if (node->generation < peak_generation)
            as_tally_count(tally, node, peak_generation);
    }
    pthread_mutex_unlock(&books->lock);
    for (uint32_t i = 0; any && i < AS_PLACES; i++) {
        if (tally->blocks[i].peak_generation != peak_generation)
            tally->blocks[i] = (struct as_count){0};
        if (tally->stacks[i].peak_generation != peak_generation)
            tally->stacks[i] = (struct as_count){0};
    }
    return any;
}

bool as_ledger_tally(struct as_ledger *ledger, struct as_tally *tally)
{
    struct as_tally *one = malloc(sizeof(*one));
    bool any = false;

    memset(tally, 0, sizeof(*tally));
    for (int i = 0; one && i < AS_LEDGER_DEVICES; i++) {
        if (!take_tally(&ledger->devices[i], one))
            continue;
        as_tally_add(tally, one);
        any = true;
    }
    free(one);
    return any;
}

// --- By lifetime

int as_ledger_held(struct as_ledger *ledger, int device, const void *address)
{
    struct as_books *books;
    struct as_node *node = as_books_hold(ledger, &device, address, &books);
    if (!node)
        return -ENOENT;
    node->held = true;
    pthread_mutex_unlock(&books->lock);
    return 0;
}

void as_ledger_looked(struct as_ledger *ledger)
{
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        struct as_books *books = &ledger->devices[i];

        pthread_mutex_lock(&books->lock);
        books->looked_generation = books->next_generation;
        pthread_mutex_unlock(&books->lock);
    }
}

void as_books_end(struct as_books *books, struct as_node *node, enum as_phase phase)
{
    const enum as_phase born = (enum as_phase)node->phase;
    const bool is_library = node->category == ACTSWAP_WORKSPACE && node->inferred;

    if (node->category != ACTSWAP_UNKNOWN && !is_library)
        return;
    if (node->generation < books->step_generation)
        return; // it outlived a step without a name
    const bool consumed = born == AS_PHASE_OTHER && phase != AS_PHASE_OTHER;
    as_books_rename(books, node, consumed ? ACTSWAP_INPUT : ACTSWAP_TEMPORARY, true);
}

// What a block that was born in `born` and outlived it is, at this moment.
static enum actswap_category outlived(enum as_phase born, enum actswap_moment moment)
{
    const bool step = moment == ACTSWAP_STEP;

    switch (born) {
    case AS_PHASE_FORWARD:
        return step || moment == ACTSWAP_BACKWARD ? ACTSWAP_ACTIVATION : ACTSWAP_UNKNOWN;
    case AS_PHASE_RECOMPUTE:
        return ACTSWAP_ACTIVATION;
    case AS_PHASE_BACKWARD:
        return step || moment == ACTSWAP_BACKWARD_END ? ACTSWAP_GRADIENT
                                                      : ACTSWAP_UNKNOWN;
    case AS_PHASE_OPTIMIZER:
        return step ? ACTSWAP_OPTIMIZER_STATE : ACTSWAP_UNKNOWN;
    case AS_PHASE_OTHER:
        return step ? ACTSWAP_INPUT : ACTSWAP_UNKNOWN;
    case AS_PHASES:
        break;
    }
    return ACTSWAP_UNKNOWN;
}

static void settle_node(struct as_books *books, struct as_node *node,
                        enum actswap_moment moment)
{
    const bool looked_at = node->generation < books->looked_generation;
    enum actswap_category category = outlived((enum as_phase)node->phase, moment);

    if (category && looked_at && !node->held)
        category = ACTSWAP_WORKSPACE;
    // Who never looks does not know what a script holds.
    if (category == ACTSWAP_INPUT && !books->looked_generation)
        category = ACTSWAP_UNKNOWN;
    if (category)
        as_books_rename(books, node, category, true);
}

static uint64_t unnamed(const struct as_books *books)
{
    uint64_t bytes = 0;

    for (int phase = 0; phase < AS_PHASES; phase++)
        bytes += books->unnamed_bytes[phase];
    return bytes;
}

void as_ledger_presume(struct as_ledger *ledger)
{
    const enum as_phase phase = as_ledger_phase(ledger);

    for (int i = 0; i < AS_LEDGER_DEVICES && phase != AS_PHASE_OTHER; i++) {
        struct as_books *books = &ledger->devices[i];
        struct as_cursor cursor = {0};
        struct as_node *node;

        pthread_mutex_lock(&books->lock);
        while (unnamed(books) && (node = as_index_next(&books->index, &cursor))) {
            if (node->category == ACTSWAP_UNKNOWN && node->phase == phase &&
                node->generation >= books->step_generation)
                as_books_rename(books, node, ACTSWAP_TEMPORARY, true);
        }
        pthread_mutex_unlock(&books->lock);
    }
}

uint64_t as_ledger_unnamed(struct as_ledger *ledger, enum as_phase phase)
{
    uint64_t bytes = 0;

    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        struct as_books *books = &ledger->devices[i];

        pthread_mutex_lock(&books->lock);
        bytes += books->unnamed_bytes[phase];
        pthread_mutex_unlock(&books->lock);
    }
    return bytes;
}

void as_ledger_settle(struct as_ledger *ledger, enum actswap_moment moment)
{
    for (int i = 0; i < AS_LEDGER_DEVICES; i++) {
        struct as_books *books = &ledger->devices[i];
        struct as_cursor cursor = {0};
        struct as_node *node;

        pthread_mutex_lock(&books->lock);
        while (unnamed(books) && (node = as_index_next(&books->index, &cursor))) {
            if (node->category == ACTSWAP_UNKNOWN)
                settle_node(books, node, moment);
        }
        pthread_mutex_unlock(&books->lock);
    }
}
