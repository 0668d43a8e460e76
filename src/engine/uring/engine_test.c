/* SPDX-License-Identifier: MIT */
/*
 * The io_uring engine by itself: what the conformance suite cannot see because it is particular to
 * a ring.  Each test drives the engine through its contract and looks inside where that is the
 * point.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "engine/uring/fixture_test.h"

static struct gori_slice text_slice(const char *text)
{
    return (struct gori_slice){.data = (const uint8_t *)text, .size = strlen(text)};
}

/* The descriptors that this process has open. */
static uint32_t count_descriptors(void)
{
    uint32_t count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    }
    return count;
}

/* The threads of this process, those that the kernel makes for io_uring included. */
static uint32_t count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    GT_CHECK(folder != NULL);
    uint32_t count = 0;
    while (readdir(folder) != NULL) {
        count++;
    }
    GT_EQUAL(closedir(folder), 0);
    return count - 2; /* "." and ".." */
}

GT_TEST(accepts_connects_sends_and_receives)
{
    uint32_t threads = count_threads();
    struct fixture fixture;
    fixture_init(&fixture, 64);
    struct gori_addr addr;
    struct socket listener;
    socket_adopt(&fixture, &listener, listen_anywhere(&addr));
    struct record accept_op = {0};
    record_submit(&fixture, &accept_op, &listener, GORI_OP_ACCEPT);

    struct socket client;
    int fd = -1;
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, 0, &fd), 0);
    socket_adopt(&fixture, &client, fd);
    struct record connect_op = {0};
    connect_op.op.as.connect.addr = &addr;
    record_submit(&fixture, &connect_op, &client, GORI_OP_CONNECT);
    FIXTURE_UNTIL(&fixture, connect_op.lasts == 1 && accept_op.completions == 1);
    GT_EQUAL(connect_op.last_result, 0);

    struct socket server;
    socket_adopt(&fixture, &server, accept_op.accepted);
    struct record receive = {0};
    struct record send = {0};
    record_submit(&fixture, &receive, &server, GORI_OP_RECV_MULTI);
    struct gori_slice pieces[3] = {text_slice("one, "), text_slice("two, "), text_slice("three")};
    record_send(&fixture, &send, &client, pieces, 3);
    FIXTURE_UNTIL(&fixture, send.lasts == 1 && receive.bytes == 15);
    GT_EQUAL(send.last_result, 15);

    char text[16] = {0};
    struct record once = {0};
    once.op.as.recv.data = text;
    once.op.as.recv.size = sizeof(text);
    record_submit(&fixture, &once, &client, GORI_OP_RECV);
    record_send(&fixture, &send, &server, pieces, 1);
    FIXTURE_UNTIL(&fixture, once.lasts == 1);
    GT_EQUAL_STRING(text, "one, ");

    socket_close(&fixture, &client);
    FIXTURE_UNTIL(&fixture, client.closed == 1 && receive.lasts == 1);
    GT_EQUAL(receive.last_result, 0);
    socket_close(&fixture, &server);
    socket_close(&fixture, &listener);
    FIXTURE_UNTIL(&fixture, server.closed == 1 && listener.closed == 1);
    GT_EQUAL(accept_op.last_result, GORI_ECANCELED);
    GT_EQUAL(count_threads(), threads);
    fixture_fini(&fixture);
}

/* Goal: the peer sees the end at once, though a receive was in flight and the loop waits. */
GT_TEST(close_with_a_receive_in_flight_sends_fin)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    int fds[2];
    connect_pair(fds);
    struct socket server;
    socket_adopt(&fixture, &server, fds[0]);
    struct record receive = {0};
    record_submit(&fixture, &receive, &server, GORI_OP_RECV_MULTI);
    (void)fixture_turn(&fixture, 0);
    GT_CHECK(!is_readable(fds[1]));
    socket_close(&fixture, &server);
    GT_EQUAL(server.closed, 0);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    GT_EQUAL(receive.lasts, 1);
    GT_EQUAL(receive.last_result, GORI_ECANCELED);
    char byte;
    GT_EQUAL(read(fds[1], &byte, 1), 0);
    gi_os_close(fds[1]);
    fixture_fini(&fixture);
}

GT_TEST(close_with_everything_in_flight_ends_each_once)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    int fds[2];
    connect_pair(fds);
    struct socket server;
    socket_adopt(&fixture, &server, fds[0]);
    struct record receive = {0};
    struct record send = {0};
    static const uint8_t bytes[16u << 20]; /* more than both sockets take */
    struct gori_slice piece = {.data = bytes, .size = sizeof(bytes)};
    record_submit(&fixture, &receive, &server, GORI_OP_RECV_MULTI);
    record_send(&fixture, &send, &server, &piece, 1);
    (void)fixture_turn(&fixture, 0);
    socket_close(&fixture, &server);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    GT_EQUAL(receive.lasts, 1);
    GT_EQUAL(send.lasts, 1);
    GT_EQUAL(send.last_result, GORI_ECANCELED);
    gi_os_close(fds[1]);
    fixture_fini(&fixture);
}

/*
 * Goal: to close many connections takes time in proportion.  Method: what a close asks of the
 * kernel names the operation, which is found at once; by descriptor all that is in flight on the
 * ring would be looked at, for each of them.
 */
