/* SPDX-License-Identifier: MIT */
/*
 * macOS has no call that holds the rules of os/resolve.h: the walk does it.
 * Thread: any.
 */
#include "os/resolve.h"

#include <gori/error.h>

int gi_os_resolve_by_kernel(int root_fd, const char *path, int open_flags, mode_t mode, int *ret_fd)
{
    (void)root_fd;
    (void)path;
    (void)open_flags;
    (void)mode;
    (void)ret_fd;
    return GORI_ENOSYS;
}
