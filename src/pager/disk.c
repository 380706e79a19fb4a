// SPDX-License-Identifier: Apache-2.0
#include "pager/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/log.h"
#include "core/settings.h"
#include "pager/file.h"
#include "track/digest.h"

enum { FREE_PERCENT = 90, PIECE_BYTES = 1 << 20 };

// Free room inside of the file, by offset; neighbours are one.
struct gap {
    uint64_t offset, bytes;
};

struct as_disk {
    pthread_mutex_t lock; // held over no call of the system
    pthread_mutex_t making; // comes before it
    const struct as_settings *settings;
    struct as_file file;
    bool tried; // to make the file
    atomic_bool closed; // nothing is to be written any more
    unsigned failures; // of writing, in a row
    struct gap *gaps;
    size_t gap_count, gap_room; // room for a gap beside each extent there is
    size_t extents;
    uint64_t end_bytes; // of what was ever given out
    struct as_disk_totals totals;
};

struct as_disk *as_disk_create(const struct as_settings *settings)
{
    struct as_disk *disk = calloc(1, sizeof(*disk));
    if (!disk)
        return NULL;
    pthread_mutex_init(&disk->lock, NULL);
    pthread_mutex_init(&disk->making, NULL);
    disk->settings = settings;
    disk->closed = !settings->disk;
    disk->file.fd = -1;
    return disk;
}

void as_disk_destroy(struct as_disk *disk)
{
    if (!disk)
        return;
    as_file_close(&disk->file);
    free(disk->gaps);
    pthread_mutex_destroy(&disk->making);
    pthread_mutex_destroy(&disk->lock);
    free(disk);
}

void as_disk_forked(struct as_disk *disk)
{
    as_file_close(&disk->file);
}

// --- What goes wrong

// Under the lock.
static void blame(struct as_disk *disk, const char *what, int err)
{
    if (*disk->totals.problem)
        return;
    const int folder = (int)disk->settings->disk_folder_bytes;
    snprintf(disk->totals.problem, sizeof(disk->totals.problem), "disk: %s %.*s%s%s",
             what, folder < 120 ? folder : 120, disk->settings->disk, err ? ": " : "",
             err ? strerrordesc_np(-err) : "");
    as_log(AS_LOG_WARN, "%s; what finds no room stays on the device",
           disk->totals.problem);
}

void as_disk_blame(struct as_disk *disk, const char *what, int err)
{
    pthread_mutex_lock(&disk->lock);
    blame(disk, what, err);
    pthread_mutex_unlock(&disk->lock);
}

// Under the lock.
static void count_outcome(struct as_disk *disk, const char *what, int err)
{
    if (!err) {
        disk->failures = 0;
    } else if (++disk->failures >= AS_DISK_TRIES) {
        blame(disk, what, err);
        atomic_store(&disk->closed, true);
    }
}

bool as_disk_is_open(struct as_disk *disk)
{
    return !atomic_load(&disk->closed);
}

// --- The file

// Of what is free some is left to others: a checkpoint that is not written is worse than
// a tensor that stays.
static uint64_t cap_in(const char *folder, uint64_t asked_bytes)
{
    struct statvfs room;
    if (statvfs(folder, &room))
        return asked_bytes;
    const uint64_t most = (uint64_t)room.f_bavail * room.f_frsize / 100 * FREE_PERCENT;
    return asked_bytes < most ? asked_bytes : most;
}

static int make_in(struct as_disk *disk, const char *folder, bool hollow)
{
    const uint64_t asked_bytes = disk->settings->disk_bytes;
    if (!asked_bytes) {
        as_disk_blame(disk, "a size of 0 was given for", 0);
        return -ENOSPC;
    }
    const int err = as_file_make(&disk->file, folder);
    if (err && !hollow) {
        as_disk_blame(disk, "cannot make a file in", err);
        return err;
    }
    const uint64_t cap = hollow ? asked_bytes : cap_in(folder, asked_bytes);
    pthread_mutex_lock(&disk->lock);
    disk->totals.cap_bytes = cap;
    if (cap < asked_bytes)
        blame(disk, "less is free than was asked for in", 0);
    pthread_mutex_unlock(&disk->lock);
    return 0;
}

