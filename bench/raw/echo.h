/* SPDX-License-Identifier: MIT */
/*
 * What the yardsticks over readiness have in common: one recv and one send for what is ready.
 */
#ifndef BENCH_RAW_ECHO_H
#define BENCH_RAW_ECHO_H

#include "server.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 16384 };

/* Waits for room when the socket is full. That blocks the other connections, which a server
 * must not do; a ping-pong never fills a socket, and a queue would be cost that the yardstick
 * is not to have. */
static inline int raw_send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            struct pollfd writable = {.fd = fd, .events = POLLOUT};
            (void)poll(&writable, 1, -1);
            continue;
        }
        if (sent < 0) {
            return -1;
        }
        data += sent;
        size -= (size_t)sent;
    }
    return 0;
}

/* False when the connection has ended, and is closed. */
static inline bool raw_echo(int fd, char *buffer)
{
    ssize_t received = recv(fd, buffer, BUFFER_BYTES, 0);
    if (received < 0 && errno == EAGAIN) {
        return true;
    }
    if (received <= 0 || raw_send_all(fd, buffer, (size_t)received) < 0) {
        (void)close(fd);
        return false;
    }
    return true;
}

#endif
