/* SPDX-License-Identifier: MIT */
/*
 * The io_uring engine by itself: what the conformance suite cannot see because it is particular to
 * a ring.  Each test drives the engine through its contract and looks inside where that is the
 * point.
 */
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

GT_TEST(accepts_connects_sends_and_receives)
{
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

GT_MAIN()
