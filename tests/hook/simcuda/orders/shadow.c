// SPDX-License-Identifier: Apache-2.0
// The checker's memory against one that keeps, for each byte by itself, who wrote it last
// and everybody who has read it since. In half of the programs accesses have gaps.
// shadow [PROGRAMS [SEED]]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simcuda/check/shadow.h"
#include "simcuda/check/thread.h"

enum { BYTES = 24, STREAMS = 4, ACCESSES = 40, READS = ACCESSES, BASE = 1 << 20 };

struct byte {
    enum sim_content content;
    bool written;
    struct sim_note write;
    struct sim_note reads[READS];
    int read_count;
    struct sim_note ever[ACCESSES]; // whatever touched it
    int ever_count;
};

struct stream {
    struct sim_clock past;
    uint64_t epoch;
};

// A clash of an access with one of before, as both memories must find it: of each byte.
struct seen {
    bool at[SIM_CLASHES][ACCESSES + 1]; // by the other's site, which is its number + 1
    unsigned long first[SIM_CLASHES]; // the lowest address
};

// Where accesses may have gaps: in rows of one length, so that what the checker knows of
// them is exact, of any, or so many that it does not remember each.
enum gaps { NO_GAPS, ALIKE, ANY_GAPS, MANY };

static struct byte bytes[BYTES];
static enum gaps gaps;
static unsigned row; // of ALIKE
static struct stream streams[STREAMS];
static uint64_t state;

static unsigned choose(unsigned count)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % count;
}

static void note_clash(struct seen *seen, enum sim_clash clash, unsigned site,
                       unsigned long address)
{
    seen->at[clash][site] = true;
    if (!seen->first[clash] || address < seen->first[clash])
        seen->first[clash] = address;
}

static void found(void *arg, const struct sim_found *found)
{
    note_clash(arg, found->clash, found->has_before ? found->before.site + 1 : 0,
               found->address);
}

static bool ordered(const struct sim_look *look, const struct sim_note *note)
{
    return sim_clock_has(look->past, note->lane, note->epoch);
}

static void expect(struct seen *seen, const struct byte *byte, unsigned long address,
                   const struct sim_look *look)
{
    const bool freed = byte->content == SIM_CONTENT_FREED && look->contents;

    if (freed)
        note_clash(seen, SIM_CLASH_FREED, byte->written ? byte->write.site + 1 : 0,
                   address);
    else if (byte->written && !ordered(look, &byte->write))
        note_clash(seen, SIM_CLASH_WRITE, byte->write.site + 1, address);
    if (byte->content == SIM_CONTENT_FRESH && look->contents && !look->write)
        note_clash(seen, SIM_CLASH_FRESH, 0, address);
    for (int i = 0; i < byte->read_count && look->write; i++)
        if (!ordered(look, &byte->reads[i]))
            note_clash(seen, SIM_CLASH_READ, byte->reads[i].site + 1, address);
}

// What may be said of the byte at most: an earlier access that really races with it.
static void allow(struct seen *seen, const struct byte *byte, unsigned long address,
                  const struct sim_look *look)
{
    for (int i = 0; i < byte->ever_count; i++) {
        const struct sim_note *note = &byte->ever[i];

        if ((look->write || note->write) && !ordered(look, note))
            note_clash(seen, note->write ? SIM_CLASH_WRITE : SIM_CLASH_READ,
                       note->site + 1, address);
    }
}

static void keep(struct byte *byte, const struct sim_look *look)
{
    byte->ever[byte->ever_count] = look->note;
    byte->ever[byte->ever_count++].write = look->write;
    if (look->write) {
        byte->content = SIM_CONTENT_ANY;
        byte->written = true;
        byte->write = look->note;
        byte->read_count = 0;
    } else {
        byte->reads[byte->read_count++] = look->note;
    }
}

// Whose the clash is with: exactly for writes. Of readers one that comes before another may
// have been dropped, as the other is found in its place; whose freed memory it was may be
// forgotten once the host knows that it is over.
static bool agree_on(enum sim_clash clash, const struct seen *ours,
                     const struct seen *theirs)
{
    if (ours->first[clash] != theirs->first[clash])
        return false;
    for (int site = 0; site <= ACCESSES && clash != SIM_CLASH_FREED; site++) {
        const bool dropped = theirs->at[clash][site] && clash == SIM_CLASH_READ;

        if (ours->at[clash][site] != theirs->at[clash][site] && !dropped)
            return false;
    }
    return true;
}

// With gaps others may be found than the last write, where that races, too.
static bool is_within(enum sim_clash clash, const struct seen *ours,
                      const struct seen *theirs, const struct seen *most)
{
    const unsigned long first = ours->first[clash];

    if (theirs->first[clash] && (!first || first > theirs->first[clash]))
        return false;
    if (gaps != ALIKE)
        return true;
    for (int site = 0; site <= ACCESSES; site++)
        if (ours->at[clash][site] && !most->at[clash][site])
            return false;
    return true;
}

static unsigned long lowest(const struct seen *seen, bool freed)
{
    unsigned long least = 0;

    for (int clash = 0; clash < SIM_CLASHES; clash++)
        if (seen->first[clash] && (!least || seen->first[clash] < least) &&
            clash != SIM_CLASH_FRESH && (freed || clash != SIM_CLASH_FREED))
            least = seen->first[clash];
    return least;
}