GT_TEST(close_ends_operations_by_name)
{
    struct fixture fixture;
    struct socket socket;
    struct record receive = {0};
    int fds[2];
    fixture_init(&fixture, 64);
    connect_pair(fds);
    socket_adopt(&fixture, &socket, fds[0]);
    record_submit(&fixture, &receive, &socket, GORI_OP_RECV_MULTI);
    (void)fixture_turn(&fixture, 0);
    struct gi_ring *ring = &fixture.uring->ring;
    uint32_t tail = ring->sq_tail;
    socket_close(&fixture, &socket);
    GT_EQUAL(ring->sq_tail, tail + 1);
    const struct io_uring_sqe *sqe = &ring->sqes[tail & ring->sq_mask];
    GT_EQUAL(sqe->opcode, IORING_OP_ASYNC_CANCEL);
    GT_EQUAL(sqe->cancel_flags, 0);
    GT_EQUAL(sqe->addr,
             gi_uring_slots_user_data(&fixture.uring->slots, receive.op.slot, GORI_OP_RECV_MULTI));
    FIXTURE_UNTIL(&fixture, socket.closed == 1);
    GT_EQUAL(receive.lasts, 1);
    GT_EQUAL(receive.last_result, GORI_ECANCELED);
    gi_os_close(fds[1]);
    fixture_fini(&fixture);
}

/* What a cancel could not end, and was not asked again, ends when the handle closes. */
GT_TEST(close_asks_again_for_what_was_given_up)
{
    struct fixture fixture;
    struct socket socket;
    struct record receive = {0};
    int fds[2];
    fixture_init(&fixture, 64);
    connect_pair(fds);
    socket_adopt(&fixture, &socket, fds[0]);
    record_submit(&fixture, &receive, &socket, GORI_OP_RECV_MULTI);
    (void)fixture_turn(&fixture, 0);
    receive.op.state = GI_OP_CANCELING;
    socket_close(&fixture, &socket);
    FIXTURE_UNTIL(&fixture, socket.closed == 1);
    GT_EQUAL(receive.last_result, GORI_ECANCELED);
    gi_os_close(fds[1]);
    fixture_fini(&fixture);
}

GT_TEST(connect_send_close_leaves_nothing_behind)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    struct gori_addr addr;
    struct socket listener;
    socket_adopt(&fixture, &listener, listen_anywhere(&addr));
    struct record accept_op = {0};
    record_submit(&fixture, &accept_op, &listener, GORI_OP_ACCEPT);
    (void)fixture_turn(&fixture, 0);
    uint32_t descriptors = count_descriptors();
    struct gori_slice hello = text_slice("hello");
    for (uint32_t i = 0; i < 10000; i++) {
        struct socket client;
        struct socket server;
        int fd = -1;
        GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &fd), 0);
        GT_EQUAL(gi_os_set_reset_on_close(fd), 0); /* or the ports run out */
        socket_adopt(&fixture, &client, fd);
        struct record connect_op = {0};
        struct record send = {0};
        struct record receive = {0};
        connect_op.op.as.connect.addr = &addr;
        record_submit(&fixture, &connect_op, &client, GORI_OP_CONNECT);
        accept_op.accepted = -1;
        FIXTURE_UNTIL(&fixture, connect_op.lasts == 1 && accept_op.accepted >= 0);
        socket_adopt(&fixture, &server, accept_op.accepted);
        record_submit(&fixture, &receive, &server, GORI_OP_RECV_MULTI);
        record_send(&fixture, &send, &client, &hello, 1);
        FIXTURE_UNTIL(&fixture, receive.bytes == 5 && send.lasts == 1);
        socket_close(&fixture, &client);
        if (i % 2 == 0) {
            socket_close(&fixture, &server);
        }
        FIXTURE_UNTIL(&fixture, client.closed == 1 && receive.lasts == 1);
        if (i % 2 != 0) {
            socket_close(&fixture, &server);
        }
        FIXTURE_UNTIL(&fixture, server.closed == 1);
    }
    GT_EQUAL(count_descriptors(), descriptors);
    GT_EQUAL(fixture.uring->ops_in_flight, 1);
    GT_EQUAL(fixture.uring->stale_completions, 0);
    GT_CHECK(fixture.uring->slots.count < 16);
    GT_EQUAL(fixture.buffers.held_count, 0);
    GT_EQUAL(fixture.buffers.lent_count, fixture.uring->recv_buffers.provided);
    socket_close(&fixture, &listener);
    FIXTURE_UNTIL(&fixture, listener.closed == 1);
    fixture_fini(&fixture);
}

/*
 * Goal: with all buffers held, receives wait without asking the kernel over and over, and go on in
 * turn when buffers return, one hot sender among them or not.
 */
