/* SPDX-License-Identifier: MIT */
/*
 * Sockets: what is listened on answers, what is asked of modes and options holds, bytes move
 * without waiting, and every way a peer may be gone is an error value.
 */
#include "lib/test.h"

#include <fcntl.h>
#include <gori/error.h>
#include <gori/op.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/atomic.h"
#include "os/os.h"

static bool is_nonblocking(int fd)
{
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

static int listen_at(const char *text, uint32_t flags, struct gori_addr *ret_addr)
{
    int fd;
    GT_EQUAL(gori_addr_parse(text, ret_addr), 0);
    GT_EQUAL(gi_os_listen(ret_addr, 16, flags, &fd), 0);
    GT_EQUAL(gi_os_local_addr(fd, ret_addr), 0);
    return fd;
}

/* A connected pair over loopback; the client's descriptor first. */
static void connect_pair(int ret_fds[2])
{
    struct gori_addr addr;
    int listener = listen_at("127.0.0.1:0", GI_OS_BLOCKING, &addr);
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &ret_fds[0]), 0);
    GT_EQUAL(gi_os_connect(ret_fds[0], &addr), 0);
    GT_EQUAL(gi_os_accept(listener, 0, &ret_fds[1]), 0);
    gi_os_close(listener);
}

GT_TEST(os_socket_modes)
{
    int fd;
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, 0, &fd), 0);
    GT_CHECK(is_nonblocking(fd));
    GT_CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    GT_EQUAL(gi_os_set_blocking(fd, true), 0);
    GT_CHECK(!is_nonblocking(fd));
    gi_os_close(fd);
    GT_EQUAL(gi_os_socket(GORI_ADDR_UNIX, GI_OS_BLOCKING, &fd), 0);
    GT_CHECK(!is_nonblocking(fd));
    GT_EQUAL(gi_os_set_no_delay(fd, true), 0);
    int copy;
    GT_EQUAL(gi_os_duplicate(fd, &copy), 0);
    GT_CHECK(copy != fd);
    GT_CHECK(fcntl(copy, F_GETFD) & FD_CLOEXEC);
    gi_os_close(copy);
    gi_os_close(fd);
    fd = 77;
    GT_EQUAL(gi_os_socket(GORI_ADDR_NONE, 0, &fd), GORI_EINVAL);
    GT_EQUAL(fd, 77);
}

/* A listener that blocks is asked without waiting, and blocks again afterwards. */
GT_TEST(os_accept_never_waits)
{
    struct gori_addr addr;
    uint32_t const modes[] = {0, GI_OS_BLOCKING};
    for (int i = 0; i < 2; i++) {
        int client;
        int fd = -1;
        int listener = listen_at("127.0.0.1:0", modes[i], &addr);
        GT_EQUAL(gi_os_accept(listener, modes[i], &fd), GORI_EAGAIN);
        GT_EQUAL(fd, -1);
        GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &client), 0);
        GT_EQUAL(gi_os_connect(client, &addr), 0);
        GT_EQUAL(gi_os_accept(listener, modes[i], &fd), 0);
        GT_EQUAL(is_nonblocking(fd), modes[i] == 0);
        GT_EQUAL(is_nonblocking(listener), modes[i] == 0);
        gi_os_close(fd);
        gi_os_close(client);
        gi_os_close(listener);
    }
}

enum { RACERS = 3, RACED = 2000 };

struct race {
    int listener;
    struct gi_atomic_u32 *accepted;
};

static void accept_all(void *argument)
{
    const struct race *race = argument;
    while (gi_atomic_u32_load(race->accepted, GI_RELAXED) < RACED) {
        int fd;
        int result = gi_os_accept(race->listener, 0, &fd);
        if (result >= 0) {
            gi_os_close(fd);
            gi_atomic_u32_add(race->accepted, 1, GI_RELAXED);
        } else {
            GT_EQUAL(result, GORI_EAGAIN);
        }
    }
}

/* Workers share a UNIX socket by duplicates: a connection that one has seen another takes. */
GT_TEST(os_accept_never_waits_for_what_a_duplicate_took)
{
    static struct gi_atomic_u32 accepted;
    struct gi_os_thread threads[RACERS];
    struct race races[RACERS];
    struct gori_addr addr;
    char path[64];
    snprintf(path, sizeof(path), "unix:/tmp/gori-os-accept-%d.sock", (int)getpid());
    int listener = listen_at(path, GI_OS_BLOCKING, &addr);
    for (int i = 0; i < RACERS; i++) {
        races[i].accepted = &accepted;
        GT_EQUAL(gi_os_duplicate(listener, &races[i].listener), 0);
        GT_EQUAL(gi_os_thread_start(&threads[i], accept_all, &races[i]), 0);
    }
    for (int i = 0; i < RACED; i++) {
        int client;
        GT_EQUAL(gi_os_socket(GORI_ADDR_UNIX, GI_OS_BLOCKING, &client), 0);
        GT_EQUAL(gi_os_connect(client, &addr), 0);
        gi_os_close(client);
    }
    for (int i = 0; i < RACERS; i++) {
        gi_os_thread_join(&threads[i]);
        gi_os_close(races[i].listener);
    }
    gi_os_close(listener);
    unlink(path + strlen("unix:"));
}