// Once; a file that cannot be made ends it.
static void make_file(struct as_disk *disk, bool hollow)
{
    const size_t length = disk->settings->disk_folder_bytes;
    char folder[PATH_MAX];
    pthread_mutex_lock(&disk->making);
    if (!disk->tried) {
        const bool fits = length < sizeof(folder);
        snprintf(folder, sizeof(folder), "%.*s", (int)length, disk->settings->disk);
        disk->tried = true;
        if (!fits)
            as_disk_blame(disk, "the name is too long:", 0);
        if (!fits || make_in(disk, folder, hollow))
            atomic_store(&disk->closed, true);
    }
    pthread_mutex_unlock(&disk->making);
}

// --- Extents

static uint64_t room_of(size_t bytes)
{
    return ((uint64_t)bytes + AS_FILE_ALIGN - 1) / AS_FILE_ALIGN * AS_FILE_ALIGN;
}

static bool find_gap(struct as_disk *disk, uint64_t room, uint64_t *offset)
{
    for (size_t i = 0; i < disk->gap_count; i++) {
        struct gap *gap = &disk->gaps[i];
        if (gap->bytes < room)
            continue;
        *offset = gap->offset;
        gap->offset += room;
        gap->bytes -= room;
        if (!gap->bytes)
            memmove(gap, gap + 1, (--disk->gap_count - i) * sizeof(*gap));
        return true;
    }
    return false;
}

static bool make_gap_room(struct as_disk *disk)
{
    if (disk->gap_room > disk->extents + 1)
        return true;
    const size_t room = disk->gap_room ? 2 * disk->gap_room : 64;
    struct gap *grown = realloc(disk->gaps, room * sizeof(*grown));
    if (!grown)
        return false;
    disk->gaps = grown;
    disk->gap_room = room;
    return true;
}

// Under the lock. `fresh`: behind all that there was.
static int find_room(struct as_disk *disk, uint64_t room, uint64_t *offset, bool *fresh)
{
    if (!make_gap_room(disk))
        return -ENOMEM;
    *fresh = !find_gap(disk, room, offset);
    if (*fresh && room > disk->totals.cap_bytes - disk->end_bytes) {
        blame(disk, "no more room in", 0);
        return -ENOSPC;
    }
    if (*fresh) {
        *offset = disk->end_bytes;
        disk->end_bytes += room;
    }
    disk->extents++;
    disk->totals.bytes += room;
    if (disk->totals.bytes > disk->totals.peak_bytes)
        disk->totals.peak_bytes = disk->totals.bytes;
    return 0;
}

// What others took of the disk meanwhile shows here.
static int reserve(struct as_disk *disk, const struct as_extent *extent)
{
    const uint64_t room = room_of(extent->bytes);
    const int err = as_file_reserve(&disk->file, extent->offset, room);
    if (!err)
        return 0;
    as_disk_give(disk, extent);
    if (err != -ENOSPC && err != -EDQUOT && err != -EFBIG)
        return err;
    pthread_mutex_lock(&disk->lock);
    blame(disk, "no more room in", err);
    if (disk->totals.cap_bytes > disk->end_bytes)
        disk->totals.cap_bytes = disk->end_bytes;
    pthread_mutex_unlock(&disk->lock);
    return -ENOSPC;
}

int as_disk_take(struct as_disk *disk, size_t bytes, bool hollow,
                 struct as_extent *extent)
{
    bool fresh;
    *extent = (struct as_extent){.bytes = bytes};
    make_file(disk, hollow);
    if (!as_disk_is_open(disk))
        return -ENOSPC;
    pthread_mutex_lock(&disk->lock);
    int err = find_room(disk, room_of(bytes), &extent->offset, &fresh);
    pthread_mutex_unlock(&disk->lock);
    if (!err && fresh && !hollow)
        err = reserve(disk, extent);
    if (!err || err == -ENOSPC)
        return err;
    pthread_mutex_lock(&disk->lock);
    count_outcome(disk, "cannot reserve room in", err);
    pthread_mutex_unlock(&disk->lock);
    return err;
}

