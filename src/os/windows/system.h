/* SPDX-License-Identifier: MIT */
/*
 * What the files of this folder share: the system's headers in the one order that works, and the
 * way between a handle of Windows and the `int` that os.h names descriptors by.
 *
 * Only the low 32 bits of a handle or socket mean anything, and sign extension gives the handle
 * back: Windows promises it, so that 32- and 64-bit programs may share handles.  So an int holds
 * any of them, and -1 is INVALID_HANDLE_VALUE and INVALID_SOCKET both.
 * Reading: "Interprocess Communication Between 32-bit and 64-bit Applications" (Microsoft Learn).
 */
#ifndef GI_OS_WINDOWS_SYSTEM_H
#define GI_OS_WINDOWS_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include <winsock2.h>

#include <afunix.h>
#include <mswsock.h>
#include <windows.h>
#include <ws2tcpip.h>

#include "base/assert.h"

static inline HANDLE gi_os_handle(int descriptor)
{
    return (HANDLE)(intptr_t)descriptor;
}

static inline SOCKET gi_os_native_socket(int descriptor)
{
    return (SOCKET)(intptr_t)descriptor;
}

static inline int gi_os_descriptor(HANDLE handle)
{
    int descriptor = (int)(intptr_t)handle;
    GI_ASSERT(gi_os_handle(descriptor) == handle);
    return descriptor;
}

static inline int gi_os_socket_descriptor(SOCKET native)
{
    return gi_os_descriptor((HANDLE)native);
}

/**
 * Whether the stream of a socket, of which a receive says that it has ended, was in truth reset.
 * Windows says so by itself.  Wine (seen with 8.0) tells it to a receive that waits when it
 * happens, and to those that come later the end of the stream; only its poll still knows.
 */
bool gi_os_was_reset(int fd);

/** What an open file is like. */
struct gori_file_info;
int gi_os_describe_handle(HANDLE file, struct gori_file_info *ret_info);

#endif
