/* SPDX-License-Identifier: MIT */
/*
 * Waking over a pipe, for systems without eventfd.  Both ends do not block; a full pipe is readable
 * anyway.
 * Thread: signal from any, the rest from the thread that waits.  Reading: pipe(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "os/os.h"

static bool prepare(int fd)
{
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

int gi_os_wake_open(struct gi_os_wake *wake)
{
    int fds[2];
    if (pipe(fds) != 0) {
        return gi_os_error(errno);
    }
    if (!prepare(fds[0]) || !prepare(fds[1])) {
        int error = gi_os_error(errno);
        gi_os_close(fds[0]);
        gi_os_close(fds[1]);
        return error;
    }
    wake->read_fd = fds[0];
    wake->write_fd = fds[1];
    return 0;
}

void gi_os_wake_close(struct gi_os_wake *wake)
{
    gi_os_close(wake->read_fd);
    gi_os_close(wake->write_fd);
    wake->read_fd = -1;
    wake->write_fd = -1;
}

void gi_os_wake_signal(const struct gi_os_wake *wake)
{
    ssize_t written = write(wake->write_fd, "", 1);
    (void)written; /* it fails only when the pipe is full, and then it is readable anyway */
}

void gi_os_wake_clear(const struct gi_os_wake *wake)
{
    char bytes[64];
    while (read(wake->read_fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes)) {
    }
}
