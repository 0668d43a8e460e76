/* SPDX-License-Identifier: MIT */
/*
 * Files beneath a root, for sending.  A path is resolved twice: once without opening anything, to
 * see what is there, and only for a file or a folder again to open it; both must name the same.
 * FIFOs and devices are never opened; should one take the place of a file in between, it is opened
 * without waiting and let go.
 * Thread: any.  Reading: open(2), fstat(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <gori/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/resolve.h"

/* Older than the standard's name for it. */
#ifdef __APPLE__
#define MODIFIED st_mtimespec
#else
#define MODIFIED st_mtim
#endif

/* How often a name may come to mean another file between the two looks. */
#define TRIES_MAX 8

int gi_os_open_root(const char *path, int *ret_fd)
{
    int fd = open(path, GI_OS_O_LOOK | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return gi_os_error(errno);
    }
    *ret_fd = fd;
    return 0;
}

int gi_os_describe(const struct stat *status, struct gori_file_info *ret_info)
{
    if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode)) {
        return GORI_EACCESS;
    }
    *ret_info = (struct gori_file_info){
        .size = (uint64_t)status->st_size,
        .modified_s = (int64_t)status->MODIFIED.tv_sec,
        .modified_ns = (uint32_t)status->MODIFIED.tv_nsec,
        .device = (uint64_t)status->st_dev,
        .inode = (uint64_t)status->st_ino,
        .is_directory = S_ISDIR(status->st_mode),
    };
    return 0;
}

int gi_os_look(int fd, struct gori_file_info *ret_info)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? gi_os_describe(&status, ret_info) : gi_os_error(errno);
}

int gi_os_stat_by(gi_os_resolve_fn *resolve, int root_fd, const char *path,
                  struct gori_file_info *ret_info)
{
    int fd;
    int error = resolve(root_fd, path, GI_OS_O_LOOK, 0, &fd);
    if (error < 0) {
        return error;
    }
    error = gi_os_look(fd, ret_info);
    gi_os_close(fd);
    return error;
}

int gi_os_open_by(gi_os_resolve_fn *resolve, int root_fd, const char *path, int *ret_fd,
                  struct gori_file_info *ret_info)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        struct gori_file_info before;
        int error = gi_os_stat_by(resolve, root_fd, path, &before);
        if (error < 0) {
            return error;
        }
        int fd;
        error = resolve(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &fd);
        if (error < 0) {
            return error;
        }
        struct gori_file_info after;
        error = gi_os_look(fd, &after);
        if (error == 0 && after.inode == before.inode && after.device == before.device) {
            *ret_fd = fd;
            *ret_info = after;
            return 0;
        }
        gi_os_close(fd);
    }
    return GORI_EAGAIN;
}

/* Where openat2 is missing, or a filter refuses it, the walk gives the same answer. */
static bool has_no_openat2(int error)
{
    return error == GORI_ENOSYS || error == GORI_EPERM;
}

int gi_os_open_beneath(int root_fd, const char *path, int *ret_fd, struct gori_file_info *ret_info)
{
    int error = gi_os_open_by(gi_os_resolve_by_kernel, root_fd, path, ret_fd, ret_info);
    if (has_no_openat2(error)) {
        error = gi_os_open_by(gi_os_resolve_by_walk, root_fd, path, ret_fd, ret_info);
    }
    return error;
}

int gi_os_stat_beneath(int root_fd, const char *path, struct gori_file_info *ret_info)
{
    int error = gi_os_stat_by(gi_os_resolve_by_kernel, root_fd, path, ret_info);
    if (has_no_openat2(error)) {
        error = gi_os_stat_by(gi_os_resolve_by_walk, root_fd, path, ret_info);
    }
    return error;
}

void gi_os_close_file(int fd)
{
    gi_os_close(fd);
}

int64_t gi_os_read_at(int fd, void *data, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t result = pread(fd, (uint8_t *)data + done, size - done, (off_t)(offset + done));
        if (result == 0) {
            break;
        }
        if (result > 0) {
            done += (size_t)result;
        } else if (errno != EINTR) {
            return gi_os_error(errno);
        }
    }
    return (int64_t)done;
}