GT_TEST(exhaustion_parks_receives_without_spinning)
{
    enum { SENDERS = 12, BUFFERS = 4 };
    struct fixture fixture;
    fixture_init(&fixture, BUFFERS);
    struct socket servers[SENDERS];
    struct record receives[SENDERS];
    memset(receives, 0, sizeof(receives));
    int peers[SENDERS];
    static uint8_t bytes[32 * 1024];
    for (size_t i = 0; i < SENDERS; i++) {
        int fds[2];
        connect_pair(fds);
        peers[i] = fds[1];
        socket_adopt(&fixture, &servers[i], fds[0]);
        receives[i].keeps = true;
        record_submit(&fixture, &receives[i], &servers[i], GORI_OP_RECV_MULTI);
        size_t size = i == 0 ? sizeof(bytes) : 10; /* the first one has much more to say */
        GT_EQUAL(send(peers[i], bytes, size, 0), size);
    }
    for (int i = 0; i < 20; i++) {
        (void)fixture_turn(&fixture, 0);
    }
    GT_EQUAL(fixture.buffers.held_count, BUFFERS);
    GT_CHECK(gi_uring_slots_queued(&fixture.uring->slots, GI_URING_QUEUE_PARKED) >=
             SENDERS - BUFFERS); /* some of those that were served have nothing more to wait for */
    GT_CHECK(fixture.buffers.starved > 0);
    /* A wait is one call that lasts until its deadline, however much is parked. */
    uint64_t enters = fixture.uring->ring.enters;
    GT_EQUAL(fixture_turn(&fixture, 10 * GORI_MILLISECONDS), 0);
    GT_EQUAL(fixture.uring->ring.enters, enters + 1);

    /* Each turn gives back what is held; nobody waits for more than a few rounds of all. */
    uint32_t turns = 0;
    uint32_t served = 0;
    while (served < SENDERS) {
        GT_CHECK(turns++ < 4 * SENDERS);
        served = 0;
        for (size_t i = 0; i < SENDERS; i++) {
            while (receives[i].kept_count > 0) {
                gori_buffer_release(receives[i].kept[--receives[i].kept_count]);
            }
            served += receives[i].bytes >= 10 ? 1 : 0;
        }
        (void)fixture_turn(&fixture, GORI_MILLISECONDS);
    }
    for (size_t i = 0; i < SENDERS; i++) {
        receives[i].keeps = false;
        while (receives[i].kept_count > 0) {
            gori_buffer_release(receives[i].kept[--receives[i].kept_count]);
        }
    }
    FIXTURE_UNTIL(&fixture, receives[0].bytes == sizeof(bytes));
    for (size_t i = 0; i < SENDERS; i++) {
        socket_close(&fixture, &servers[i]);
        gi_os_close(peers[i]);
    }
    for (size_t i = 0; i < SENDERS; i++) {
        FIXTURE_UNTIL(&fixture, servers[i].closed == 1);
    }
    fixture_fini(&fixture);
}

/*
 * Goal: receives that were resumed and have nothing to receive keep no buffer from those parked
 * behind them: those get theirs without any other event.
 */
GT_TEST(resumed_receives_without_data_do_not_block_those_behind)
{
    enum { COUNT = 6 };
    struct fixture fixture;
    fixture_init(&fixture, 2);
    struct socket servers[COUNT];
    struct record receives[COUNT];
    memset(receives, 0, sizeof(receives));
    int peers[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        int fds[2];
        connect_pair(fds);
        peers[i] = fds[1];
        socket_adopt(&fixture, &servers[i], fds[0]);
        receives[i].keeps = true;
        record_submit(&fixture, &receives[i], &servers[i], GORI_OP_RECV_MULTI);
        GT_EQUAL(send(peers[i], "x", 1, 0), 1);
    }
    FIXTURE_UNTIL(&fixture, gi_uring_slots_queued(&fixture.uring->slots, GI_URING_QUEUE_PARKED) ==
                                COUNT - fixture.buffers.held_count);
    /* Those in front lose what they wait for; only the last one still has something to receive. */
    const struct gi_uring_slots *slots = &fixture.uring->slots;
    uint32_t last_index = slots->queues[GI_URING_QUEUE_PARKED].last;
    struct record *last = gori_container_of(slots->table[last_index].owner, struct record, op);
    for (size_t i = 0; i < COUNT; i++) {
        char byte;
        if (receives[i].bytes == 0 && &receives[i] != last) {
            GT_EQUAL(recv((int)servers[i].handle.native, &byte, 1, MSG_DONTWAIT), 1);
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        while (receives[i].kept_count > 0) {
            gori_buffer_release(receives[i].kept[--receives[i].kept_count]);
        }
    }
    for (int turn = 0; turn < COUNT && last->bytes == 0; turn++) {
        (void)fixture_turn(&fixture, 3600 * GORI_SECONDS);
    }
    GT_EQUAL(last->bytes, 1);
    for (size_t i = 0; i < COUNT; i++) {
        receives[i].keeps = false;
        while (receives[i].kept_count > 0) {
            gori_buffer_release(receives[i].kept[--receives[i].kept_count]);
        }
        socket_close(&fixture, &servers[i]);
        gi_os_close(peers[i]);
        FIXTURE_UNTIL(&fixture, servers[i].closed == 1);
    }
    fixture_fini(&fixture);
}

/* Goal: a parked receive ends at once when it is cancelled, and when its handle is closed. */
GT_TEST(parked_receives_end_without_the_kernel)
{
    struct fixture fixture;
    fixture_init(&fixture, 1);
    struct socket servers[2];
    struct record receives[2];
    memset(receives, 0, sizeof(receives));
    int peers[2];
    for (size_t i = 0; i < 2; i++) {
        int fds[2];
        connect_pair(fds);
        peers[i] = fds[1];
        socket_adopt(&fixture, &servers[i], fds[0]);
        receives[i].keeps = true;
        record_submit(&fixture, &receives[i], &servers[i], GORI_OP_RECV_MULTI);
        static const uint8_t bytes[8192];
        GT_EQUAL(send(peers[i], bytes, sizeof(bytes), 0), sizeof(bytes));
    }
    FIXTURE_UNTIL(&fixture,
                  gi_uring_slots_queued(&fixture.uring->slots, GI_URING_QUEUE_PARKED) == 2);
    record_cancel(&fixture, &receives[0]);
    GT_EQUAL(receives[0].lasts, 0);
    GT_EQUAL(fixture_turn(&fixture, GORI_SECONDS), 1);
    GT_EQUAL(receives[0].last_result, GORI_ECANCELED);
    socket_close(&fixture, &servers[1]);
    FIXTURE_UNTIL(&fixture, servers[1].closed == 1);
    GT_EQUAL(receives[1].lasts, 1);
    socket_close(&fixture, &servers[0]);
    FIXTURE_UNTIL(&fixture, servers[0].closed == 1);
    for (size_t i = 0; i < 2; i++) {
        while (receives[i].kept_count > 0) {
            gori_buffer_release(receives[i].kept[--receives[i].kept_count]);
        }
        gi_os_close(peers[i]);
    }
    fixture_fini(&fixture);
}

/* Goal: a receive cancelled while data pours in ends once, nothing is lost, and it can go on. */
GT_TEST(cancel_races_with_data)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    int fds[2];
    connect_pair(fds);
    struct socket server;
    socket_adopt(&fixture, &server, fds[0]);
    uint64_t sent = 0;
    uint64_t received = 0;
    for (int i = 0; i < 5000; i++) {
        struct record receive = {0};
        record_submit(&fixture, &receive, &server, GORI_OP_RECV_MULTI);
        if (i % 3 == 0) {
            (void)fixture_turn(&fixture, 0);
        }
        GT_EQUAL(send(fds[1], "0123456789", 10, 0), 10);
        sent += 10;
        if (i % 2 == 0) {
            (void)fixture_turn(&fixture, 0);
        }
        record_cancel(&fixture, &receive);
        FIXTURE_UNTIL(&fixture, receive.lasts == 1);
        received += receive.bytes;
        GT_CHECK(receive.last_result == GORI_ECANCELED || receive.last_result == 10);
    }
    struct record receive = {0};
    record_submit(&fixture, &receive, &server, GORI_OP_RECV_MULTI);
    FIXTURE_UNTIL(&fixture, received + receive.bytes == sent);
    GT_EQUAL(fixture.uring->stale_completions, 0);
    socket_close(&fixture, &server);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    gi_os_close(fds[1]);
    fixture_fini(&fixture);
}

