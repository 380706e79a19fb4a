// SPDX-License-Identifier: Apache-2.0
#include "simcuda/check/check.h"

#include <stdint.h>

#include "simcuda/check/report.h"
#include "simcuda/check/thread.h"
#include "simcuda/order/entry.h"
#include "simcuda/runtime/device.h"
#include "simcuda/runtime/memory.h"
#include "simcuda/simcuda.h"

static const char *(*line_of_program)(void);

void sim_check_place(struct sim_entry *entry, const struct sim_entry *tail)
{
    if (!entry->stamp)
        return;
    sim_clock_join(&entry->stamp->past, sim_thread_known());
    sim_stamp_place(entry->stamp, tail ? tail->stamp->lane : SIM_LANE_NONE);
}

struct access {
    struct sim_look look;
    struct sim_report report;
    const struct sim_entry *entry; // the host function that makes it, or NULL
};

static void found(void *arg, const struct sim_found *found)
{
    struct access *access = arg;

    access->report.found = found;
    sim_report_say(&access->report);
}

// What a host function does is seen when it runs. Work that comes after it cannot be done
// by then; the host comes after it from when it was told.
static bool is_later(void *arg, const struct sim_note *note)
{
    const struct access *access = arg;
    const struct sim_stamp *own = access->entry->stamp;
    const struct sim_entry *other;

    if (note->host)
        return note->epoch > access->entry->told;
    other = sim_entry_pending_at(note->lane, note->epoch);
    return other && sim_clock_has(&other->stamp->past, own->lane, own->epoch);
}

static void look(const struct sim_access *what, const struct sim_note *note,
                 const struct sim_clock *past, bool write, bool contents)
{
    const struct sim_entry *within = sim_entry_running();
    struct access access = {
        .look = {.note = *note,
                 .past = past,
                 .write = write,
                 .contents = contents,
                 .is_later = within ? is_later : NULL,
                 .found = found,
                 .arg = &access},
        .entry = within,
        .report = {.site = note->site, .write = write, .bytes = what->bytes},
    };

    access.look.note.bytes = what->bytes;
    access.look.note.comb = sim_comb_intern(what->rows);
    access.look.note.start = access.look.note.comb ? (uintptr_t)what->address : 0;
    sim_shadow_access((uintptr_t)what->address, what->bytes, &access.look);
}

// Reads come first: what is written in place is read before it.
static void look_at_all(const struct sim_access *accesses, size_t count,
                        const struct sim_note *note, const struct sim_clock *past,
                        bool contents)
{
    for (size_t i = 0; i < count; i++)
        if (!accesses[i].write)
            look(&accesses[i], note, past, false, contents && !accesses[i].gaps);
    for (size_t i = 0; i < count; i++)
        if (accesses[i].write)
            look(&accesses[i], note, past, true, contents);
}

static struct sim_note note_of(const struct sim_entry *entry)
{
    const struct sim_site site = {
        .name = entry->task.name,
        .place = entry->task.line,
        .stream = entry->stream,
        .device = entry->device,
    };

    return (struct sim_note){
        .lane = entry->stamp->lane,
        .epoch = entry->stamp->epoch,
        .site = sim_site_intern(&site),
    };
}

void sim_check_entry(const struct sim_entry *entry)
{
    const struct sim_lost *what = &entry->task.lost;

    if (!entry->stamp || !what->count || sim_thread_is_paused())
        return;

    const struct sim_note note = note_of(entry);

    // A graph's own memory is free for others between its replays.
    look_at_all(what->accesses, what->count, &note, &entry->stamp->past,
                !entry->replayed);
}

// Memory that copies read and write while the host goes on.
static bool is_shared(const void *address)
{
    const enum sim_place place = sim_memory_locate(address).place;

    return place == SIM_PINNED || place == SIM_REGISTERED || place == SIM_MANAGED;
}

void sim_check_host(const void *address, size_t bytes, bool write, const char *name)
{
    if (!sim_check() || !bytes || sim_thread_is_paused() || !is_shared(address))
        return;

    const struct sim_access what = {.address = address, .bytes = bytes, .write = write};
    const struct sim_entry *within = sim_entry_running();
    const char *place = within ? within->task.line : sim_check_line();

    sim_queue_lock();
    if (within) {
        const struct sim_note note = note_of(within);

        look_at_all(&what, 1, &note,
                    sim_threads_are_apart() ? sim_thread_known() : &within->stamp->past,
                    false);
    } else {
        const struct sim_site site = {.name = name, .place = place, .device = -1};
        const struct sim_step step = sim_thread_step();
        const struct sim_note note = {
            .lane = step.lane,
            .host = true,
            .epoch = step.epoch,
            .site = sim_site_intern(&site),
        };

        look_at_all(&what, 1, &note, sim_thread_known(), true);
    }
    sim_queue_unlock();
}

// Whatever it does then may be to tell the program so.
void sim_check_begin(struct sim_entry *entry)
{
    if (!entry->stamp)
        return;
    entry->told = sim_thread_steps();
    sim_thread_tell_all(&entry->stamp->past);
    sim_thread_enter(&entry->stamp->past);
}

void sim_check_pause(int by)
{
    sim_thread_pause(by);
}

void sim_check_lines(const char *(*line)(void))
{
    line_of_program = line;
    sim_thread_exclude((const void *)(uintptr_t)line);
}

const char *sim_check_line(void)
{
    return sim_check() && line_of_program ? line_of_program() : NULL;
}

const char *sim_check_text(const char *text)
{
    if (!sim_check())
        return text;
    sim_queue_lock();
    text = sim_text_intern(text);
    sim_queue_unlock();
    return text;
}

void sim_check_block(const void *address, size_t bytes, bool allocated)
{
    if (!sim_check())
        return;
    sim_queue_lock();
    if (allocated)
        sim_shadow_allocate((uintptr_t)address, bytes);
    else
        sim_shadow_free((uintptr_t)address, bytes);
    sim_queue_unlock();
}

void sim_check_allocated(const void *address, size_t bytes)
{
    sim_check_block(address, bytes, true);
}

void sim_check_forget(const void *address, size_t bytes)
{
    if (!sim_check())
        return;
    sim_queue_lock();
    sim_shadow_forget((uintptr_t)address, bytes);
    sim_queue_unlock();
}

void sim_races_get(struct sim_races *races)
{
    *races = (struct sim_races){
        .checked = sim_check() != SIM_CHECK_OFF,
        .pairs = sim_report_pairs(),
        .accesses = sim_report_clashes(),
        .unwritten = sim_report_unwritten(),
    };
}