GT_TEST(os_names_of_both_ends)
{
    int fds[2];
    struct gori_addr ours;
    struct gori_addr theirs;
    connect_pair(fds);
    GT_EQUAL(gi_os_local_addr(fds[0], &ours), 0);
    GT_EQUAL(gi_os_peer_addr(fds[1], &theirs), 0);
    GT_EQUAL_BYTES(ours.as.native, ours.size, theirs.as.native, theirs.size);
    GT_CHECK(gori_addr_port(&ours) != 0);
    int lone;
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, 0, &lone), 0);
    GT_EQUAL(gi_os_peer_addr(lone, &theirs), GORI_ECLOSED);
    GT_EQUAL(gi_os_shutdown_send(lone), GORI_ECLOSED);
    gi_os_close(lone);
    gi_os_close(fds[0]);
    gi_os_close(fds[1]);
}

/* "*" answers over IPv4 too; with the flag it does not. */
GT_TEST(os_listen_on_every_address)
{
    struct gori_addr addr;
    int listener = listen_at("*:0", 0, &addr);
    char text[32];
    (void)snprintf(text, sizeof(text), "127.0.0.1:%u", gori_addr_port(&addr));
    struct gori_addr over_ipv4;
    int client;
    GT_EQUAL(gori_addr_parse(text, &over_ipv4), 0);
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &client), 0);
    GT_EQUAL(gi_os_connect(client, &over_ipv4), 0);
    gi_os_close(client);
    gi_os_close(listener);
    if (gori_addr_family(&addr) != GORI_ADDR_IPV6) {
        GT_SKIP("this machine has no IPv6");
    }
    listener = listen_at("[::]:0", GI_OS_IPV6_ONLY, &addr);
    gori_addr_set_port(&over_ipv4, gori_addr_port(&addr));
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &client), 0);
    GT_EQUAL(gi_os_connect(client, &over_ipv4), GORI_ECONNREFUSED);
    gi_os_close(client);
    gi_os_close(listener);
}

GT_TEST(os_listen_on_a_taken_port)
{
    struct gori_addr addr;
    int second = -1;
    int first = listen_at("127.0.0.1:0", 0, &addr);
    GT_EQUAL(gi_os_listen(&addr, 16, 0, &second), GORI_EADDRINUSE);
    GT_EQUAL(second, -1);
    gi_os_close(first);
    first = listen_at("127.0.0.1:0", GI_OS_REUSE_PORT, &addr);
    GT_EQUAL(gi_os_listen(&addr, 16, GI_OS_REUSE_PORT, &second), 0);
    gi_os_close(first);
    gi_os_close(second);
}

/* The path of a dead server is taken over, that of a live one is not, a plain file never. */
GT_TEST(os_listen_on_a_unix_path)
{
    char folder[] = "/tmp/gori-socket-XXXXXX";
    GT_CHECK(mkdtemp(folder) != NULL);
    char path[64];
    char text[80];
    (void)snprintf(path, sizeof(path), "%s/s", folder);
    (void)snprintf(text, sizeof(text), "unix:%s", path);
    struct gori_addr addr;
    int second = -1;
    int first = listen_at(text, 0, &addr);
    GT_EQUAL(gi_os_listen(&addr, 16, 0, &second), GORI_EADDRINUSE);
    gi_os_close(first);
    GT_EQUAL(gi_os_listen(&addr, 16, 0, &second), 0);
    gi_os_close(second);
    GT_EQUAL(unlink(path), 0);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    GT_EQUAL(gi_os_listen(&addr, 16, 0, &second), GORI_EADDRINUSE);
    gi_os_close(file);
    GT_EQUAL(unlink(path), 0);
    GT_EQUAL(rmdir(folder), 0);
}

