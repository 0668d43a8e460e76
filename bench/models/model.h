/* SPDX-License-Identifier: MIT */
/*
 * What the three models of `./dev bench models` have in common: a session, and how its messages are
 * answered.  The models differ in who may touch what, and in nothing else: the same epoll, edge
 * triggered, the same hash, one receive and one send for a message.
 *
 * An event names a session by its id, which is looked up for each message, as in a server in which
 * sessions end while events, timers or other sessions still speak of them.
 */
#ifndef BENCH_MODELS_MODEL_H
#define BENCH_MODELS_MODEL_H

#include "server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 16384, EVENTS_MAX = 256, MAP_BITS = 16, MAP_SLOTS = 1 << MAP_BITS };

/* An event of a listener: not a session's id, which has no highest bit. */
#define MODEL_LISTENER (UINT64_C(1) << 63)

struct session {
    uint64_t id; /* never 0 */
    int fd;
    uint64_t messages;
    uint64_t bytes;
};

static inline uint32_t model_hash(uint64_t id)
{
    return (uint32_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> (64 - MAP_BITS));
}

static inline void model_watch(int poller, int fd, uint64_t data, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = data};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0) {
        bench_die("epoll_ctl", errno);
    }
}

static inline int model_poller(void)
{
    int poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) {
        bench_die("epoll_create1", errno);
    }
    return poller;
}

/* The next connection of a listener, -1 when there is none. */
static inline int model_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
        bench_die("accept", errno);
    }
    return fd;
}

/* Answers what has arrived, all of it: nothing tells of it again.  False: the session has ended. */
static inline bool model_answer(struct session *session, char *buffer)
{
    ssize_t received;
    do {
        received = recv(session->fd, buffer, BUFFER_BYTES, 0);
        if (received < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        if (received == 0) {
            return false;
        }
        session->messages++;
        session->bytes += (uint64_t)received;
        /* The load generator reads before it sends: there is always room. */
        if (send(session->fd, buffer, (size_t)received, MSG_NOSIGNAL) != received) {
            return false;
        }
    } while (received == BUFFER_BYTES);
    return true;
}

#endif