// A write that is remembered as one of all bytes is found in place of who came before it,
// and not if what it wrote was freed.
static bool is_as_low(const struct seen *ours, const struct seen *theirs)
{
    const unsigned long first = lowest(ours, true), other = lowest(theirs, false);

    return !other || (first && first <= other);
}

static bool agree(const struct seen *ours, const struct seen *theirs,
                  const struct seen *most)
{
    bool all = true;

    if (gaps == MANY)
        return is_as_low(ours, theirs);
    for (int i = 0; i < SIM_CLASHES; i++) {
        const enum sim_clash clash = (enum sim_clash)i;

        if (!gaps)
            all = all && agree_on(clash, ours, theirs);
        else if (clash == SIM_CLASH_WRITE || clash == SIM_CLASH_READ)
            all = all && is_within(clash, ours, theirs, most);
    }
    return all;
}

static void choose_rows(struct sim_rows rows[SIM_ROWS])
{
    if (!gaps || (gaps != MANY && !choose(3)))
        return;
    for (int i = 0; i < SIM_ROWS && (!i || (gaps == ANY_GAPS && choose(2))); i++) {
        rows[i].step = gaps == ANY_GAPS ? 2 + choose(6) : row;
        rows[i].run = gaps == MANY ? 1 : 1 + choose((unsigned)rows[i].step - 1);
    }
}

static bool has(const struct sim_rows rows[SIM_ROWS], unsigned offset)
{
    for (int i = 0; i < SIM_ROWS && rows[i].step; i++)
        if (offset % rows[i].step >= rows[i].run)
            return false;
    return true;
}

static bool access_some(unsigned number)
{
    struct stream *own = &streams[choose(STREAMS)];
    const unsigned start = gaps == MANY ? choose(BYTES / 2) : choose(BYTES);
    const unsigned length = gaps == MANY ? BYTES - start : 1 + choose(BYTES - start);
    struct sim_rows rows[SIM_ROWS] = {0};
    struct sim_stamp stamp = {0};
    struct seen ours = {0}, theirs = {0}, most = {0};

    // An event of another stream's, the program waiting for one, or nothing.
    if (choose(3) == 0)
        sim_clock_join(&own->past, &streams[choose(STREAMS)].past);
    if (gaps != MANY && choose(8) == 0)
        sim_thread_tell(&streams[choose(STREAMS)].past);
    sim_clock_join(&stamp.past, sim_thread_known());
    sim_clock_join(&stamp.past, &own->past);
    sim_stamp_place(&stamp, 1 + (unsigned)(own - streams));
    sim_clock_join(&own->past, &stamp.past);

    choose_rows(rows);

    struct sim_look look = {
        .note = {.lane = stamp.lane,
                 .site = number,
                 .epoch = stamp.epoch,
                 .bytes = length,
                 .comb = sim_comb_intern(rows),
                 .start = rows[0].step ? BASE + start : 0},
        .past = &stamp.past,
        .write = choose(2),
        .contents = choose(4),
        .found = found,
        .arg = &ours,
    };

    for (unsigned i = start; i < start + length; i++) {
        if (!has(rows, i - start))
            continue;
        expect(&theirs, &bytes[i], BASE + i, &look);
        allow(&most, &bytes[i], BASE + i, &look);
        keep(&bytes[i], &look);
    }
    sim_shadow_access(BASE + start, length, &look);
    sim_clock_finish(&stamp.past);
    return agree(&ours, &theirs, &most);
}

// Contents change in pieces that are not those of the accesses.
static void give_or_take(void)
{
    const unsigned start = choose(BYTES), length = 1 + choose(BYTES - start);
    const bool give = choose(2);

    if (give)
        sim_shadow_allocate(BASE + start, length);
    else
        sim_shadow_free(BASE + start, length);
    for (unsigned i = start; i < start + length; i++)
        bytes[i].content = give ? SIM_CONTENT_FRESH : SIM_CONTENT_FREED;
}

static bool run(unsigned long number, unsigned long seed)
{
    bool good = true;

    state = seed * 0x9e3779b97f4a7c15u + number;
    gaps = number % 2 ? ALIKE + choose(3) : NO_GAPS;
    row = gaps == MANY ? BYTES / 2 : 2 + choose(7);
    memset(bytes, 0, sizeof(bytes));
    sim_shadow_forget(BASE, BYTES);
    for (unsigned i = 0; i < ACCESSES && good; i++) {
        good = access_some(i);
        if (choose(10) == 0)
            give_or_take();
        if (choose(20) == 0)
            sim_shadow_sweep();
        if (choose(50) == 0) {
            sim_shadow_forget(BASE, BYTES);
            memset(bytes, 0, sizeof(bytes));
        }
    }
    if (!good)
        fprintf(stderr, "# program %lu of seed %lu differs\n", number, seed);
    return good;
}

int main(int argc, char *argv[])
{
    const unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    const unsigned long day = (unsigned long)time(NULL) / 86400;
    const unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 10) : day;
    bool good = true;

    for (unsigned long i = 0; i < count && good; i++)
        good = run(i, seed);
    printf("1..1\n%sok 1 - %lu programs of %d accesses, seed %lu\n", good ? "" : "not ",
           count, ACCESSES, seed);
    return !good;
}
