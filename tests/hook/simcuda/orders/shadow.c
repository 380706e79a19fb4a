// SPDX-License-Identifier: Apache-2.0
// The checker's memory against one that keeps, for each byte by itself, who wrote it last
// and everybody who has read it since. shadow [PROGRAMS [SEED]]
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

static struct byte bytes[BYTES];
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

static void keep(struct byte *byte, const struct sim_look *look)
{
    if (look->write)
        *byte = (struct byte){.written = true, .write = look->note};
    else
        byte->reads[byte->read_count++] = look->note;
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

static bool agree(const struct seen *ours, const struct seen *theirs)
{
    bool all = true;

    for (int clash = 0; clash < SIM_CLASHES; clash++)
        all = all && agree_on((enum sim_clash)clash, ours, theirs);
    return all;
}

static bool access_some(unsigned number)
{
    struct stream *own = &streams[choose(STREAMS)];
    const unsigned start = choose(BYTES), length = 1 + choose(BYTES - start);
    struct sim_stamp stamp = {0};
    struct seen ours = {0}, theirs = {0};

    // An event of another stream's, the program waiting for one, or nothing.
    if (choose(3) == 0)
        sim_clock_join(&own->past, &streams[choose(STREAMS)].past);
    if (choose(8) == 0)
        sim_thread_tell(&streams[choose(STREAMS)].past);
    sim_clock_join(&stamp.past, sim_thread_known());
    sim_clock_join(&stamp.past, &own->past);
    sim_stamp_place(&stamp, 1 + (unsigned)(own - streams));
    sim_clock_join(&own->past, &stamp.past);

    struct sim_look look = {
        .note = {stamp.lane, 0, 0, number, stamp.epoch, length},
        .past = &stamp.past,
        .write = choose(2),
        .contents = choose(4),
        .found = found,
        .arg = &ours,
    };

    for (unsigned i = start; i < start + length; i++)
        expect(&theirs, &bytes[i], BASE + i, &look);
    for (unsigned i = start; i < start + length; i++)
        keep(&bytes[i], &look);
    sim_shadow_access(BASE + start, length, &look);
    sim_clock_finish(&stamp.past);
    return agree(&ours, &theirs);
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
