/* SPDX-License-Identifier: MIT */
/*
 * Stream sockets of Winsock: making, listening, accepting by hand, options, names.  All can be used
 * with overlapped operations, and no child process inherits one.  Nothing here waits.
 *
 * Ports: without SO_REUSEADDR a port is ours alone, but another process could take it away from us
 * with that option; SO_EXCLUSIVEADDRUSE refuses it.  There is no SO_REUSEPORT: one
 * worker accepts for all.
 * Thread: any.  Reading: "Using SO_REUSEADDR and SO_EXCLUSIVEADDRUSE" (Microsoft Learn).
 */
#include <gori/error.h>
#include <limits.h>
#include <string.h>

#include "os/os.h"
#include "os/windows/system.h"

static INIT_ONCE g_winsock = INIT_ONCE_STATIC_INIT;

static BOOL CALLBACK start_winsock(INIT_ONCE *once, void *parameter, void **context)
{
    (void)once;
    (void)parameter;
    (void)context;
    WSADATA data;
    return WSAStartup(MAKEWORD(2, 2), &data) == 0;
}

static int last_error(void)
{
    return gi_os_error(WSAGetLastError());
}

static int open_socket(int domain, uint32_t flags, int *ret_fd)
{
    if (!InitOnceExecuteOnce(&g_winsock, start_winsock, NULL, NULL)) {
        return GORI_ENOSYS;
    }
    SOCKET native = WSASocketW(domain, SOCK_STREAM, 0, NULL, 0,
                               WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    if (native == INVALID_SOCKET) {
        return last_error();
    }
    int fd = gi_os_socket_descriptor(native);
    int error = (flags & GI_OS_BLOCKING) ? 0 : gi_os_set_blocking(fd, false);
    if (error < 0) {
        gi_os_close(fd);
        return error;
    }
    *ret_fd = fd;
    return 0;
}

static int set_option(int fd, int level, int name, int value)
{
    int failed =
        setsockopt(gi_os_native_socket(fd), level, name, (const char *)&value, sizeof(value));
    return failed == 0 ? 0 : last_error();
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
    (void)closesocket(gi_os_native_socket(fd));
}

bool gi_os_balances_ports(void)
{
    return false;
}

/* UNIX paths.  Windows marks the file of a socket as a reparse point, and removes it for nobody. */

static const wchar_t *wide_path(const struct gori_addr *addr, wchar_t *path, int path_chars)
{
    const struct sockaddr_un *name = (const struct sockaddr_un *)addr->as.native;
    if (gori_addr_family(addr) != GORI_ADDR_UNIX || name->sun_path[0] == '\0' ||
        MultiByteToWideChar(CP_UTF8, 0, name->sun_path, -1, path, path_chars) == 0) {
        return NULL;
    }
    return path;
}

void gi_os_socket_path_id(const struct gori_addr *addr, struct gi_os_file_id *ret_id)
{
    wchar_t path[MAX_PATH];
    *ret_id = (struct gi_os_file_id){0};
    if (wide_path(addr, path, MAX_PATH) == NULL) {
        return;
    }
    HANDLE file = CreateFileW(path, FILE_READ_ATTRIBUTES,
                              FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    BY_HANDLE_FILE_INFORMATION info;
    if (file == INVALID_HANDLE_VALUE) {
        return;
    }
    if (GetFileInformationByHandle(file, &info) &&
        (info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT)) {
        ret_id->device = info.dwVolumeSerialNumber;
        ret_id->inode = (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow;
    }
    (void)CloseHandle(file);
}

void gi_os_remove_socket_path(const struct gori_addr *addr, const struct gi_os_file_id *id)
{
    wchar_t path[MAX_PATH];
    struct gi_os_file_id now;
    gi_os_socket_path_id(addr, &now);
    if (id->inode != 0 && now.inode == id->inode && now.device == id->device &&
        wide_path(addr, path, MAX_PATH) != NULL) {
        (void)DeleteFileW(path); /* gone already, or not ours to remove any more */
    }
}

/* Whether a server answers at a UNIX path. */
static bool unix_path_is_live(const struct gori_addr *addr)
{
    int fd = -1;
    if (open_socket(AF_UNIX, GI_OS_BLOCKING, &fd) < 0) {
        return true;
    }
    int failed =
        connect(gi_os_native_socket(fd), (const struct sockaddr *)addr->as.native, (int)addr->size);
    bool live = failed == 0 || WSAGetLastError() != WSAECONNREFUSED;
    gi_os_close(fd);
    return live;
}

static bool remove_dead_path(const struct gori_addr *addr)
{
    struct gi_os_file_id id;
    gi_os_socket_path_id(addr, &id);
    if (id.inode == 0 || unix_path_is_live(addr)) {
        return false;
    }
    gi_os_remove_socket_path(addr, &id);
    return true;
}

static int bind_to(int fd, const struct gori_addr *addr)
{
    const struct sockaddr *name = (const struct sockaddr *)addr->as.native;
    if (bind(gi_os_native_socket(fd), name, (int)addr->size) == 0) {
        return 0;
    }
    /* The port of somebody who has it for himself alone. */
    int error = WSAGetLastError() == WSAEACCES ? GORI_EADDRINUSE : last_error();
    if (error == GORI_EADDRINUSE && remove_dead_path(addr)) {
        error = bind(gi_os_native_socket(fd), name, (int)addr->size) == 0 ? 0 : last_error();
    }
    return error;
}

static int set_listen_options(int fd, enum gori_addr_family family, uint32_t flags)
{
    if (family == GORI_ADDR_UNIX) {
        return 0;
    }
    int error = set_option(fd, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, 1);
    if (error == 0 && family == GORI_ADDR_IPV6) {
        /* Set both ways: on is the default here, off elsewhere. */
        error = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, (flags & GI_OS_IPV6_ONLY) ? 1 : 0);
    }
    if (error == 0 && (flags & GI_OS_NO_DELAY)) {
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
        /* As SOMAXCONN_HINT has it: a number over 200 is believed when it is negative. */
        int queue_count = backlog > USHRT_MAX ? SOMAXCONN : -(int)backlog;
        error = listen(gi_os_native_socket(fd), queue_count) == 0 ? 0 : last_error();
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
    if (flags & GI_OS_REUSE_PORT) {
        return GORI_ENOTSUP;
    }
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
    u_long nonblocking = on ? 0 : 1;
    return ioctlsocket(gi_os_native_socket(fd), (long)FIONBIO, &nonblocking) == 0 ? 0
                                                                                  : last_error();
}

int gi_os_accept_now(int listener_fd, uint32_t flags, int *ret_fd)
{
    SOCKET native = accept(gi_os_native_socket(listener_fd), NULL, NULL);
    if (native == INVALID_SOCKET) {
        return last_error();
    }
    int fd = gi_os_socket_descriptor(native);
    /* The mode is the listener's, and a child could inherit it: neither is what was asked. */
    int error = gi_os_set_blocking(fd, (flags & GI_OS_BLOCKING) != 0);
    if (error == 0 && !SetHandleInformation(gi_os_handle(fd), HANDLE_FLAG_INHERIT, 0)) {
        error = gi_os_error((int)GetLastError());
    }
    if (error < 0) {
        gi_os_close(fd);
        return error;
    }
    *ret_fd = fd;
    return 0;
}

int gi_os_accept(int listener_fd, uint32_t flags, int *ret_fd)
{
    WSAPOLLFD poll_fd = {.fd = gi_os_native_socket(listener_fd), .events = POLLRDNORM};
    if (WSAPoll(&poll_fd, 1, 0) <= 0) {
        return GORI_EAGAIN;
    }
    /* The mode cannot be asked for, and what was seen may be gone again: make sure.  A listener is
       left so; whoever waits at one, waits with something better than accept. */
    int error = gi_os_set_blocking(listener_fd, false);
    return error < 0 ? error : gi_os_accept_now(listener_fd, flags, ret_fd);
}

int gi_os_duplicate(int fd, int *ret_fd)
{
    WSAPROTOCOL_INFOW info;
    if (WSADuplicateSocketW(gi_os_native_socket(fd), GetCurrentProcessId(), &info) != 0) {
        return last_error();
    }
    SOCKET copy = WSASocketW(FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, &info, 0,
                             WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    if (copy == INVALID_SOCKET) {
        return last_error();
    }
    *ret_fd = gi_os_socket_descriptor(copy);
    return 0;
}

bool gi_os_shares_sockets(void)
{
    /* A duplicate belongs to the completion port of the original, for good. */
    return false;
}

int gi_os_check_listening(int fd)
{
    BOOL listens = FALSE;
    int size = sizeof(listens);
    int failed =
        getsockopt(gi_os_native_socket(fd), SOL_SOCKET, SO_ACCEPTCONN, (char *)&listens, &size);
    return failed == 0 && listens ? 0 : GORI_EINVAL;
}

int gi_os_set_no_delay(int fd, bool on)
{
    int error = set_option(fd, IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0);
    return error == GORI_ENOTSUP ? 0 : error;
}

int gi_os_set_reset_on_close(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    int failed = setsockopt(gi_os_native_socket(fd), SOL_SOCKET, SO_LINGER, (const char *)&at_once,
                            sizeof(at_once));
    return failed == 0 ? 0 : last_error();
}

int gi_os_shutdown_send(int fd)
{
    return shutdown(gi_os_native_socket(fd), SD_SEND) == 0 ? 0 : last_error();
}

typedef int WSAAPI name_fn(SOCKET native, struct sockaddr *ret_name, int *size);

static int ask_name(name_fn *ask, int fd, struct gori_addr *ret_addr)
{
    struct gori_addr addr = {0};
    int size = sizeof(addr.as.native);
    if (ask(gi_os_native_socket(fd), (struct sockaddr *)addr.as.native, &size) != 0) {
        return last_error();
    }
    addr.size = (uint32_t)size;
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