/* Makes the rings so small that everything overflows, and keeps them so. */
static void shrink_rings(struct fixture *fixture)
{
    if (!(fixture->uring->ring.features & GI_URING_RESIZE_RINGS)) {
        GT_SKIP("this kernel cannot resize rings");
    }
    (void)fixture_turn(fixture, 0);
    GT_EQUAL(gi_ring_resize(&fixture->uring->ring, 8, 16), 0);
    fixture->uring->may_grow = false;
}

enum { MANY = 150 };

/* Many connections between the engine and itself: [i] to [i + MANY]. */
struct crowd {
    struct socket sockets[2 * MANY];
    struct record receives[2 * MANY];
    struct record sends[2 * MANY];
};

static void crowd_open(struct fixture *fixture, struct crowd *crowd)
{
    memset(crowd, 0, sizeof(*crowd));
    for (size_t i = 0; i < MANY; i++) {
        int fds[2];
        GT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        socket_adopt(fixture, &crowd->sockets[i], fds[0]);
        socket_adopt(fixture, &crowd->sockets[i + MANY], fds[1]);
    }
    for (size_t i = 0; i < 2 * MANY; i++) {
        record_submit(fixture, &crowd->receives[i], &crowd->sockets[i], GORI_OP_RECV_MULTI);
    }
}

static void crowd_send(struct fixture *fixture, struct crowd *crowd, const struct gori_slice *piece)
{
    for (size_t i = 0; i < 2 * MANY; i++) {
        record_send(fixture, &crowd->sends[i], &crowd->sockets[i], piece, 1);
    }
}

static bool crowd_has_received(const struct crowd *crowd, uint64_t bytes)
{
    for (size_t i = 0; i < 2 * MANY; i++) {
        GT_CHECK(crowd->receives[i].bytes <= bytes);
        if (crowd->receives[i].bytes < bytes || crowd->sends[i].lasts == 0) {
            return false;
        }
    }
    return true;
}

static void crowd_close(struct fixture *fixture, struct crowd *crowd)
{
    for (size_t i = 0; i < 2 * MANY; i++) {
        socket_close(fixture, &crowd->sockets[i]);
    }
    for (size_t i = 0; i < 2 * MANY; i++) {
        FIXTURE_UNTIL(fixture, crowd->sockets[i].closed == 1);
        GT_EQUAL(crowd->receives[i].lasts, 1);
    }
}

