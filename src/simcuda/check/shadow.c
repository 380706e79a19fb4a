// SPDX-License-Identifier: Apache-2.0
#include "simcuda/check/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "simcuda/check/thread.h"
#include "simcuda/runtime/ranges.h"
#include "simcuda/simcuda.h"

// Cells that remember nothing are looked for when there are so many more than last time.
enum { SWEEP_AFTER = 1 << 15, OTHERS_HERE = 2, COMBS_MAX = 16 };

struct cell {
    enum sim_content content;
    bool reused;
    bool written;
    struct sim_note write;
    struct sim_note *others; // who reads, and writes that `write` says nothing of
    unsigned other_count, other_capacity;
    unsigned next_free; // index + 1
};

static struct sim_ranges ranges; // their kind is a cell's index
static struct cell *cells;
static unsigned cell_count, first_free;
static size_t range_count, swept_count;

static unsigned take_cell(void)
{
    if (first_free) {
        const unsigned index = first_free - 1;

        first_free = cells[index].next_free;
        return index;
    }

    struct cell *more = realloc(cells, (cell_count + 1024) * sizeof(*cells));

    if (!more)
        sim_fail("no memory for the checker's cells");
    cells = more;
    memset(cells + cell_count, 0, 1024 * sizeof(*cells));
    for (unsigned i = cell_count + 1024; i-- > cell_count + 1;) {
        cells[i].next_free = first_free;
        first_free = i + 1;
    }
    cell_count += 1024;
    return cell_count - 1024;
}

static void give_cell(unsigned index)
{
    free(cells[index].others);
    cells[index] = (struct cell){.next_free = first_free};
    first_free = index + 1;
}

static struct cell *cell_of(const struct sim_range *range)
{
    return &cells[range->kind];
}

static struct sim_range *enter(uintptr_t start, uintptr_t end, unsigned cell)
{
    struct sim_range *range = sim_ranges_insert(&ranges, start, end - start);

    if (!range)
        sim_fail("no memory for the checker's ranges");
    range->kind = cell;
    range_count++;
    return range;
}

static void take_out(struct sim_range *range)
{
    sim_ranges_remove(&ranges, range);
    range_count--;
}

static unsigned copy_cell(unsigned from)
{
    const unsigned index = take_cell();
    const struct sim_note *others = cells[from].others;
    const size_t bytes = cells[from].other_count * sizeof(*others);

    cells[index] = cells[from];
    cells[index].others = NULL;
    cells[index].other_capacity = cells[from].other_count;
    if (bytes) {
        cells[index].others = malloc(bytes);
        if (!cells[index].others)
            sim_fail("no memory for the checker's cells");
        memcpy(cells[index].others, others, bytes);
    }
    return index;
}

// A cell that holds the address and begins before it ends there.
static void cut_at(uintptr_t address)
{
    struct sim_range *range = sim_ranges_find(&ranges, address);

    if (!range || range->start == address)
        return;

    const struct sim_range was = *range;

    take_out(range);
    (void)enter(was.start, address, was.kind);
    (void)enter(address, was.start + was.bytes, copy_cell(was.kind));
}

static struct sim_range *first_in(uintptr_t start, uintptr_t end)
{
    struct sim_range *range = sim_ranges_from(&ranges, start);

    return range && range->start < end ? range : NULL;
}

static bool is_known(const struct sim_note *note)
{
    return sim_threads_all_know(note->lane, note->epoch);
}

// --- Looking

struct finds {
    const struct sim_look *look;
    unsigned last[SIM_CLASHES]; // the site that was found last + 1, by clash
};

static const unsigned no_site = -1u;

static void report(struct finds *finds, enum sim_clash clash, const struct cell *cell,
                   const struct sim_note *before, uintptr_t address)
{
    struct sim_found found = {.clash = clash, .address = address, .reused = cell->reused};
    const unsigned site = before ? before->site + 1 : no_site;

    if (finds->last[clash] == site)
        return;
    found.again = finds->last[clash];
    finds->last[clash] = site;
    found.has_before = before;
    if (before)
        found.before = *before;
    found.told = before && sim_threads_one_knows(before->lane, before->epoch);
    finds->look->found(finds->look->arg, &found);
}

static bool is_earlier(const struct sim_look *look, const struct sim_note *note)
{
    return sim_clock_has(look->past, note->lane, note->epoch);
}

static bool is_later(const struct sim_look *look, const struct sim_note *note)
{
    return look->is_later && look->is_later(look->arg, note);
}

