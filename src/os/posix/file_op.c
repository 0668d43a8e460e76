/* SPDX-License-Identifier: MIT */
/*
 * What file ops do where a thread does them: one system call each, which may block, and the same
 * rules as for files beneath a root: no FIFO is waited for, no special file stays open.
 * Not for a loop's own thread.
 * Thread: any.  Reading: open(2), preadv(2), fsync(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <gori/error.h>
#include <gori/file_op.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "os/posix/native.h"
#include "os/resolve.h"

/* The pieces go to the system as they are, but for the first when a part of it is moved. */
_Static_assert(sizeof(struct gori_slice) == sizeof(struct iovec), "");
_Static_assert(offsetof(struct gori_slice, data) == offsetof(struct iovec, iov_base), "");
_Static_assert(offsetof(struct gori_slice, size) == offsetof(struct iovec, iov_len), "");

int gi_os_open_flags(uint32_t flags)
{
    int access = O_RDONLY;
    if (flags & GI_OS_FILE_WRITE) {
        access = (flags & GI_OS_FILE_READ) ? O_RDWR : O_WRONLY;
    }
    return access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
           ((flags & GI_OS_FILE_CREATE) ? O_CREAT : 0) |
           ((flags & GI_OS_FILE_EXCLUSIVE) ? O_EXCL : 0) |
           ((flags & GI_OS_FILE_TRUNCATE) ? O_TRUNC : 0) |
           ((flags & GI_OS_FILE_APPEND) ? O_APPEND : 0);
}

/* What it is; and calls on it wait from here on. */
static int take_opened(int fd, struct gori_file_info *ret_info)
{
    int error = gi_os_look(fd, ret_info);
    if (error < 0) {
        return error;
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0) {
        return gi_os_error(errno);
    }
    return 0;
}

static int open_by_system(const struct gi_os_file_open *how, int *ret_fd)
{
    int fd;
    do {
        fd = open(how->path, gi_os_open_flags(how->flags), (mode_t)how->mode);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return gi_os_error(errno);
    }
    *ret_fd = fd;
    return 0;
}

static int open_by_root(const struct gi_os_file_open *how, int *ret_fd)
{
    int flags = gi_os_open_flags(how->flags);
    mode_t mode = (mode_t)how->mode;
    int error = gi_os_resolve_by_kernel(how->root_fd, how->path, flags, mode, ret_fd);
    if (error == GORI_ENOSYS || error == GORI_EPERM) {
        error = gi_os_resolve_by_walk(how->root_fd, how->path, flags, mode, ret_fd);
    }
    return error;
}

int gi_os_file_open(const struct gi_os_file_open *how, int *ret_fd, struct gori_file_info *ret_info)
{
    int fd;
    int error = how->root_fd == GI_OS_NO_ROOT ? open_by_system(how, &fd) : open_by_root(how, &fd);
    if (error < 0) {
        return error;
    }
    error = take_opened(fd, ret_info);
    if (error < 0) {
        gi_os_close_file(fd);
        return error;
    }
    *ret_fd = fd;
    return 0;
}

int gi_os_file_stat_path(int root_fd, const char *path, struct gori_file_info *ret_info)
{
    if (root_fd != GI_OS_NO_ROOT) {
        return gi_os_stat_beneath(root_fd, path, ret_info);
    }
    struct stat status;
    return stat(path, &status) == 0 ? gi_os_describe(&status, ret_info) : gi_os_error(errno);
}

int gi_os_file_stat(int fd, struct gori_file_info *ret_info)
{
    return gi_os_look(fd, ret_info);
}

int64_t gi_os_file_read(int fd, const struct gori_slice *pieces, uint32_t count, size_t skip,
                        uint64_t offset)
{
    ssize_t result;
    do {
        if (skip > 0 || count == 1) {
            void *room = (void *)((uintptr_t)pieces->data + skip);
            result = pread(fd, room, pieces->size - skip, (off_t)offset);
        } else {
            const struct iovec *vector = (const struct iovec *)(const void *)pieces;
            result = preadv(fd, vector, (int)count, (off_t)offset);
        }
    } while (result < 0 && errno == EINTR);
    return result < 0 ? gi_os_error(errno) : result;
}

int64_t gi_os_file_write(int fd, const struct gori_slice *pieces, uint32_t count, size_t skip,
                         uint64_t offset, bool append)
{
    ssize_t result;
    bool is_one = skip > 0 || count == 1;
    const uint8_t *data = pieces->data + skip;
    const struct iovec *vector = (const struct iovec *)(const void *)pieces;
    do {
        if (append) { /* not every system's pwrite knows O_APPEND */
            result = is_one ? write(fd, data, pieces->size - skip) : writev(fd, vector, (int)count);
        } else {
            result = is_one ? pwrite(fd, data, pieces->size - skip, (off_t)offset)
                            : pwritev(fd, vector, (int)count, (off_t)offset);
        }
    } while (result < 0 && errno == EINTR);
    return result < 0 ? gi_os_error(errno) : result;
}

int gi_os_file_sync(int fd, bool data_only)
{
    return gi_os_native_sync(fd, data_only) == 0 ? 0 : gi_os_error(errno);
}

int gi_os_file_truncate(int fd, uint64_t size)
{
    int failed;
    do {
        failed = ftruncate(fd, (off_t)size);
    } while (failed != 0 && errno == EINTR);
    return failed == 0 ? 0 : gi_os_error(errno);
}

int gi_os_file_close(int fd)
{
    /* Also after EINTR the descriptor is gone on the systems we know: never close it again. */
    return close(fd) == 0 || errno == EINTR ? 0 : gi_os_error(errno);
}
