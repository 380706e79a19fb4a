// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_FILE_H
#define AS_PAGER_FILE_H

// A file without a name, read and written past the page cache where that works.
//
// Thread-safety: reads, writes and reservations may run at the same time.

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

// Offsets are multiples of it. Direct I/O wants the memory and the length to be, too: the
// end of a length that is not goes through a buffer.
enum { AS_FILE_ALIGN = 4096 };

struct as_file {
    int fd; // -1: none
    atomic_bool direct;
};

// Negative errnos.
int as_file_make(struct as_file *file, const char *folder);
void as_file_close(struct as_file *file);

// Has the file system set blocks aside, where it can: then writing there finds room.
int as_file_reserve(struct as_file *file, uint64_t offset, uint64_t bytes);

// A read may go on into what lies behind, up to the next multiple.
int as_file_write(struct as_file *file, const void *data, size_t bytes, uint64_t offset);
int as_file_read(struct as_file *file, void *data, size_t bytes, uint64_t offset);

#endif