/* Goal: with queues of 8 and 16, 300 connections lose nothing: no byte, no end, no hang. */
GT_TEST(tiny_queues_lose_nothing)
{
    static struct crowd crowd;
    struct fixture fixture;
    fixture_init(&fixture, 4096);
    shrink_rings(&fixture);
    crowd_open(&fixture, &crowd);
    struct gori_slice hello = text_slice("hello");
    for (uint64_t round = 1; round <= 20; round++) {
        crowd_send(&fixture, &crowd, &hello);
        FIXTURE_UNTIL(&fixture, crowd_has_received(&crowd, round * hello.size));
    }
    crowd_close(&fixture, &crowd);
    GT_EQUAL(fixture.uring->stale_completions, 0);
    fixture_fini(&fixture);
}

/* Goal: queues that were too small grow, and nothing is lost meanwhile. */
GT_TEST(queues_grow_under_load)
{
    static struct crowd crowd;
    struct fixture fixture;
    fixture_init(&fixture, 4096);
    shrink_rings(&fixture);
    fixture.uring->may_grow = true;
    crowd_open(&fixture, &crowd);
    struct gori_slice hello = text_slice("hello");
    for (uint64_t round = 1; round <= 20; round++) {
        crowd_send(&fixture, &crowd, &hello);
        FIXTURE_UNTIL(&fixture, crowd_has_received(&crowd, round * hello.size));
    }
    GT_CHECK(gi_ring_sq_entries(&fixture.uring->ring) >= 256);
    GT_CHECK(gi_ring_cq_entries(&fixture.uring->ring) >= 512);
    crowd_close(&fixture, &crowd);
    fixture_fini(&fixture);
}

/* Sends pieces of all sizes to a reader that takes a little at a time; every byte has its place. */
static void check_slow_reader(const char *disabled)
{
    GT_EQUAL(setenv("GORI_URING_DISABLE", disabled, 1), 0);
    struct fixture fixture;
    fixture_init(&fixture, 64);
    int fds[2];
    GT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    int small = 4096;
    GT_EQUAL(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    struct socket sender;
    socket_adopt(&fixture, &sender, fds[0]);
    static uint8_t bytes[400000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    struct gori_slice pieces[GORI_SEND_PIECES_MAX];
    size_t size = 0;
    for (uint32_t i = 0; i < GORI_SEND_PIECES_MAX; i++) {
        size_t piece_size = i % 7 == 0 ? 0 : i * 190;
        pieces[i] = (struct gori_slice){.data = bytes + size, .size = piece_size};
        size += piece_size;
    }
    GT_CHECK(size <= sizeof(bytes));
    struct record send = {0};
    record_send(&fixture, &send, &sender, pieces, GORI_SEND_PIECES_MAX);
    static uint8_t got[sizeof(bytes)];
    size_t got_size = 0;
    while (got_size < size) {
        (void)fixture_turn(&fixture, 0);
        ssize_t part = recv(fds[1], got + got_size, 1 + got_size % 5000, MSG_DONTWAIT);
        got_size += part > 0 ? (size_t)part : 0;
    }
    FIXTURE_UNTIL(&fixture, send.lasts == 1);
    GT_EQUAL(send.last_result, size);
    GT_EQUAL_BYTES(got, got_size, bytes, size);
    socket_close(&fixture, &sender);
    FIXTURE_UNTIL(&fixture, sender.closed == 1);
    gi_os_close(fds[1]);
    fixture_fini(&fixture);
}

GT_TEST(gathered_send_to_a_slow_reader_keeps_every_byte_in_place)
{
    check_slow_reader("");
    check_slow_reader("send_vectorized");
    check_slow_reader("defer_taskrun,send_vectorized");
}

/* Goal: after a short send the engine sends on before anything else, from any point of any piece.
 */
GT_TEST(short_send_goes_on_where_it_stopped)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    int fds[2];
    GT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct socket sender;
    socket_adopt(&fixture, &sender, fds[0]);
    struct gori_slice pieces[4] = {text_slice("abc"), text_slice(""), text_slice("defg"),
                                   text_slice("h")};
    for (size_t split = 0; split <= 8; split++) {
        /* As if a first try had sent `split` bytes: the state it leaves behind. */
        struct record send = {0};
        record_send(&fixture, &send, &sender, pieces, 4);
        (void)fixture.engine->impl->turn(fixture.engine, 0);
        char text[16] = {0};
        GT_EQUAL(recv(fds[1], text, sizeof(text), 0), 8);
        struct io_uring_cqe *cqe =
            (struct io_uring_cqe *)(uintptr_t)&fixture.uring->ring
                .cqes[fixture.uring->ring.cq_head & fixture.uring->ring.cq_mask];
        GT_EQUAL(cqe->res, 8);
        cqe->res = (int)split;
        FIXTURE_UNTIL(&fixture, send.lasts == 1);
        GT_EQUAL(send.last_result, 8);
        memset(text, 0, sizeof(text));
        ssize_t rest = recv(fds[1], text, sizeof(text), MSG_DONTWAIT);
        GT_EQUAL_STRING(text, &"abcdefgh"[split]);
        GT_EQUAL(rest, split < 8 ? (ssize_t)(8 - split) : -1);
    }
    socket_close(&fixture, &sender);
    FIXTURE_UNTIL(&fixture, sender.closed == 1);
    gi_os_close(fds[1]);
    fixture_fini(&fixture);
}

static int make_file(size_t size)
{
    char path[] = "/tmp/gori-file-XXXXXX";
    int file = mkstemp(path);
    GT_CHECK(file >= 0);
    GT_EQUAL(unlink(path), 0);
    static uint8_t bytes[1 << 16];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 31 >> 3);
    }
    for (size_t done = 0; done < size; done += sizeof(bytes)) {
        size_t part = gi_min_size(size - done, sizeof(bytes));
        GT_EQUAL(write(file, bytes, part), part);
    }
    return file;
}

