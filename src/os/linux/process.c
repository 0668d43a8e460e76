/* SPDX-License-Identifier: MIT */
/*
 * The end of a child as a descriptor (pidfd, from Linux 5.3 on), and descriptors that it must not
 * have.
 * Thread: any.  Reading: pidfd_open(2), close_range(2).
 */
#include <errno.h>
#include <gori/error.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/posix/native.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* the same on all processors but alpha */
#endif

int gi_os_native_watch_child(pid_t pid, int *ret_source)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) {
        return gi_os_error(errno);
    }
    *ret_source = fd; /* it closes on exec by itself */
    return 0;
}

int gi_os_native_close_others(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes)
{
    (void)attributes;
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
    return posix_spawn_file_actions_addclosefrom_np(actions, 3);
#endif
#endif
    (void)actions;
    return 0;
}

int gi_os_native_socket_pair(int ret_fds[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_fds);
}
