/* SPDX-License-Identifier: MIT */
/*
 * Plain clients of a server that runs on another thread: connected sockets whose calls wait.  For
 * peers that a test drives beside its own loop, see peer.h.
 * One file for each system: client_posix.c, client_windows.c.  Thread: any, one at a time for each.
 */
#ifndef GT_CLIENT_H
#define GT_CLIENT_H

#include <gori/addr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A client, connected; the test fails when nobody listens. */
int gt_dial(const struct gori_addr *addr);

/** The same, but -1 when nobody listens. */
int gt_dial_if_open(const struct gori_addr *addr);

/** Bytes sent, or an error. */
int64_t gt_client_send(int client, const void *data, size_t size);

/** Waits for bytes: how many came, 0 at the end, or an error. */
int64_t gt_client_recv(int client, void *data, size_t size);

void gt_hang_up(int client);

/** Whether this system has UNIX paths as addresses. */
bool gt_has_unix_sockets(void);

#endif