GT_TEST(os_no_delay_is_set)
{
    int fds[2];
    connect_pair(fds);
    int on = 0;
    socklen_t size = sizeof(on);
    GT_EQUAL(gi_os_set_no_delay(fds[0], true), 0);
    GT_EQUAL(getsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
    GT_CHECK(on != 0);
    gi_os_close(fds[0]);
    gi_os_close(fds[1]);
}

/* Bytes move whatever the mode: the first descriptor blocks, and no call waits. */
GT_TEST(os_bytes_move_without_waiting)
{
    int fds[2];
    char got[16];
    connect_pair(fds);
    GT_EQUAL(gi_os_receive(fds[0], got, sizeof(got)), GORI_EAGAIN);
    struct gori_slice pieces[] = {{.data = (const uint8_t *)"abcd", .size = 4},
                                  {.data = (const uint8_t *)"", .size = 0},
                                  {.data = (const uint8_t *)"efg", .size = 3}};
    GT_EQUAL(gi_os_send(fds[0], pieces, 3, 0, false), 7);
    GT_EQUAL(gi_os_send(fds[0], pieces, 3, 3, false), 4);
    GT_EQUAL(gi_os_send(fds[0], pieces, 1, 2, false), 2);
    GT_EQUAL(recv(fds[1], got, 13, MSG_WAITALL), 13);
    GT_EQUAL_BYTES(got, 13, "abcdefgdefgcd", 13);
    static uint8_t much[1 << 20];
    struct gori_slice piece = {.data = much, .size = sizeof(much)};
    int64_t sent;
    do {
        sent = gi_os_send(fds[0], &piece, 1, 0, false);
    } while (sent >= 0);
    GT_EQUAL(sent, GORI_EAGAIN);
    gi_os_close(fds[0]);
    gi_os_close(fds[1]);
}

GT_TEST(os_half_close_and_reset)
{
    int fds[2];
    char got[4];
    struct gori_slice piece = {.data = (const uint8_t *)"x", .size = 1};
    connect_pair(fds);
    GT_EQUAL(gi_os_send(fds[0], &piece, 1, 0, false), 1);
    GT_EQUAL(gi_os_shutdown_send(fds[0]), 0);
    GT_EQUAL(gi_os_send(fds[0], &piece, 1, 0, false), GORI_EPIPE);
    GT_EQUAL(recv(fds[1], got, sizeof(got), 0), 1);
    GT_EQUAL(recv(fds[1], got, sizeof(got), 0), 0);
    GT_EQUAL(gi_os_send(fds[1], &piece, 1, 0, false), 1);
    GT_EQUAL(recv(fds[0], got, sizeof(got), 0), 1);
    gi_os_close(fds[0]);
    gi_os_close(fds[1]);
    connect_pair(fds);
    GT_EQUAL(gi_os_set_reset_on_close(fds[0]), 0);
    gi_os_close(fds[0]);
    GT_EQUAL(gi_os_receive(fds[1], got, sizeof(got)), GORI_ECONNRESET);
    gi_os_close(fds[1]);
}

GT_TEST(os_connect_says_how_it_goes)
{
    struct gori_addr addr;
    int fd;
    int listener = listen_at("127.0.0.1:0", 0, &addr);
    gi_os_close(listener);
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &fd), 0);
    GT_EQUAL(gi_os_connect(fd, &addr), GORI_ECONNREFUSED);
    gi_os_close(fd);
    char text[64];
    (void)snprintf(text, sizeof(text), "unix:@gori-os-test-%d", (int)getpid());
    GT_EQUAL(gori_addr_parse(text, &addr), 0);
    GT_EQUAL(gi_os_listen(&addr, 0, 0, &listener), 0);
    int first;
    GT_EQUAL(gi_os_socket(GORI_ADDR_UNIX, 0, &first), 0);
    GT_EQUAL(gi_os_connect(first, &addr), 0);
    GT_EQUAL(gi_os_socket(GORI_ADDR_UNIX, 0, &fd), 0);
    GT_EQUAL(gi_os_connect(fd, &addr), GORI_EAGAIN);
    gi_os_close(first);
    gi_os_close(fd);
    gi_os_close(listener);
}

/* From the page cache where the file system can, by a copy where it cannot (/proc). */
GT_TEST(os_send_file_both_ways)
{
    static const char *const paths[] = {"/proc/self/exe", "/proc/self/status"};
    for (int i = 0; i < 2; i++) {
        int fds[2];
        char expected[64];
        char got[64];
        connect_pair(fds);
        int file = open(paths[i], O_RDONLY | O_CLOEXEC);
        GT_CHECK(file >= 0);
        GT_EQUAL(gi_os_read_at(file, expected, sizeof(expected), 3), sizeof(expected));
        GT_EQUAL(gi_os_set_blocking(fds[0], false), 0);
        GT_EQUAL(gi_os_send_file(fds[0], file, 3, sizeof(got)), sizeof(got));
        GT_EQUAL(recv(fds[1], got, sizeof(got), MSG_WAITALL), sizeof(got));
        GT_EQUAL_BYTES(got, sizeof(got), expected, sizeof(expected));
        GT_EQUAL(gi_os_send_file(fds[0], file, 1 << 30, 10), 0);
        gi_os_close(file);
        gi_os_close(fds[0]);
        gi_os_close(fds[1]);
    }
}

GT_TEST(os_wake_is_readable_until_cleared)
{
    struct gi_os_wake wake;
    uint64_t count;
    GT_EQUAL(gi_os_wake_open(&wake), 0);
    GT_CHECK(read(wake.read_fd, &count, sizeof(count)) < 0);
    gi_os_wake_signal(&wake);
    gi_os_wake_signal(&wake);
    gi_os_wake_clear(&wake);
    GT_CHECK(read(wake.read_fd, &count, sizeof(count)) < 0);
    gi_os_wake_signal(&wake);
    GT_EQUAL(read(wake.read_fd, &count, sizeof(count)), sizeof(count));
    gi_os_wake_close(&wake);
}

GT_MAIN()
