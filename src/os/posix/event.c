/* SPDX-License-Identifier: MIT */
/*
 * Event sources of POSIX systems: descriptors like all others.  Contract: event.h.
 * Thread: any.
 */
#include "os/event.h"

#include <errno.h>
#include <poll.h>

#include "os/os.h"

int gi_os_event_duplicate(int source, int *ret_source)
{
    return gi_os_duplicate(source, ret_source);
}

void gi_os_event_close(int source)
{
    gi_os_close(source);
}

int gi_os_event_wait(int source)
{
    struct pollfd entry = {.fd = source, .events = POLLIN};
    int result;
    do {
        result = poll(&entry, 1, -1);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? gi_os_error(errno) : 0;
}
