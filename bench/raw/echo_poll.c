/* SPDX-License-Identifier: MIT */
/*
 * The least echo server on poll: an array of descriptors, walked after each call, and nothing that
 * an echo can do without.  It is the yardstick for what an abstraction over poll costs.
 * Reading: poll(2).
 */
#include "echo.h"

#include <stdlib.h>

enum { CONNECTIONS_MAX = 20000 };

struct entries {
    struct pollfd fds[CONNECTIONS_MAX]; /* the listener is the first */
    nfds_t count;
};

static void accept_one(struct entries *entries)
{
    int fd = accept4(entries->fds[0].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 && entries->count < CONNECTIONS_MAX) {
        entries->fds[entries->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    } else if (fd >= 0) {
        bench_die("accept", EMFILE);
    } else if (errno != EAGAIN && errno != ECONNABORTED) {
        bench_die("accept", errno);
    }
}

static void serve(int listener)
{
    static _Thread_local char buffer[BUFFER_BYTES];
    struct entries *entries = calloc(1, sizeof(*entries));
    if (entries == NULL) {
        bench_die("calloc", ENOMEM);
    }
    entries->fds[entries->count++] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (;;) {
        int left = poll(entries->fds, entries->count, -1);
        for (nfds_t i = entries->count - 1; i > 0 && left > 0; i--) {
            if (entries->fds[i].revents == 0) {
                continue;
            }
            left--;
            if (!raw_echo(entries->fds[i].fd, buffer)) {
                entries->fds[i] = entries->fds[--entries->count]; /* it was looked at already */
            }
        }
        if (entries->fds[0].revents != 0) {
            accept_one(entries);
        }
    }
}

int main(int argc, char **argv)
{
    return bench_server_main(argc, argv, serve);
}