static bool ordered(const struct sim_look *look, const struct sim_note *note)
{
    return (look->note.host && note->host) || is_earlier(look, note) ||
           is_later(look, note);
}

static bool touches(const struct sim_note *note, const struct sim_range *range)
{
    return sim_comb_touches(note->comb, note->start, range->start,
                            range->start + range->bytes);
}

static bool meets(const struct sim_look *look, const struct sim_note *note,
                  const struct sim_range *range)
{
    return touches(note, range) &&
           sim_combs_meet(look->note.comb, look->note.start, note->comb, note->start);
}

static bool clashes(const struct sim_look *look, const struct sim_note *note,
                    const struct sim_range *range)
{
    return !ordered(look, note) && meets(look, note, range);
}

static void compare(struct finds *finds, const struct sim_range *range)
{
    const struct sim_look *look = finds->look;
    const struct cell *cell = cell_of(range);
    const uintptr_t address = range->start;

    if (!touches(&look->note, range))
        return;
    if (cell->content == SIM_CONTENT_FREED && look->contents)
        report(finds, SIM_CLASH_FREED, cell, cell->written ? &cell->write : NULL,
               address);
    else if (cell->written && clashes(look, &cell->write, range))
        report(finds, SIM_CLASH_WRITE, cell, &cell->write, address);
    if (cell->content == SIM_CONTENT_FRESH && look->contents && !look->write)
        report(finds, SIM_CLASH_FRESH, cell, NULL, address);
    for (unsigned i = 0; i < cell->other_count; i++) {
        const struct sim_note *note = &cell->others[i];

        if ((look->write || note->write) && clashes(look, note, range))
            report(finds, note->write ? SIM_CLASH_WRITE : SIM_CLASH_READ, cell, note,
                   address);
    }
}

// --- Remembering

static void append(struct cell *cell, const struct sim_note *note)
{
    if (cell->other_count == cell->other_capacity) {
        const unsigned capacity = cell->other_count ? cell->other_count * 2 : OTHERS_HERE;
        struct sim_note *others = realloc(cell->others, capacity * sizeof(*others));

        if (!others)
            sim_fail("no memory for the checker's cells");
        cell->others = others;
        cell->other_capacity = capacity;
    }
    cell->others[cell->other_count++] = *note;
}

// Threads of the program are not compared: what one does says nothing of another.
static bool is_apart(const struct sim_look *look, const struct sim_note *note)
{
    return look->note.host && note->host && !is_earlier(look, note);
}

static bool covers(const struct sim_note *note, const struct sim_note *other)
{
    return sim_comb_covers(note->comb, note->start, other->comb, other->start);
}

// What is remembered of the access in this cell: all bytes, where there would be too much
// to remember otherwise.
static struct sim_note note_in(const struct cell *cell, const struct sim_look *look)
{
    struct sim_note note = look->note;

    if (cell->other_count >= COMBS_MAX) {
        note.comb = NULL;
        note.start = 0;
    }
    note.write = look->write;
    return note;
}

// Whether who is compared with `now` only finds all that it would find with `before`.
// One that comes after nothing of the two, and that `now` meets only as it is remembered,
// would be lost.
static bool stands_for(const struct sim_note *now, const struct sim_look *look,
                       const struct sim_note *before)
{
    return covers(&look->note, before) ||
           (covers(now, before) && is_earlier(look, before));
}

static bool outlives(const struct sim_note *now, const struct sim_look *look,
                     const struct sim_note *before)
{
    return is_later(look, before) || is_apart(look, before) ||
           !stands_for(now, look, before);
}

static bool is_behind(const struct sim_look *look, const struct cell *cell)
{
    return cell->written && is_later(look, &cell->write) &&
           covers(&cell->write, &look->note);
}

// Of what the cell remembers only that stays which comes after the write, is another
// thread's, or lies beside it.
static void set_write(struct cell *cell, const struct sim_look *look)
{
    const struct sim_note now = note_in(cell, look);
    unsigned kept = 0;

    if (is_behind(look, cell))
        return;
    for (unsigned i = 0; i < cell->other_count; i++)
        if (outlives(&now, look, &cell->others[i]))
            cell->others[kept++] = cell->others[i];
    cell->other_count = kept;
    if (cell->written && outlives(&now, look, &cell->write))
        append(cell, &cell->write);
    cell->content = SIM_CONTENT_ANY;
    cell->reused = false;
    cell->written = true;
    cell->write = now;
}