static void record_send_file(struct fixture *fixture, struct record *record, struct socket *socket,
                             int file, uint64_t size)
{
    record->op.as.send_file.file = file;
    record->op.as.send_file.offset = 1;
    record->op.as.send_file.size = size;
    record->op.as.send_file.progress = 0;
    record_submit(fixture, record, socket, GORI_OP_SEND_FILE);
}

/* Goal: the mode of a socket that came from outside is set, whatever its number was before. */
GT_TEST(a_reused_descriptor_number_is_not_taken_for_what_was_accepted)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    struct gori_addr addr;
    struct socket listener;
    socket_adopt(&fixture, &listener, listen_anywhere(&addr));
    struct record accept_op = {0};
    record_submit(&fixture, &accept_op, &listener, GORI_OP_ACCEPT);
    int client;
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &client), 0);
    GT_EQUAL(gi_os_connect(client, &addr), 0);
    FIXTURE_UNTIL(&fixture, accept_op.completions == 1);
    int number = accept_op.accepted;
    gi_os_close(number);
    int fds[2];
    connect_pair(fds);
    GT_EQUAL(gi_os_set_blocking(fds[0], false), 0);
    if (fds[0] != number) {
        GT_EQUAL(dup2(fds[0], number), number);
        gi_os_close(fds[0]);
    }
    struct socket adopted;
    socket_adopt(&fixture, &adopted, number);
    GT_EQUAL(fcntl(number, F_GETFL) & O_NONBLOCK, 0);
    socket_close(&fixture, &adopted);
    socket_close(&fixture, &listener);
    FIXTURE_UNTIL(&fixture, adopted.closed == 1 && listener.closed == 1);
    gi_os_close(fds[1]);
    gi_os_close(client);
    fixture_fini(&fixture);
}

/* Goal: a listener that a poller elsewhere made non-blocking is accepted from. */
GT_TEST(a_listener_in_either_mode_is_accepted_from)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    struct gori_addr addr;
    struct socket listener = {0};
    listener.handle.native = listen_anywhere(&addr);
    listener.handle.flags = GI_HANDLE_LISTENER;
    GT_EQUAL(gi_os_set_blocking((int)listener.handle.native, false), 0);
    GT_EQUAL(fixture.engine->impl->attach(fixture.engine, &listener.handle), 0);
    listener.handle.state = GI_HANDLE_OPEN;
    struct record accept_op = {0};
    record_submit(&fixture, &accept_op, &listener, GORI_OP_ACCEPT);
    for (uint32_t i = 1; i <= 3; i++) {
        int client;
        (void)fixture_turn(&fixture, 0); /* it waits by now */
        GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &client), 0);
        GT_EQUAL(gi_os_connect(client, &addr), 0);
        FIXTURE_UNTIL(&fixture, accept_op.completions == i);
        gi_os_close(accept_op.accepted);
        gi_os_close(client);
    }
    GT_EQUAL(accept_op.lasts, 0);
    socket_close(&fixture, &listener);
    FIXTURE_UNTIL(&fixture, listener.closed == 1);
    fixture_fini(&fixture);
}

GT_TEST(file_goes_to_a_slow_reader_while_the_loop_turns)
{
    enum { SIZE = 2000000 };
    struct fixture fixture;
    fixture_init(&fixture, 64);
    int fds[2];
    connect_pair(fds);
    struct socket sender;
    socket_adopt(&fixture, &sender, fds[0]);
    int file = make_file(SIZE + 1);
    struct record send = {0};
    record_send_file(&fixture, &send, &sender, file, SIZE);
    static uint8_t got[SIZE];
    size_t got_size = 0;
    while (got_size < SIZE) {
        (void)fixture_turn(&fixture, 0);
        ssize_t part = recv(fds[1], got + got_size, SIZE - got_size, MSG_DONTWAIT);
        got_size += part > 0 ? (size_t)part : 0;
    }
    FIXTURE_UNTIL(&fixture, send.lasts == 1);
    GT_EQUAL(send.last_result, SIZE);
    for (size_t i = 0; i < SIZE; i++) {
        GT_EQUAL(got[i], (uint8_t)(((i + 1) & 0xffff) * 31 >> 3));
    }
    GT_EQUAL(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
    socket_close(&fixture, &sender);
    FIXTURE_UNTIL(&fixture, sender.closed == 1);
    gi_os_close(fds[1]);
    gi_os_close(file);
    fixture_fini(&fixture);
}

GT_TEST(file_that_is_shorter_than_promised_says_so)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    int fds[2];
    connect_pair(fds);
    struct socket sender;
    socket_adopt(&fixture, &sender, fds[0]);
    int file = make_file(1000);
    struct record send = {0};
    record_send_file(&fixture, &send, &sender, file, 1000);
    FIXTURE_UNTIL(&fixture, send.lasts == 1);
    GT_EQUAL(send.last_result, GORI_ETRUNCATED);
    gi_os_close(file);
    /* One that is waiting for room is cancelled, and ends once. */
    file = make_file(32u << 20);
    record_send_file(&fixture, &send, &sender, file, 30u << 20);
    for (int i = 0; i < 200; i++) {
        (void)fixture_turn(&fixture, 0);
    }
    GT_EQUAL(send.lasts, 0);
    record_cancel(&fixture, &send);
    FIXTURE_UNTIL(&fixture, send.lasts == 1);
    GT_EQUAL(send.last_result, GORI_ECANCELED);
    /* A peer that is gone is an error, not a signal, also where SIGPIPE would end the program. */
    gi_os_close(fds[1]);
    for (int i = 0; i < 3; i++) {
        record_send_file(&fixture, &send, &sender, file, 30u << 20);
        FIXTURE_UNTIL(&fixture, send.lasts == 1);
        GT_CHECK(send.last_result == GORI_EPIPE || send.last_result == GORI_ECONNRESET);
    }
    socket_close(&fixture, &sender);
    FIXTURE_UNTIL(&fixture, sender.closed == 1);
    gi_os_close(file);
    fixture_fini(&fixture);
}

