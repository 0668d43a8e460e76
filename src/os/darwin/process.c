/* SPDX-License-Identifier: MIT */
/*
 * The end of a child as a descriptor: a kqueue of its own, which a poll or another kqueue can wait
 * for; and descriptors that it must not have.
 * Thread: any.  Reading: kqueue(2), EVFILT_PROC; posix_spawnattr_setflags(3).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <sys/event.h>

#include "os/posix/native.h"

/* A child that has ended already may be refused (ESRCH): then an event of ours takes its place. */
static int add_filter(int fd, pid_t pid)
{
    struct kevent change;
    EV_SET(&change, (uintptr_t)pid, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
    if (kevent(fd, &change, 1, NULL, 0, NULL) == 0) {
        return 0;
    }
    if (errno != ESRCH) {
        return -1;
    }
    EV_SET(&change, 0, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
    if (kevent(fd, &change, 1, NULL, 0, NULL) != 0) {
        return -1;
    }
    EV_SET(&change, 0, EVFILT_USER, 0, NOTE_TRIGGER, 0, NULL);
    return kevent(fd, &change, 1, NULL, 0, NULL);
}

int gi_os_native_watch_child(pid_t pid, int *ret_source)
{
    int fd = kqueue();
    if (fd < 0) {
        return gi_os_error(errno);
    }
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (add_filter(fd, pid) != 0) {
        int error = gi_os_error(errno);
        gi_os_close(fd);
        return error;
    }
    *ret_source = fd;
    return 0;
}

int gi_os_native_close_others(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes)
{
    (void)actions;
#ifdef POSIX_SPAWN_CLOEXEC_DEFAULT
    short flags = 0;
    int failed = posix_spawnattr_getflags(attributes, &flags);
    return failed != 0
               ? failed
               : posix_spawnattr_setflags(attributes, (short)(flags | POSIX_SPAWN_CLOEXEC_DEFAULT));
#else
    (void)attributes;
    return 0;
#endif
}

static int prepare(int fd)
{
#ifdef SO_NOSIGPIPE
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on)) != 0) {
        return -1;
    }
#endif
    return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int gi_os_native_socket_pair(int ret_fds[2])
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) {
        return -1;
    }
    if (prepare(fds[0]) != 0 || prepare(fds[1]) != 0) {
        int saved_errno = errno;
        gi_os_close(fds[0]);
        gi_os_close(fds[1]);
        errno = saved_errno;
        return -1;
    }
    ret_fds[0] = fds[0];
    ret_fds[1] = fds[1];
    return 0;
}
