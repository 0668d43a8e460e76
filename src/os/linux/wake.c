/* SPDX-License-Identifier: MIT */
/*
 * Waking over an eventfd: one descriptor, eight bytes a call.
 * Thread: signal from any, the rest from the thread that waits.  Reading: eventfd(2).
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/os.h"

int gi_os_wake_open(struct gi_os_wake *wake)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        return gi_os_error(errno);
    }
    wake->read_fd = fd;
    wake->write_fd = fd;
    return 0;
}

void gi_os_wake_close(struct gi_os_wake *wake)
{
    gi_os_close(wake->read_fd);
    wake->read_fd = -1;
    wake->write_fd = -1;
}

void gi_os_wake_signal(const struct gi_os_wake *wake)
{
    uint64_t one = 1;
    ssize_t written = write(wake->write_fd, &one, sizeof(one));
    (void)written; /* it fails only when the counter is full, and then it is readable anyway */
}

void gi_os_wake_clear(const struct gi_os_wake *wake)
{
    uint64_t count;
    ssize_t got = read(wake->read_fd, &count, sizeof(count));
    (void)got; /* nothing there is cleared as well */
}
