// SPDX-License-Identifier: Apache-2.0
#include "pager/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 16 << 20 };

// Some file systems know no file without a name; then it loses it at once.
static int make_named(const char *folder)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof(path), "%s/.actswap-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof(path))
        return -ENAMETOOLONG;
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (unlink(path)) {
        const int err = -errno;
        close(fd);
        return err;
    }
    return fd;
}

static bool try_direct(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
}

int as_file_make(struct as_file *file, const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
        fd = make_named(folder);
    else if (fd < 0)
        fd = -errno;
    if (fd < 0)
        return fd;
    file->direct = try_direct(fd);
    file->fd = fd;
    return 0;
}

void as_file_close(struct as_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

int as_file_reserve(struct as_file *file, uint64_t offset, uint64_t bytes)
{
    int err;
    do
        err = fallocate(file->fd, 0, (off_t)offset, (off_t)bytes) ? -errno : 0;
    while (err == -EINTR);
    return err == -EOPNOTSUPP || err == -ENOSYS ? 0 : err;
}

// From now on through the page cache, as this memory or file system wants.
static bool give_up_direct(struct as_file *file)
{
    const int flags = fcntl(file->fd, F_GETFL);
    const bool changed = flags >= 0 && fcntl(file->fd, F_SETFL, flags & ~O_DIRECT) == 0;
    atomic_store(&file->direct, false); // last: who sees it finds it changed
    return changed;
}

struct transfer {
    struct as_file *file;
    bool out;
    char *data;
    size_t bytes;
    uint64_t offset;
};

static ssize_t move_once(const struct transfer *transfer)
{
    const size_t bytes = transfer->bytes < PIECE_BYTES ? transfer->bytes : PIECE_BYTES;
    const int fd = transfer->file->fd;
    const off_t offset = (off_t)transfer->offset;
    return transfer->out ? pwrite(fd, transfer->data, bytes, offset)
                         : pread(fd, transfer->data, bytes, offset);
}

static int move_all(struct transfer transfer)
{
    while (transfer.bytes) {
        const bool direct = atomic_load(&transfer.file->direct);
        const ssize_t moved = move_once(&transfer);
        if (moved > 0) {
            transfer.data += moved;
            transfer.offset += (uint64_t)moved;
            transfer.bytes -= (size_t)moved;
            continue;
        }
        const int err = moved ? errno : EIO; // the end of the file, or no room
        const bool refused = direct && (err == EINVAL || err == EFAULT);
        if (err != EINTR && !(refused && give_up_direct(transfer.file)))
            return -err;
    }
    return 0;
}

// The last bytes, which are no whole number of blocks.
static int move_rest(struct transfer transfer)
{
    _Alignas(AS_FILE_ALIGN) char block[AS_FILE_ALIGN] = {0};
    if (!transfer.bytes)
        return 0;
    char *const data = transfer.data;
    const size_t bytes = transfer.bytes;
    if (transfer.out)
        memcpy(block, data, bytes);
    transfer.data = block;
    transfer.bytes = sizeof(block);
    const int err = move_all(transfer);
    if (!err && !transfer.out)
        memcpy(data, block, bytes);
    return err;
}

static int move(struct transfer transfer)
{
    struct transfer rest = transfer;
    rest.bytes = transfer.bytes % AS_FILE_ALIGN;
    transfer.bytes -= rest.bytes;
    rest.data += transfer.bytes;
    rest.offset += transfer.bytes;
    if ((uintptr_t)transfer.data % AS_FILE_ALIGN && atomic_load(&transfer.file->direct))
        give_up_direct(transfer.file);
    const int err = move_all(transfer);
    return err ? err : move_rest(rest);
}

int as_file_write(struct as_file *file, const void *data, size_t bytes, uint64_t offset)
{
    return move((struct transfer){file, true, (char *)data, bytes, offset});
}

int as_file_read(struct as_file *file, void *data, size_t bytes, uint64_t offset)
{
    return move((struct transfer){file, false, data, bytes, offset});
}