// Reads before this one need not be remembered: who comes after this comes after them.
static void add_read(struct cell *cell, const struct sim_look *look)
{
    const struct sim_note now = note_in(cell, look);
    unsigned kept = 0;

    if (is_behind(look, cell))
        return;
    for (unsigned i = 0; i < cell->other_count; i++)
        if (cell->others[i].write || !is_earlier(look, &cell->others[i]) ||
            !covers(&now, &cell->others[i]))
            cell->others[kept++] = cell->others[i];
    cell->other_count = kept;
    append(cell, &now);
}

static void forget_known(struct cell *cell)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < cell->other_count; i++)
        if (!is_known(&cell->others[i]))
            cell->others[kept++] = cell->others[i];
    cell->other_count = kept;
    if (cell->written && is_known(&cell->write))
        cell->written = false;
    if (!cell->written && !kept)
        cell->reused = false;
}

static bool is_empty(const struct cell *cell)
{
    return cell->content == SIM_CONTENT_ANY && !cell->written && !cell->other_count;
}

static bool alike(const struct cell *a, const struct cell *b)
{
    return a->content == b->content && a->reused == b->reused &&
           a->written == b->written &&
           (!a->written || !memcmp(&a->write, &b->write, sizeof(a->write))) &&
           !a->other_count && !b->other_count;
}

// Neighbours that remember the same are joined.
void sim_shadow_sweep(void)
{
    struct sim_range *before = NULL;

    for (uintptr_t at = 0;;) {
        struct sim_range *range = sim_ranges_from(&ranges, at);

        if (!range)
            break;
        at = range->start + range->bytes;
        forget_known(cell_of(range));
        if (is_empty(cell_of(range))) {
            give_cell(range->kind);
            take_out(range);
        } else if (before && before->start + before->bytes == range->start &&
                   alike(cell_of(before), cell_of(range))) {
            const uintptr_t start = before->start;
            const unsigned cell = before->kind;

            give_cell(range->kind);
            take_out(range);
            take_out(before);
            before = enter(start, at, cell);
        } else {
            before = range;
        }
    }
    swept_count = range_count;
}

static void clear(uintptr_t start, uintptr_t end)
{
    struct sim_range *range;

    while ((range = first_in(start, end))) {
        give_cell(range->kind);
        take_out(range);
    }
}

// In each piece by itself.
static void remember(uintptr_t start, uintptr_t end, const struct sim_look *look)
{
    for (uintptr_t at = start; at < end;) {
        struct sim_range *range = first_in(at, end);

        if (!range || range->start > at)
            range = enter(at, range ? range->start : end, take_cell());
        at = range->start + range->bytes;
        forget_known(cell_of(range));
        if (!touches(&look->note, range))
            continue;
        if (look->write)
            set_write(cell_of(range), look);
        else
            add_read(cell_of(range), look);
    }
}

static void cut_out(uintptr_t start, uintptr_t end)
{
    if (range_count > 2 * swept_count + SWEEP_AFTER)
        sim_shadow_sweep();
    cut_at(start);
    cut_at(end);
}

void sim_shadow_access(uintptr_t start, size_t bytes, const struct sim_look *look)
{
    const uintptr_t end = start + bytes;
    struct finds finds = {.look = look};

    if (!bytes)
        return;
    cut_out(start, end);
    for (struct sim_range *range = first_in(start, end); range;
         range = first_in(range->start + range->bytes, end))
        compare(&finds, range);
    // One piece from now on, as nothing that is remembered comes after it.
    if (look->write && !look->is_later && !look->note.host && !look->note.comb)
        clear(start, end);
    remember(start, end, look);
}

static void set_content(uintptr_t start, size_t bytes, enum sim_content content)
{
    const uintptr_t end = start + bytes;

    if (!bytes)
        return;
    cut_out(start, end);
    for (uintptr_t at = start; at < end;) {
        struct sim_range *range = first_in(at, end);

        if (!range || range->start > at)
            range = enter(at, range ? range->start : end, take_cell());

        struct cell *cell = cell_of(range);

        forget_known(cell);
        cell->content = content;
        if (content == SIM_CONTENT_FRESH)
            cell->reused = cell->written || cell->other_count;
        at = range->start + range->bytes;
    }
}

void sim_shadow_allocate(uintptr_t start, size_t bytes)
{
    set_content(start, bytes, SIM_CONTENT_FRESH);
}

void sim_shadow_free(uintptr_t start, size_t bytes)
{
    set_content(start, bytes, SIM_CONTENT_FREED);
}

void sim_shadow_forget(uintptr_t start, size_t bytes)
{
    if (!bytes)
        return;
    cut_at(start);
    cut_at(start + bytes);
    clear(start, start + bytes);
}

size_t sim_shadow_count(void)
{
    return range_count;
}