static void wake_often(void *argument)
{
    struct gi_engine *engine = argument;
    for (int i = 0; i < 100000; i++) {
        engine->impl->wake(engine);
    }
}

/* Goal: a wake ends a wait that has no deadline, each time; many at once cost one write. */
GT_TEST(wake_is_never_lost_and_coalesced)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    for (int i = 0; i < 1000; i++) {
        fixture.engine->impl->wake(fixture.engine);
        if (i % 2 == 0) {
            fixture.engine->impl->wake(fixture.engine);
        }
        GT_EQUAL(fixture.engine->impl->turn(fixture.engine, GORI_NEVER), 0);
        struct gi_completion completion;
        GT_CHECK(!fixture.engine->impl->next(fixture.engine, &completion));
    }
    struct gi_os_thread thread;
    GT_EQUAL(gi_os_thread_start(&thread, wake_often, fixture.engine), 0);
    GT_EQUAL(fixture.engine->impl->turn(fixture.engine, GORI_NEVER), 0);
    gi_os_thread_join(&thread);
    for (int i = 0; i < 10; i++) {
        (void)fixture_turn(&fixture, 0);
    }
    uint64_t enters = fixture.uring->ring.enters;
    (void)fixture_turn(&fixture, GORI_MILLISECONDS);
    GT_EQUAL(fixture.uring->ring.enters, enters + 1);
    fixture_fini(&fixture);
}

/* Goal: accepts that are cancelled while connections arrive leave no descriptor behind. */
GT_TEST(cancelled_accepts_leak_nothing)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    struct gori_addr addr;
    struct socket listener;
    socket_adopt(&fixture, &listener, listen_anywhere(&addr));
    uint32_t descriptors = count_descriptors();
    uint32_t accepted = 0;
    for (int i = 0; i < 1000; i++) {
        struct record accept_op = {0};
        record_submit(&fixture, &accept_op, &listener, GORI_OP_ACCEPT);
        if (i % 2 == 0) {
            (void)fixture_turn(&fixture, 0);
        }
        int fd = -1;
        GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &fd), 0);
        GT_EQUAL(gi_os_set_reset_on_close(fd), 0);
        GT_EQUAL(connect(fd, (const struct sockaddr *)addr.as.native, addr.size), 0);
        record_cancel(&fixture, &accept_op);
        FIXTURE_UNTIL(&fixture, accept_op.lasts == 1);
        if (accept_op.accepted >= 0) {
            gi_os_close(accept_op.accepted);
            accepted++;
        }
        gi_os_close(fd);
    }
    GT_CHECK(accepted > 0);
    GT_EQUAL(count_descriptors(), descriptors);
    socket_close(&fixture, &listener);
    FIXTURE_UNTIL(&fixture, listener.closed == 1);
    fixture_fini(&fixture);
}

/* Goal: an accept that cannot work ends with its error; it neither spins nor stays. */
GT_TEST(accept_on_what_does_not_listen_gives_up)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    int fd = -1;
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &fd), 0);
    struct socket deaf;
    socket_adopt(&fixture, &deaf, fd);
    struct record accept_op = {0};
    record_submit(&fixture, &accept_op, &deaf, GORI_OP_ACCEPT);
    uint64_t enters = fixture.uring->ring.enters;
    FIXTURE_UNTIL(&fixture, accept_op.lasts == 1);
    GT_EQUAL(accept_op.last_result, GORI_EINVAL);
    GT_CHECK(fixture.uring->ring.enters - enters <= 8);
    socket_close(&fixture, &deaf);
    FIXTURE_UNTIL(&fixture, deaf.closed == 1);
    fixture_fini(&fixture);
}

