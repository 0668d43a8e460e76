/* SPDX-License-Identifier: MIT */
/*
 * bench_idle ADDR:PORT COUNT: opens COUNT connections, does nothing with them, prints `holding
 * COUNT` and keeps them until its standard input ends. The connections are spread over child
 * processes (a process has a limited number of descriptors) and over source addresses 127.0.0.2,
 * 127.0.0.3 ... (an address has a limited number of ports).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

enum { PER_PROCESS = 10000, COUNT_MAX = 1000000 };

static void die(const char *what, int error)
{
    (void)fprintf(stderr, "bench_idle: %s: %s\n", what, strerror(error));
    exit(1);
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The port is chosen at connect, where it need only differ for this target. */
static void open_one(const struct sockaddr_in *target, uint32_t source)
{
    int one = 1;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(source)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        die("socket", errno);
    }
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (bind(fd, (const struct sockaddr *)&from, sizeof from) < 0) {
        die("bind", errno);
    }
    if (connect(fd, (const struct sockaddr *)target, sizeof *target) < 0) {
        die("connect", errno);
    }
}

/* A child: opens its share, says so with one byte, and ends when its parent does. */
static void hold(const struct sockaddr_in *target, unsigned count, uint32_t source, int report)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    raise_descriptor_limit();
    for (unsigned i = 0; i < count; i++) {
        open_one(target, source);
    }
    if (write(report, "", 1) != 1) {
        exit(1);
    }
    (void)close(report);
    for (;;) {
        (void)pause();
    }
}

static void start_children(const struct sockaddr_in *target, unsigned count, int report)
{
    uint32_t source = INADDR_LOOPBACK + 1;
    for (unsigned started = 0; started < count; started += PER_PROCESS, source++) {
        unsigned share = count - started < PER_PROCESS ? count - started : PER_PROCESS;
        pid_t child = fork();
        if (child < 0) {
            die("fork", errno);
        }
        if (child == 0) {
            hold(target, share, source, report);
        }
    }
}

static struct sockaddr_in parse_target(const char *text)
{
    struct sockaddr_in target = {.sin_family = AF_INET};
    char host[INET_ADDRSTRLEN] = "";
    const char *colon = strrchr(text, ':');
    size_t size = colon == NULL ? sizeof host : (size_t)(colon - text);
    if (size < sizeof host) {
        memcpy(host, text, size);
    }
    if (inet_pton(AF_INET, host, &target.sin_addr) != 1) {
        (void)fprintf(stderr, "usage: bench_idle ADDR:PORT COUNT\n");
        exit(2);
    }
    target.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    return target;
}

int main(int argc, char **argv)
{
    unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (count == 0 || count > COUNT_MAX) {
        (void)fprintf(stderr, "usage: bench_idle ADDR:PORT COUNT\n");
        return 2;
    }
    struct sockaddr_in target = parse_target(argv[1]);
    int report[2];
    if (pipe(report) < 0) {
        die("pipe", errno);
    }
    start_children(&target, (unsigned)count, report[1]);
    (void)close(report[1]);
    char byte;
    unsigned long ready = 0;
    while (ready * PER_PROCESS < count) {
        if (read(report[0], &byte, 1) != 1) {
            die("a child ended before it held its connections", ECHILD);
        }
        ready++;
    }
    printf("holding %lu\n", count);
    (void)fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
}
