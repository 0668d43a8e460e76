/* SPDX-License-Identifier: MIT */
/*
 * Event sources of POSIX systems: descriptors like all others.  Contract: event.h.
 * Thread: any.
 */
#include "os/event.h"

#include "os/os.h"

int gi_os_event_duplicate(int source, int *ret_source)
{
    return gi_os_duplicate(source, ret_source);
}

void gi_os_event_close(int source)
{
    gi_os_close(source);
}
