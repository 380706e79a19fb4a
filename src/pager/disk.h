// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_DISK_H
#define AS_PAGER_DISK_H

// The file below host memory: extents, each with the checksum of what was written.
//
// The file is made with the first extent and has no name from then on, so that its room
// comes back however the process ends. It grows, block by block of the file system's own,
// to ACTSWAP_DISK's size or to nine tenths of what the folder has free, and extents that
// are given back are used again. Reads and writes go past the page cache where the file
// system and the memory allow it, which is found out by trying.
//
// What is written is read back at once and compared: what does not come back as it went is
// not written, and nothing more is. What comes back later is what was written, or an error:
// it is compared with its checksum, read a second time if that differs, and then given up.
// Errors of writing are counted, and after AS_DISK_TRIES in a row nothing more is written;
// what is there is still read.
//
// Thread-safety: every function may be called from any thread, for different extents at
// the same time. as_disk_take() and as_disk_write() want SIGXFSZ blocked.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct as_settings;
struct as_disk;

enum { AS_DISK_TRIES = 3, AS_DISK_PROBLEM = 256 };

// Belongs to the caller from as_disk_take() to as_disk_give().
struct as_extent {
    uint64_t offset;
    size_t bytes; // that the caller asked for
    uint64_t checksum;
};

// NULL: out of memory. No file is made yet.
struct as_disk *as_disk_create(const struct as_settings *settings);
void as_disk_destroy(struct as_disk *disk);

// Whether more may be written.
bool as_disk_is_open(struct as_disk *disk);

// Room for `bytes`; `hollow`: to be counted alone. -ENOSPC: there is none, at least now.
// Another error counts as one of as_disk_write().
int as_disk_take(struct as_disk *disk, size_t bytes, bool hollow,
                 struct as_extent *extent);
void as_disk_give(struct as_disk *disk, const struct as_extent *extent);

// A negative errno; -EBADMSG if the bytes are not those that were written. The reading
// back of as_disk_write() is not counted as bytes read.
int as_disk_write(struct as_disk *disk, struct as_extent *extent, const void *data);
int as_disk_read(struct as_disk *disk, const struct as_extent *extent, void *data);

// Bytes of nothing were moved.
void as_disk_count(struct as_disk *disk, size_t bytes, bool out);

// The reason, in words, why less is written than was asked for; it stays the first.
void as_disk_blame(struct as_disk *disk, const char *what, int err);

struct as_disk_totals {
    uint64_t out_bytes, in_bytes;
    uint64_t bytes, peak_bytes; // in extents
    uint64_t cap_bytes; // 0: no file yet
    char problem[AS_DISK_PROBLEM]; // "": none
};

void as_disk_totals(struct as_disk *disk, struct as_disk_totals *totals);

// In a forked child: its copy of the file must not keep the room when the parent ends.
void as_disk_forked(struct as_disk *disk);

#endif
