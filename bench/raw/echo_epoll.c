/* SPDX-License-Identifier: MIT */
/*
 * The least echo server on epoll: level-triggered, non-blocking, one recv and one send per event.
 * It is the yardstick for what an abstraction over epoll costs, so it has nothing that an echo
 * can do without: no session, no timeout, no queue. Reading: epoll(7).
 */
#include "echo.h"

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS_MAX = 256 };

static void watch(int poller, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0) {
        bench_die("epoll_ctl", errno);
    }
}

static void accept_one(int poller, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        watch(poller, fd);
    } else if (errno != EAGAIN && errno != ECONNABORTED) {
        bench_die("accept", errno);
    }
}

static void serve(int listener)
{
    static _Thread_local char buffer[BUFFER_BYTES];
    struct epoll_event events[EVENTS_MAX];
    int poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) {
        bench_die("epoll_create1", errno);
    }
    watch(poller, listener);
    for (;;) {
        int count = epoll_wait(poller, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener) {
                accept_one(poller, listener);
            } else {
                (void)raw_echo(events[i].data.fd, buffer);
            }
        }
    }
}

int main(int argc, char **argv)
{
    return bench_server_main(argc, argv, serve);
}
