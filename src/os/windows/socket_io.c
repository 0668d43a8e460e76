/* SPDX-License-Identifier: MIT */
/*
 * Moving bytes through stream sockets without waiting.  All of these need a socket that does not
 * block: Winsock has no flag for a single call.  The engine iocp makes its sockets so and lets the
 * port wait for them; overlapped operations do not care.
 * Thread: any.  Reading: WSARecv, WSASend (Microsoft Learn).
 */
#include <gori/error.h>
#include <gori/op.h>
#include <limits.h>

#include "base/compiler.h"
#include "os/os.h"
#include "os/windows/system.h"

static int last_error(void)
{
    return gi_os_error(WSAGetLastError());
}

bool gi_os_was_reset(int fd)
{
    WSAPOLLFD poll_fd = {.fd = gi_os_native_socket(fd), .events = POLLRDNORM};
    return WSAPoll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLERR);
}

int64_t gi_os_receive(int fd, void *data, size_t size)
{
    WSABUF buffer = {.len = (ULONG)gi_min_size(size, INT_MAX), .buf = data};
    DWORD received = 0;
    DWORD flags = 0;
    if (WSARecv(gi_os_native_socket(fd), &buffer, 1, &received, &flags, NULL, NULL) != 0) {
        return last_error();
    }
    return received == 0 && gi_os_was_reset(fd) ? GORI_ECONNRESET : (int64_t)received;
}

int64_t gi_os_send(int fd, const struct gori_slice *pieces, uint32_t count, size_t offset,
                   bool more)
{
    (void)more; /* Winsock has no such flag */
    WSABUF vector[GORI_SEND_PIECES_MAX];
    GI_ASSERT(count > 0);
    GI_ASSERT(count <= GORI_SEND_PIECES_MAX);
    GI_ASSERT(offset <= pieces[0].size);
    size_t left = INT_MAX;
    for (uint32_t i = 0; i < count; i++) {
        size_t from = i == 0 ? offset : 0;
        size_t size = gi_min_size(pieces[i].size - from, left);
        vector[i].buf = (char *)(uintptr_t)pieces[i].data + from;
        vector[i].len = (ULONG)size;
        left -= size;
    }
    DWORD sent = 0;
    if (WSASend(gi_os_native_socket(fd), vector, count, &sent, 0, NULL, NULL) != 0) {
        return last_error();
    }
    return sent;
}

int gi_os_connect(int fd, const struct gori_addr *addr)
{
    if (connect(gi_os_native_socket(fd), (const struct sockaddr *)addr->as.native,
                (int)addr->size) == 0) {
        return 0;
    }
    switch (WSAGetLastError()) {
    case WSAEISCONN:
        return 0; /* asked again after it was under way */
    case WSAEWOULDBLOCK:
    case WSAEALREADY:
        return 1;
    default:
        return last_error();
    }
}
