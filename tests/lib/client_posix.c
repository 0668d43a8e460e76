/* SPDX-License-Identifier: MIT */
/*
 * Plain clients on a POSIX system.  Contract: client.h.
 */
#include "lib/client.h"

#include <errno.h>
#include <sys/socket.h>

#include "lib/test.h"
#include "os/os.h"

int gt_dial_if_open(const struct gori_addr *addr)
{
    int client;
    GT_EQUAL(gi_os_socket(gori_addr_family(addr), GI_OS_BLOCKING, &client), 0);
    if (connect(client, (const struct sockaddr *)(const void *)addr->as.native, addr->size) == 0) {
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
    ssize_t sent = send(client, data, size, MSG_NOSIGNAL);
    return sent >= 0 ? sent : gi_os_error(errno);
}

int64_t gt_client_recv(int client, void *data, size_t size)
{
    ssize_t received = recv(client, data, size, 0);
    return received >= 0 ? received : gi_os_error(errno);
}

void gt_hang_up(int client)
{
    gi_os_close(client);
}

bool gt_has_unix_sockets(void)
{
    return true;
}
