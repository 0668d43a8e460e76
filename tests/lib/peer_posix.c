/* SPDX-License-Identifier: MIT */
/*
 * Scripted peers on the operating system: POSIX non-blocking sockets.  Contract: peer.h.
 */
#include <errno.h>
#include <gori/error.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "lib/peer.h"
#include "os/os.h"

static int last_error(void)
{
    return errno == EINPROGRESS ? GORI_EAGAIN : gi_os_error(errno);
}

static const struct sockaddr *sockaddr_of(const struct gori_addr *addr)
{
    return (const struct sockaddr *)(const void *)addr->as.native;
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
    return connect((int)native, sockaddr_of(addr), addr->size) == 0 ? 0 : last_error();
}

static int system_connected(const struct gt_network *network, gori_native native)
{
    (void)network;
    struct pollfd entry = {.fd = (int)native, .events = POLLOUT};
    if (poll(&entry, 1, 0) <= 0) {
        return GORI_EAGAIN;
    }
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt((int)native, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        return last_error();
    }
    if (error != 0) {
        return gi_os_error(error);
    }
    struct gori_addr peer;
    return gi_os_peer_addr((int)native, &peer) == 0 ? 0 : GORI_ECONNREFUSED;
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
    ssize_t count = send((int)native, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return count >= 0 ? count : last_error();
}

static int64_t system_recv(const struct gt_network *network, gori_native native, void *data,
                           size_t size)
{
    (void)network;
    ssize_t count = recv((int)native, data, size, MSG_DONTWAIT);
    return count >= 0 ? count : last_error();
}

static void system_shutdown(const struct gt_network *network, gori_native native)
{
    (void)network;
    (void)shutdown((int)native, SHUT_WR);
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
    int sizes[2] = {(int)send_bytes, (int)recv_bytes};
    (void)setsockopt((int)native, SOL_SOCKET, SO_SNDBUF, &sizes[0], sizeof(int));
    (void)setsockopt((int)native, SOL_SOCKET, SO_RCVBUF, &sizes[1], sizeof(int));
}

static uint32_t system_state(const struct gt_network *network, gori_native native)
{
    (void)network;
    struct pollfd entry = {.fd = (int)native, .events = POLLIN | POLLOUT | POLLRDHUP};
    if (poll(&entry, 1, 0) <= 0) {
        return 0;
    }
    uint32_t state = 0;
    state |= (entry.revents & (POLLIN | POLLHUP | POLLERR)) != 0 ? GT_PEER_READABLE : 0U;
    state |= (entry.revents & (POLLOUT | POLLERR)) != 0 ? GT_PEER_WRITABLE : 0U;
    state |= (entry.revents & POLLRDHUP) != 0 ? GT_PEER_ENDED : 0U;
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
    close((int)native);
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
