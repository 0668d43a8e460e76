/* SPDX-License-Identifier: MIT */
/*
 * Stream sockets: making, listening, accepting by hand, options, names.  Nothing here waits; moving
 * bytes is posix/socket_io.c.
 * Thread: any.  Reading: socket(7), tcp(7), unix(7).
 */
#include <errno.h>
#include <fcntl.h>
#include <gori/error.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/posix/native.h"

static int open_socket(int domain, uint32_t flags, int *ret_fd)
{
    int fd = gi_os_native_socket(domain, flags);
    if (fd < 0) {
        return gi_os_error(errno);
    }
    *ret_fd = fd;
    return 0;
}

static int set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value)) == 0 ? 0 : gi_os_error(errno);
}

int gi_os_socket(enum gori_addr_family family, uint32_t flags, int *ret_fd)
{
    switch (family) {
    case GORI_ADDR_IPV4:
        return open_socket(AF_INET, flags, ret_fd);
    case GORI_ADDR_IPV6:
        return open_socket(AF_INET6, flags, ret_fd);
    case GORI_ADDR_UNIX:
        return open_socket(AF_UNIX, flags, ret_fd);
    case GORI_ADDR_NONE:
        break;
    }
    return GORI_EINVAL;
}

void gi_os_close(int fd)
{
    GI_ASSERT(fd >= 0);
    /* Also after EINTR the descriptor is gone on the systems we know: never close it again. */
    (void)close(fd);
}

/* Whether a server answers at a UNIX path.  A full queue counts as an answer. */
static bool unix_path_is_live(const struct gori_addr *addr)
{
    int fd = -1;
    if (open_socket(AF_UNIX, 0, &fd) < 0) {
        return true;
    }
    int failed = connect(fd, (const struct sockaddr *)addr->as.native, addr->size);
    bool live = failed == 0 || errno != ECONNREFUSED;
    gi_os_close(fd);
    return live;
}

/* The path of a UNIX address is left over from a server that is gone: makes room.  False if not. */
static bool remove_dead_path(const struct gori_addr *addr)
{
    const struct sockaddr_un *name = (const struct sockaddr_un *)addr->as.native;
    if (gori_addr_family(addr) != GORI_ADDR_UNIX || name->sun_path[0] == '\0') {
        return false;
    }
    struct stat status;
    if (lstat(name->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) {
        return false;
    }
    return !unix_path_is_live(addr) && unlink(name->sun_path) == 0;
}

void gi_os_socket_path_id(const struct gori_addr *addr, struct gi_os_file_id *ret_id)
{
    const struct sockaddr_un *name = (const struct sockaddr_un *)addr->as.native;
    struct stat status;
    *ret_id = (struct gi_os_file_id){0};
    if (gori_addr_family(addr) == GORI_ADDR_UNIX && name->sun_path[0] != '\0' &&
        lstat(name->sun_path, &status) == 0) {
        ret_id->device = (uint64_t)status.st_dev;
        ret_id->inode = (uint64_t)status.st_ino;
    }
}

void gi_os_remove_socket_path(const struct gori_addr *addr, const struct gi_os_file_id *id)
{
    struct gi_os_file_id now;
    gi_os_socket_path_id(addr, &now);
    if (id->inode != 0 && now.inode == id->inode && now.device == id->device) {
        const struct sockaddr_un *name = (const struct sockaddr_un *)addr->as.native;
        (void)unlink(name->sun_path); /* gone already, or not ours to remove any more */
    }
}

static int bind_to(int fd, const struct gori_addr *addr)
{
    const struct sockaddr *name = (const struct sockaddr *)addr->as.native;
    if (bind(fd, name, addr->size) == 0) {
        return 0;
    }
    int error = gi_os_error(errno);
    if (error == GORI_EADDRINUSE && remove_dead_path(addr)) {
        error = bind(fd, name, addr->size) == 0 ? 0 : gi_os_error(errno);
    }
    return error;
}

static int set_listen_options(int fd, enum gori_addr_family family, uint32_t flags)
{
    if (family == GORI_ADDR_UNIX) {
        return 0;
    }
    int error = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (error == 0 && (flags & GI_OS_REUSE_PORT)) {
        error = set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    }
    if (error == 0 && family == GORI_ADDR_IPV6) {
        /* Set both ways: the default is the administrator's. */
        error = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, (flags & GI_OS_IPV6_ONLY) ? 1 : 0);
    }
    if (error == 0 && family != GORI_ADDR_UNIX && (flags & GI_OS_NO_DELAY)) {
        /* Before it listens: a connection inherits what holds when it is made, not accepted. */
        error = gi_os_set_no_delay(fd, true);
    }
    return error;
}

static int listen_on(const struct gori_addr *addr, uint32_t backlog, uint32_t flags, int *ret_fd)
{
    enum gori_addr_family family = gori_addr_family(addr);
    int fd;
    int error = gi_os_socket(family, flags, &fd);
    if (error < 0) {
        return error;
    }
    error = set_listen_options(fd, family, flags);
    if (error == 0) {
        error = bind_to(fd, addr);
    }
    if (error == 0) {
        int queue_count = backlog > INT_MAX ? INT_MAX : (int)backlog;
        error = listen(fd, queue_count) == 0 ? 0 : gi_os_error(errno);
    }
    if (error < 0) {
        gi_os_close(fd);
        return error;
    }
    *ret_fd = fd;
    return 0;
}