/* Goal: what comes under a name that is gone is counted, and what it carries is not lost. */
GT_TEST(completion_of_a_stranger_is_counted_and_cleaned_up)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    struct gori_addr addr;
    int listener = listen_anywhere(&addr);
    int fds[2];
    connect_pair(fds);
    (void)fixture_turn(&fixture, 0);
    uint32_t descriptors = count_descriptors();
    uint32_t made = fixture.buffers.free_count + fixture.buffers.lent_count;
    *gi_ring_take_sqe(&fixture.uring->ring) = (struct io_uring_sqe){
        .opcode = IORING_OP_ACCEPT,
        .fd = listener,
        .user_data = UINT64_C(77) << 32 | 5 << 8 | GORI_OP_ACCEPT,
    };
    *gi_ring_take_sqe(&fixture.uring->ring) = (struct io_uring_sqe){
        .opcode = IORING_OP_RECV,
        .flags = IOSQE_BUFFER_SELECT,
        .fd = fds[0],
        .user_data = UINT64_C(77) << 32 | 5 << 8 | GORI_OP_RECV_MULTI,
    };
    int client = -1;
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &client), 0);
    GT_EQUAL(connect(client, (const struct sockaddr *)addr.as.native, addr.size), 0);
    GT_EQUAL(send(fds[1], "hello", 5, 0), 5);
    FIXTURE_UNTIL(&fixture, fixture.uring->stale_completions == 2);
    GT_EQUAL(fixture.delivered, 0);
    GT_EQUAL(count_descriptors(), descriptors + 1); /* the client's */
    GT_EQUAL(fixture.buffers.free_count + fixture.buffers.lent_count, made);
    gi_os_close(client);
    gi_os_close(listener);
    gi_os_close(fds[0]);
    gi_os_close(fds[1]);
    fixture_fini(&fixture);
}

/* Goal: a descriptor number that is used again at once never gets what was meant for the old one.
 */
GT_TEST(reused_descriptor_number_gets_nothing_of_the_old)
{
    struct fixture fixture;
    fixture_init(&fixture, 64);
    for (int i = 0; i < 500; i++) {
        int fds[2];
        connect_pair(fds);
        struct socket old;
        socket_adopt(&fixture, &old, fds[0]);
        struct record receive = {0};
        record_submit(&fixture, &receive, &old, GORI_OP_RECV_MULTI);
        (void)fixture_turn(&fixture, 0);
        GT_EQUAL(send(fds[1], "old", 3, 0), 3);
        socket_close(&fixture, &old);
        FIXTURE_UNTIL(&fixture, old.closed == 1);
        gi_os_close(fds[1]);
        int again[2];
        connect_pair(again);
        struct socket new;
        socket_adopt(&fixture, &new, again[0]);
        struct record fresh = {0};
        record_submit(&fixture, &fresh, &new, GORI_OP_RECV_MULTI);
        for (int turn = 0; turn < 3; turn++) {
            (void)fixture_turn(&fixture, 0);
        }
        GT_EQUAL(fresh.completions, 0);
        GT_EQUAL(send(again[1], "fresh", 5, 0), 5);
        FIXTURE_UNTIL(&fixture, fresh.bytes == 5);
        socket_close(&fixture, &new);
        FIXTURE_UNTIL(&fixture, new.closed == 1);
        gi_os_close(again[1]);
    }
    GT_EQUAL(fixture.uring->stale_completions, 0);
    fixture_fini(&fixture);
}

/*
 * Goal: a UNIX server whose queue is full makes a connect wait, not fail; the wait can be
 * cancelled, closed, and ends when there is room.
 */
GT_TEST(connect_waits_for_room_in_a_unix_queue)
{
    uint32_t threads = count_threads();
    struct fixture fixture;
    fixture_init(&fixture, 64);
    char text[64];
    (void)snprintf(text, sizeof(text), "unix:/tmp/gori-queue-%d", (int)getpid());
    struct gori_addr addr;
    GT_EQUAL(gori_addr_parse(text, &addr), 0);
    int listener = -1;
    GT_EQUAL(gi_os_listen(&addr, 1, GI_OS_BLOCKING, &listener), 0);
    enum { CLIENTS = 5 };
    struct socket clients[CLIENTS];
    struct record connects[CLIENTS];
    memset(connects, 0, sizeof(connects));
    for (size_t i = 0; i < CLIENTS; i++) {
        int fd = -1;
        GT_EQUAL(gi_os_socket(GORI_ADDR_UNIX, GI_OS_BLOCKING, &fd), 0);
        socket_adopt(&fixture, &clients[i], fd);
        connects[i].op.as.connect.addr = &addr;
        record_submit(&fixture, &connects[i], &clients[i], GORI_OP_CONNECT);
        (void)fixture_turn(&fixture, 0);
    }
    GT_EQUAL(connects[1].lasts, 1);
    GT_EQUAL(connects[2].lasts + connects[3].lasts + connects[4].lasts, 0);
    record_cancel(&fixture, &connects[2]);
    socket_close(&fixture, &clients[3]);
    FIXTURE_UNTIL(&fixture, connects[2].lasts == 1 && clients[3].closed == 1);
    GT_EQUAL(connects[2].last_result, GORI_ECANCELED);
    GT_EQUAL(connects[3].last_result, GORI_ECANCELED);
    for (size_t i = 0; i < 3; i++) {
        int accepted = accept(listener, NULL, NULL);
        GT_CHECK(accepted >= 0);
        gi_os_close(accepted);
        FIXTURE_UNTIL(&fixture, i == 0 || connects[4].lasts == 1);
    }
    GT_EQUAL(connects[4].last_result, 0);
    for (size_t i = 0; i < CLIENTS; i++) {
        if (clients[i].closed == 0) {
            socket_close(&fixture, &clients[i]);
            FIXTURE_UNTIL(&fixture, clients[i].closed == 1);
        }
    }
    GT_EQUAL(count_threads(), threads);
    gi_os_close(listener);
    GT_EQUAL(unlink(text + 5), 0);
    fixture_fini(&fixture);
}

GT_MAIN()
