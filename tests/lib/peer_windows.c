/* SPDX-License-Identifier: MIT */
/*
 * Scripted peers on Windows: Winsock sockets that do not block.  Contract: peer.h.
 */
#include <gori/error.h>

#include "lib/peer.h"
#include "os/os.h"
#include "os/windows/system.h"

static int last_error(void)
{
    return gi_os_error(WSAGetLastError());
}

static SOCKET socket_of(gori_native native)
{
    return (SOCKET)native;
}

static int system_open(const struct gt_network *network, enum gori_addr_family family,
                       gori_native *ret_native)
{
    (void)network;
    int fd;
    int status = gi_os_socket(family, 0, &fd);
    if (status == 0) {
        *ret_native = fd;
    }
    return status;
}

static int system_connect(const struct gt_network *network, gori_native native,
                          const struct gori_addr *addr)
{
    (void)network;
    int status = gi_os_connect((int)native, addr);
    return status == 1 ? GORI_EAGAIN : status;
}

static int system_connected(const struct gt_network *network, gori_native native)
{
    (void)network;
    fd_set writable;
    fd_set failed;
    FD_ZERO(&writable);
    FD_ZERO(&failed);
    FD_SET(socket_of(native), &writable);
    FD_SET(socket_of(native), &failed);
    struct timeval now = {0};
    if (select(0, NULL, &writable, &failed, &now) <= 0) {
        return GORI_EAGAIN;
    }
    int error = 0;
    int size = sizeof(error);
    if (getsockopt(socket_of(native), SOL_SOCKET, SO_ERROR, (char *)&error, &size) != 0) {
        return last_error();
    }
    return error == 0 && FD_ISSET(socket_of(native), &failed) ? GORI_ECONNREFUSED
                                                              : gi_os_error(error);
}

static int system_listen(const struct gt_network *network, const struct gori_addr *addr,
                         int backlog, gori_native *ret_native)
{
    (void)network;
    int fd;
    int status = gi_os_listen(addr, (uint32_t)backlog, 0, &fd);
    if (status == 0) {
        *ret_native = fd;
    }
    return status;
}

static int system_accept(const struct gt_network *network, gori_native listener,
                         gori_native *ret_native)
{
    (void)network;
    int fd;
    int status = gi_os_accept((int)listener, 0, &fd);
    if (status == 0) {
        *ret_native = fd;
    }
    return status;
}

static int64_t system_send(const struct gt_network *network, gori_native native, const void *data,
                           size_t size)
{
    (void)network;
    int count = send(socket_of(native), data, (int)size, 0);
    return count >= 0 ? count : last_error();
}

static int64_t system_recv(const struct gt_network *network, gori_native native, void *data,
                           size_t size)
{
    (void)network;
    return gi_os_receive((int)native, data, size);
}

static void system_shutdown(const struct gt_network *network, gori_native native)
{
    (void)network;
    (void)gi_os_shutdown_send((int)native);
}

static void system_set_reset_on_close(const struct gt_network *network, gori_native native)
{
    (void)network;
    int status = gi_os_set_reset_on_close((int)native);
    GI_ASSERT(status == 0);
}

static void system_set_buffers(const struct gt_network *network, gori_native native,
                               uint32_t send_bytes, uint32_t recv_bytes)
{
    (void)network;
    const int sizes[2] = {(int)send_bytes, (int)recv_bytes};
    (void)setsockopt(socket_of(native), SOL_SOCKET, SO_SNDBUF, (const char *)&sizes[0],
                     sizeof(sizes[0]));
    (void)setsockopt(socket_of(native), SOL_SOCKET, SO_RCVBUF, (const char *)&sizes[1],
                     sizeof(sizes[1]));
}

static uint32_t system_state(const struct gt_network *network, gori_native native)
{
    (void)network;
    WSAPOLLFD entry = {.fd = socket_of(native), .events = POLLRDNORM | POLLWRNORM};
    if (WSAPoll(&entry, 1, 0) <= 0) {
        return 0;
    }
    uint32_t state = 0;
    state |= (entry.revents & (POLLRDNORM | POLLHUP | POLLERR)) != 0 ? GT_PEER_READABLE : 0U;
    state |= (entry.revents & (POLLWRNORM | POLLERR)) != 0 ? GT_PEER_WRITABLE : 0U;
    state |= (entry.revents & POLLHUP) != 0 ? GT_PEER_ENDED : 0U;
    state |= (entry.revents & POLLERR) != 0 ? GT_PEER_RESET : 0U;
    return state;
}

static void system_addr(const struct gt_network *network, gori_native native,
                        struct gori_addr *ret_addr)
{
    (void)network;
    int status = gi_os_local_addr((int)native, ret_addr);
    GI_ASSERT(status == 0);
}

static void system_close(const struct gt_network *network, gori_native native)
{
    (void)network;
    gi_os_close((int)native);
}

struct gt_network gt_network_system(void)
{
    static const struct gt_network_calls calls = {
        .open = system_open,
        .connect = system_connect,
        .connected = system_connected,
        .listen = system_listen,
        .accept = system_accept,
        .send = system_send,
        .recv = system_recv,
        .shutdown = system_shutdown,
        .set_reset_on_close = system_set_reset_on_close,
        .set_buffers = system_set_buffers,
        .state = system_state,
        .addr = system_addr,
        .close = system_close,
    };
    return (struct gt_network){.calls = &calls};
}