static bool is_any_ipv6(const struct gori_addr *addr)
{
    const struct sockaddr_in6 *name = (const struct sockaddr_in6 *)addr->as.native;
    return gori_addr_family(addr) == GORI_ADDR_IPV6 && IN6_IS_ADDR_UNSPECIFIED(&name->sin6_addr);
}

int gi_os_listen(const struct gori_addr *addr, uint32_t backlog, uint32_t flags, int *ret_fd)
{
    int error = listen_on(addr, backlog, flags, ret_fd);
    if (error == GORI_ENOTSUP && is_any_ipv6(addr) && !(flags & GI_OS_IPV6_ONLY)) {
        /* A machine without IPv6: "every address" means every IPv4 one there. */
        struct gori_addr any = {.size = sizeof(struct sockaddr_in)};
        struct sockaddr_in *name = (struct sockaddr_in *)any.as.native;
        name->sin_family = AF_INET;
        gori_addr_set_port(&any, gori_addr_port(addr));
        error = listen_on(&any, backlog, flags, ret_fd);
    }
    return error;
}

int gi_os_set_blocking(int fd, bool on)
{
    int nonblocking = on ? 0 : 1;
    return ioctl(fd, FIONBIO, &nonblocking) == 0 ? 0 : gi_os_error(errno);
}

int gi_os_accept_now(int listener_fd, uint32_t flags, int *ret_fd)
{
    for (;;) {
        int fd = gi_os_native_accept(listener_fd, flags);
        if (fd >= 0) {
            *ret_fd = fd;
            return 0;
        }
        if (errno != EINTR) {
            return gi_os_error(errno);
        }
    }
}

static int set_receive_timeout(int fd, int microseconds)
{
    struct timeval timeout = {.tv_usec = microseconds};
    bool is_set = setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0;
    return is_set ? 0 : gi_os_error(errno);
}

int gi_os_accept(int listener_fd, uint32_t flags, int *ret_fd)
{
    int mode = fcntl(listener_fd, F_GETFL);
    if (mode < 0) {
        return gi_os_error(errno);
    }
    if (mode & O_NONBLOCK) {
        return gi_os_accept_now(listener_fd, flags, ret_fd);
    }
    struct pollfd poll_fd = {.fd = listener_fd, .events = POLLIN};
    if (poll(&poll_fd, 1, 0) <= 0) {
        return GORI_EAGAIN;
    }
    /* What poll saw may be gone again.  Not by O_NONBLOCK, which duplicates of the descriptor, on
     * other threads, share: one would turn off what another has just turned on, and wait. */
    int error = set_receive_timeout(listener_fd, 1);
    if (error < 0) {
        return error;
    }
    error = gi_os_accept_now(listener_fd, flags, ret_fd);
    if (error >= 0) {
        /* It inherits the timeout where the system makes connections by copying the listener. */
        error = set_receive_timeout(*ret_fd, 0);
        GI_ASSERT(error >= 0);
    }
    return error;
}

bool gi_os_balances_ports(void)
{
    /* Linux has since 3.9 (socket(7)); elsewhere SO_REUSEPORT gives all to one of them. */
#if defined(__linux__)
    return true;
#else
    return false;
#endif
}

int gi_os_duplicate(int fd, int *ret_fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        return gi_os_error(errno);
    }
    *ret_fd = copy;
    return 0;
}

bool gi_os_shares_sockets(void)
{
    return true;
}

static bool has_option(int fd, int name, int wanted)
{
    int value = 0;
    socklen_t size = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 && value == wanted;
}

int gi_os_check_listening(int fd)
{
    bool listens = has_option(fd, SO_TYPE, SOCK_STREAM) && has_option(fd, SO_ACCEPTCONN, 1);
    return listens ? 0 : GORI_EINVAL;
}

int gi_os_set_no_delay(int fd, bool on)
{
    int error = set_option(fd, IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0);
    return error == GORI_ENOTSUP ? 0 : error;
}

int gi_os_set_reset_on_close(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    int failed = setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return failed == 0 ? 0 : gi_os_error(errno);
}

int gi_os_shutdown_send(int fd)
{
    return shutdown(fd, SHUT_WR) == 0 ? 0 : gi_os_error(errno);
}

typedef int name_fn(int fd, struct sockaddr *ret_name, socklen_t *size);

static int ask_name(name_fn *ask, int fd, struct gori_addr *ret_addr)
{
    struct gori_addr addr = {0};
    socklen_t size = sizeof(addr.as.native);
    if (ask(fd, (struct sockaddr *)addr.as.native, &size) != 0) {
        return gi_os_error(errno);
    }
    addr.size = size;
    *ret_addr = addr;
    return 0;
}

int gi_os_local_addr(int fd, struct gori_addr *ret_addr)
{
    return ask_name(getsockname, fd, ret_addr);
}

int gi_os_peer_addr(int fd, struct gori_addr *ret_addr)
{
    return ask_name(getpeername, fd, ret_addr);
}
