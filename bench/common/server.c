/* SPDX-License-Identifier: MIT */
/*
 * Start and end of the small servers of bench/; see server.h. Workers never stop by themselves: a
 * yardstick has no graceful drain, the process just ends when it is told to.
 */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { WORKERS_MAX = 64, BACKLOG = 4096 };

struct worker {
    bench_worker_fn *run;
    int listener;
};

void bench_die(const char *what, int error)
{
    (void)fprintf(stderr, "%s: %s\n", what, strerror(error));
    exit(1);
}

static void die_usage(const char *program)
{
    (void)fprintf(stderr, "usage: %s [--listen ADDR:PORT] [--workers N]\n", program);
    exit(2);
}

static struct sockaddr_in parse_address(const char *program, const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    char host[INET_ADDRSTRLEN];
    const char *colon = strrchr(text, ':');
    if (colon == NULL || (size_t)(colon - text) >= sizeof host) {
        die_usage(program);
    }
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    char *end;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (*end != '\0' || port > UINT16_MAX || inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        die_usage(program);
    }
    address.sin_port = htons((uint16_t)port);
    return address;
}

/* TCP_NODELAY on the listener is inherited by every accepted socket: no system call per
 * connection. */
static int open_listener(struct sockaddr_in *address)
{
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof *address;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0 ||
        bind(fd, (struct sockaddr *)address, size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)address, &size) < 0) {
        bench_die("listen", errno);
    }
    return fd;
}

static void *run_worker(void *argument)
{
    const struct worker *worker = argument;
    worker->run(worker->listener);
    return NULL;
}

static void start_worker(struct worker *worker)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run_worker, worker);
    if (error != 0) {
        bench_die("pthread_create", error);
    }
}

int bench_server_main(int argc, char **argv, bench_worker_fn *run)
{
    static struct worker workers[WORKERS_MAX];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned long count = 1;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            die_usage(argv[0]);
        } else if (strcmp(argv[i], "--listen") == 0) {
            address = parse_address(argv[0], argv[i + 1]);
        } else if (strcmp(argv[i], "--workers") == 0) {
            count = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--engine") != 0) {
            die_usage(argv[0]);
        }
    }
    if (count == 0 || count > WORKERS_MAX) {
        die_usage(argv[0]);
    }

    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    for (unsigned long i = 0; i < count; i++) {
        workers[i] = (struct worker){.run = run, .listener = open_listener(&address)};
    }
    for (unsigned long i = 0; i < count; i++) {
        start_worker(&workers[i]);
    }
    char host[INET_ADDRSTRLEN];
    printf("listening on %s:%u\n", inet_ntop(AF_INET, &address.sin_addr, host, sizeof host),
           (unsigned)ntohs(address.sin_port));
    (void)fflush(stdout);
    int signal_number;
    sigwait(&stop, &signal_number);
    return 0;
}
