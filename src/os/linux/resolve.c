/* SPDX-License-Identifier: MIT */
/*
 * Paths beneath a root by openat2, where the kernel itself holds the rules of os/resolve.h.
 * Thread: any.  Reading: openat2(2).
 */
#include "os/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel gives up with EAGAIN when somebody renames on the way of a ".."; it is rare. */
#define TRIES_MAX 32

int gi_os_resolve_by_kernel(int root_fd, const char *path, int open_flags, mode_t mode, int *ret_fd)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(open_flags | O_CLOEXEC),
        .mode = (open_flags & O_CREAT) != 0 ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    long fd = -1;
    for (int i = 0; i < TRIES_MAX; i++) {
        fd = syscall(SYS_openat2, root_fd, path[0] != '\0' ? path : ".", &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) {
            break;
        }
    }
    if (fd < 0) {
        return gi_os_error(errno);
    }
    *ret_fd = (int)fd;
    return 0;
}