void as_disk_give(struct as_disk *disk, const struct as_extent *extent)
{
    const struct gap given = {extent->offset, room_of(extent->bytes)};
    pthread_mutex_lock(&disk->lock);
    size_t at = 0;
    while (at < disk->gap_count && disk->gaps[at].offset < given.offset)
        at++;
    assert(disk->gap_count < disk->gap_room);
    struct gap *gaps = disk->gaps;
    memmove(&gaps[at + 1], &gaps[at], (disk->gap_count++ - at) * sizeof(*gaps));
    gaps[at] = given;
    for (size_t i = at ? at - 1 : 0; i <= at && i + 1 < disk->gap_count;) {
        if (gaps[i].offset + gaps[i].bytes != gaps[i + 1].offset) {
            i++;
            continue;
        }
        gaps[i].bytes += gaps[i + 1].bytes;
        memmove(&gaps[i + 1], &gaps[i + 2], (--disk->gap_count - i - 1) * sizeof(*gaps));
        at -= i < at;
    }
    if (gaps[disk->gap_count - 1].offset + gaps[disk->gap_count - 1].bytes ==
        disk->end_bytes)
        disk->end_bytes = gaps[--disk->gap_count].offset;
    disk->extents--;
    disk->totals.bytes -= given.bytes;
    pthread_mutex_unlock(&disk->lock);
}

// --- Bytes

static uint64_t checksum_of(const void *data, size_t bytes)
{
    struct as_digest digest;
    as_digest_start(&digest);
    as_digest_add(&digest, data, bytes);
    return as_digest_value(&digest);
}

// `piece` has room for the extent, or for PIECE_BYTES.
static int compare_once(struct as_disk *disk, const struct as_extent *extent, void *piece)
{
    struct as_digest digest;
    as_digest_start(&digest);
    for (size_t at = 0; at < extent->bytes; at += PIECE_BYTES) {
        const size_t rest = extent->bytes - at;
        const size_t bytes = rest < PIECE_BYTES ? rest : PIECE_BYTES;
        const int err = as_file_read(&disk->file, piece, bytes, extent->offset + at);
        if (err)
            return err;
        as_digest_add(&digest, piece, bytes);
    }
    return as_digest_value(&digest) == extent->checksum ? 0 : -EBADMSG;
}

// While the host still has the bytes, a disk that does not keep them costs nothing.
static int compare(struct as_disk *disk, const struct as_extent *extent)
{
    const uint64_t room = room_of(extent->bytes);
    void *piece = aligned_alloc(AS_FILE_ALIGN, room < PIECE_BYTES ? room : PIECE_BYTES);
    if (!piece)
        return -ENOMEM;
    int err = compare_once(disk, extent, piece);
    if (err)
        err = compare_once(disk, extent, piece);
    free(piece);
    return err;
}

int as_disk_write(struct as_disk *disk, struct as_extent *extent, const void *data)
{
    extent->checksum = checksum_of(data, extent->bytes);
    int err = as_file_write(&disk->file, data, extent->bytes, extent->offset);
    const bool written = !err;
    if (written)
        err = compare(disk, extent);
    pthread_mutex_lock(&disk->lock);
    if (written && err == -EBADMSG) {
        blame(disk, "other bytes came back at once than were written to", 0);
        atomic_store(&disk->closed, true);
    }
    count_outcome(disk,
                  written ? "cannot read back from the file in"
                          : "cannot write to the file in",
                  err);
    disk->totals.out_bytes += err ? 0 : extent->bytes;
    pthread_mutex_unlock(&disk->lock);
    return err;
}

static int read_once(struct as_disk *disk, const struct as_extent *extent, void *data)
{
    const int err = as_file_read(&disk->file, data, extent->bytes, extent->offset);
    if (err)
        return err;
    return checksum_of(data, extent->bytes) == extent->checksum ? 0 : -EBADMSG;
}

int as_disk_read(struct as_disk *disk, const struct as_extent *extent, void *data)
{
    int err = read_once(disk, extent, data);
    if (err)
        err = read_once(disk, extent, data);
    pthread_mutex_lock(&disk->lock);
    if (err)
        blame(disk,
              err == -EBADMSG ? "other bytes came back than were written to"
                              : "cannot read from the file in",
              err == -EBADMSG ? 0 : err);
    disk->totals.in_bytes += err ? 0 : extent->bytes;
    pthread_mutex_unlock(&disk->lock);
    return err;
}

void as_disk_count(struct as_disk *disk, size_t bytes, bool out)
{
    pthread_mutex_lock(&disk->lock);
    *(out ? &disk->totals.out_bytes : &disk->totals.in_bytes) += bytes;
    pthread_mutex_unlock(&disk->lock);
}

void as_disk_totals(struct as_disk *disk, struct as_disk_totals *totals)
{
    pthread_mutex_lock(&disk->lock);
    *totals = disk->totals;
    pthread_mutex_unlock(&disk->lock);
}
