/* SPDX-License-Identifier: MIT */
/*
 * Event sources of Windows: objects that can be waited for.  Contract: event.h.
 * Thread: any.
 */
#include "os/windows/system.h"

#include "os/event.h"
#include "os/os.h"

int gi_os_event_duplicate(int source, int *ret_source)
{
    HANDLE self = GetCurrentProcess();
    HANDLE copy;
    if (!DuplicateHandle(self, gi_os_handle(source), self, &copy, 0, FALSE,
                         DUPLICATE_SAME_ACCESS)) {
        return gi_os_error((int)GetLastError());
    }
    *ret_source = gi_os_descriptor(copy);
    return 0;
}

void gi_os_event_close(int source)
{
    (void)CloseHandle(gi_os_handle(source));
}

int gi_os_event_wait(int source)
{
    DWORD result = WaitForSingleObject(gi_os_handle(source), INFINITE);
    return result == WAIT_OBJECT_0 ? 0 : gi_os_error((int)GetLastError());
}
