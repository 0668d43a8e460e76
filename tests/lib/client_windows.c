/* SPDX-License-Identifier: MIT */
/*
 * Plain clients on Windows.  Contract: client.h.
 */
#include "lib/client.h"

#include "lib/test.h"
#include "os/os.h"
#include "os/windows/system.h"

int gt_dial_if_open(const struct gori_addr *addr)
{
    int client;
    GT_EQUAL(gi_os_socket(gori_addr_family(addr), GI_OS_BLOCKING, &client), 0);
    if (connect(gi_os_native_socket(client), (const struct sockaddr *)(const void *)addr->as.native,
                (int)addr->size) == 0) {
        return client;
    }
    gi_os_close(client);
    return -1;
}

int gt_dial(const struct gori_addr *addr)
{
    int client = gt_dial_if_open(addr);
    GT_CHECK(client >= 0);
    return client;
}

int64_t gt_client_send(int client, const void *data, size_t size)
{
    int sent = send(gi_os_native_socket(client), data, (int)size, 0);
    return sent >= 0 ? sent : gi_os_error(WSAGetLastError());
}

int64_t gt_client_recv(int client, void *data, size_t size)
{
    int received = recv(gi_os_native_socket(client), data, (int)size, 0);
    return received >= 0 ? received : gi_os_error(WSAGetLastError());
}

void gt_hang_up(int client)
{
    gi_os_close(client);
}

bool gt_has_unix_sockets(void)
{
    int fd;
    if (gi_os_socket(GORI_ADDR_UNIX, 0, &fd) < 0) {
        return false;
    }
    gi_os_close(fd);
    return true;
}
