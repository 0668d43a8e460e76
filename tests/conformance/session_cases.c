/* SPDX-License-Identifier: MIT */
/*
 * Conformance of sessions and listeners: the callbacks of one side as a line of text, which has to
 * be the same on every engine.
 */
#include "conformance/fixture.h"
#include "lib/system.h"
#include <gori/block.h>

/* A server on the loop whose sessions write what happens to them into the fixture's trace. */
struct server {
    struct fixture *fixture;
    struct gori_listener *listener;
    struct gori_addr addr;
    struct gori_session *session; /* the newest */
    unsigned opened;
    unsigned closed;
    unsigned listener_closed;
    enum gori_close_reason reason; /* of the newest close */
    int error;
    uint64_t received;
    uint8_t stamp;      /* checked on what is received, unless 0 */
    size_t consume_max; /* bytes consumed of one view at most; 0: all */
    bool quiet;         /* leave bytes out of the trace */
    bool pause_on_recv;
    bool echo;
    void (*on_open)(struct server *server, struct gori_session *session);
    void (*on_recv)(struct server *server, struct gori_session *session, struct gori_slice bytes);
    void (*on_eof)(struct server *server, struct gori_session *session);
    void (*on_timeout)(struct server *server, struct gori_session *session);
};

static struct server *server_of(struct gori_session *session)
{
    struct server *server = gori_session_user(session);
    GT_CHECK(!server->fixture->in_call);
    return server;
}

static void opened(struct gori_session *session)
{
    struct server *server = server_of(session);
    server->session = session;
    server->opened++;
    fixture_trace(server->fixture, "open");
    if (server->on_open != NULL) {
        server->on_open(server, session);
    }
}

static size_t received(struct gori_session *session, struct gori_slice bytes)
{
    struct server *server = server_of(session);
    size_t consumed = bytes.size;
    GT_CHECK(bytes.size > 0);
    if (server->consume_max != 0 && consumed > server->consume_max) {
        consumed = server->consume_max;
    }
    if (server->stamp != 0) {
        fixture_check(bytes.data, bytes.size, server->stamp, server->received);
    }
    if (!server->quiet) {
        fixture_trace(server->fixture, "recv(%.*s)", (int)bytes.size, (const char *)bytes.data);
    }
    server->received += consumed;
    if (server->echo) {
        GT_CHECK(gori_session_send(session, bytes.data, consumed) >= 0);
    }
    if (server->pause_on_recv) {
        gori_session_pause(session);
    }
    if (server->on_recv != NULL) {
        server->on_recv(server, session, bytes);
    }
    return consumed;
}

static void ended(struct gori_session *session)
{
    struct server *server = server_of(session);
    fixture_trace(server->fixture, "eof");
    if (server->on_eof != NULL) {
        server->on_eof(server, session);
    }
}

static void drained(struct gori_session *session)
{
    fixture_trace(server_of(session)->fixture, "drain");
}

static void timed_out(struct gori_session *session, enum gori_timeout which)
{
    struct server *server = server_of(session);
    fixture_trace(server->fixture, "timeout(%d)", (int)which);
    if (server->on_timeout != NULL) {
        server->on_timeout(server, session);
    }
}

static void closed(struct gori_session *session, enum gori_close_reason reason, int error)
{
    struct server *server = server_of(session);
    server->closed++;
    server->reason = reason;
    server->error = error;
    fixture_trace(server->fixture, "close(%s)", gori_close_reason_name(reason));
    GT_EQUAL(gori_session_send(session, "x", 1), GORI_ECLOSED);
    gori_session_close(session); /* harmless */
}

static const struct gori_session_events all_events = {
    .on_open = opened,
    .on_recv = received,
    .on_eof = ended,
    .on_drain = drained,
    .on_timeout = timed_out,
    .on_close = closed,
};

static const struct gori_session_events default_events = {
    .on_open = opened,
    .on_recv = received,
    .on_close = closed,
};

static void listener_closed(struct gori_listener *listener)
{
    struct server *server = gori_listener_user(listener);
    server->listener_closed++;
}

static void server_open_at(struct fixture *fixture, struct server *server, const char *text,
                           const struct gori_session_events *events,
                           const struct gori_session_options *options)
{
    struct gori_listener_config config = {
        .addr = fixture_addr(text),
        .events = events,
        .user = server,
        .on_close = listener_closed,
    };
    if (options != NULL) {
        config.options = *options;
    }
    server->fixture = fixture;
    GT_EQUAL(gori_listener_open(fixture->loop, &config, &server->listener), 0);
    gori_listener_addr(server->listener, &server->addr);
}

static void server_open(struct fixture *fixture, struct server *server,
                        const struct gori_session_events *events,
                        const struct gori_session_options *options)
{
    server_open_at(fixture, server, "127.0.0.1:0", events, options);
}

static struct gt_peer *server_meet(struct server *server)
{
    unsigned before = server->opened;
    struct gt_peer *peer = fixture_connect(server->fixture, &server->addr);
    GT_CHECK(peer != NULL);
    FIXTURE_UNTIL(server->fixture, server->opened == before + 1);
    return peer;
}

static void send_text(struct gt_peer *peer, const char *text)
{
    GT_EQUAL(gt_peer_send(peer, text, strlen(text)), strlen(text));
}

static void expect_text(struct fixture *fixture, struct gt_peer *peer, const char *text)
{
    char room[256];
    size_t wanted = strlen(text);
    size_t got = 0;
    while (got < wanted) {
        int64_t result = gt_peer_recv(peer, room + got, wanted - got);
        GT_CHECK(result > 0 || result == GORI_EAGAIN);
        if (result > 0) {
            got += (size_t)result;
        } else {
            fixture_turn(fixture);
        }
    }
    GT_EQUAL_BYTES(room, got, text, wanted);
}

static void expect_end(struct fixture *fixture, struct gt_peer *peer, int expected)
{
    uint8_t byte;
    int64_t result;
    FIXTURE_UNTIL(fixture, (result = gt_peer_recv(peer, &byte, 1)) != GORI_EAGAIN);
    GT_EQUAL(result, expected);
}

GT_TEST(a_session_echoes_and_ends_with_its_peer)
{
    struct fixture fixture = {0};
    struct server server = {.echo = true};
    fixture_open(&fixture);
    server_open(&fixture, &server, &default_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    send_text(peer, "ping");
    expect_text(&fixture, peer, "ping");
    gt_peer_shutdown(peer);
    expect_end(&fixture, peer, 0);
    fixture_hang_up(peer);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    GT_EQUAL_STRING(fixture.trace, "open recv(ping) close(peer)");
    GT_EQUAL(gori_listener_sessions(server.listener), 0);
    fixture_close(&fixture);
    GT_EQUAL(server.listener_closed, 1);
}

GT_TEST(what_is_not_consumed_is_shown_again_in_front_of_what_follows)
{
    struct fixture fixture = {0};
    struct server server = {.consume_max = 2};
    fixture_open(&fixture);
    server_open(&fixture, &server, &default_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    send_text(peer, "abc");
    FIXTURE_UNTIL(&fixture, server.received == 2);
    fixture_settle(&fixture);
    GT_EQUAL(server.received, 2); /* not shown again without more */
    send_text(peer, "de");
    FIXTURE_UNTIL(&fixture, server.received == 4);
    send_text(peer, "f");
    FIXTURE_UNTIL(&fixture, server.received == 6);
    GT_EQUAL_STRING(fixture.trace, "open recv(abc) recv(cde) recv(ef)");
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

/* A message that comes in many pieces is seen whole, as one view. */
GT_TEST(a_message_over_many_completions_is_one_view)
{
    enum { SIZE = 100000 };
    struct fixture fixture = {.config = {.buffer_bytes = 512}};
    struct server server = {.quiet = true, .stamp = 5};
    static uint8_t data[SIZE];
    fixture_open(&fixture);
    server_open(&fixture, &server, &default_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    fixture_fill(data, SIZE, 5, 0);
    size_t sent = 0;
    while (server.received < SIZE) {
        if (sent < SIZE) {
            int64_t result = gt_peer_send(peer, data + sent, SIZE - sent < 777 ? SIZE - sent : 777);
            GT_CHECK(result > 0 || result == GORI_EAGAIN);
            sent += result > 0 ? (size_t)result : 0;
        }
        server.consume_max = sent < SIZE ? 1 : 0; /* a byte at a time until all of it has come */
        fixture_turn(&fixture);
    }
    GT_EQUAL(server.received, SIZE);
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(more_than_recv_max_unconsumed_closes)
{
    struct fixture fixture = {0};
    struct server server = {.quiet = true, .consume_max = 1};
    const struct gori_session_options options = {.recv_max = 10000};
    static uint8_t data[60000];
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, &options);
    struct gt_peer *peer = server_meet(&server);
    (void)gt_peer_send(peer, data, sizeof(data));
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    GT_EQUAL(server.reason, GORI_CLOSE_TOO_LARGE);
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(a_pause_in_on_recv_stops_delivery_at_once_and_keeps_order)
{
    struct fixture fixture = {.config = {.buffer_bytes = 512}};
    struct server server = {.quiet = true, .stamp = 6, .pause_on_recv = true};
    static uint8_t data[20000];
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    fixture_fill(data, sizeof(data), 6, 0);
    GT_EQUAL(gt_peer_send(peer, data, sizeof(data)), sizeof(data));
    gt_peer_shutdown(peer);
    uint64_t before = 0;
    while (server.received < sizeof(data)) {
        FIXTURE_UNTIL(&fixture, server.received > before);
        before = server.received;
        fixture_settle(&fixture);
        GT_EQUAL(server.received, before); /* one view for each resume */
        GT_EQUAL_STRING(fixture.trace, "open");
        gori_session_resume(server.session);
    }
    FIXTURE_UNTIL(&fixture, strcmp(fixture.trace, "open") != 0);
    GT_EQUAL_STRING(fixture.trace, "open eof");
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

/* Large buffers, so that what an engine has received by the time it hears of the pause is much. */
GT_TEST(a_pause_under_a_flood_loses_nothing_and_closes_nothing)
{
    struct fixture fixture = {.config = {.buffer_bytes = 1 << 18, .buffers_max = 64}};
    struct server server = {.quiet = true, .stamp = 9, .pause_on_recv = true};
    static uint8_t data[1 << 20];
    fixture_open(&fixture);
    const uint64_t total = fixture.sim != NULL ? sizeof(data) / 4 : 8 * sizeof(data);
    server_open(&fixture, &server, &all_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    uint64_t sent = 0;
    while (server.received < total) {
        while (sent < total) {
            size_t size = (size_t)(total - sent < sizeof(data) ? total - sent : sizeof(data));
            fixture_fill(data, size, 9, sent);
            int64_t result = gt_peer_send(peer, data, size);
            if (result == GORI_EAGAIN) {
                break;
            }
            GT_CHECK(result > 0);
            sent += (uint64_t)result;
        }
        fixture_turn(&fixture);
        GT_EQUAL_STRING(fixture.trace, "open");
        gori_session_resume(server.session);
    }
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(a_resume_shows_what_was_kept_without_new_bytes)
{
    struct fixture fixture = {0};
    struct server server = {.consume_max = 1, .pause_on_recv = true};
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    send_text(peer, "abc");
    for (uint64_t i = 1; i <= 3; i++) {
        FIXTURE_UNTIL(&fixture, server.received == i);
        gori_session_resume(server.session);
    }
    GT_EQUAL_STRING(fixture.trace, "open recv(abc) recv(bc) recv(c)");
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(an_end_with_a_handler_leaves_sending_open)
{
    struct fixture fixture = {0};
    struct server server = {0};
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    send_text(peer, "q");
    gt_peer_shutdown(peer);
    FIXTURE_UNTIL(&fixture, strstr(fixture.trace, "eof") != NULL);
    GT_EQUAL(gori_session_send(server.session, "answer", 6), 0);
    gori_session_close_after_flush(server.session);
    GT_EQUAL(gori_session_send(server.session, "no", 2), GORI_ECLOSED);
    expect_text(&fixture, peer, "answer");
    expect_end(&fixture, peer, 0);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    GT_EQUAL_STRING(fixture.trace, "open recv(q) eof close(local)");
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(a_shutdown_ends_our_direction_after_the_queue_only)
{
    struct fixture fixture = {0};
    struct server server = {0};
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    GT_EQUAL(gori_session_send(server.session, "last words", 10), 0);
    gori_session_shutdown(server.session);
    gori_session_shutdown(server.session);
    GT_EQUAL(gori_session_send(server.session, "no", 2), GORI_ECLOSED);
    expect_text(&fixture, peer, "last words");
    expect_end(&fixture, peer, 0);
    send_text(peer, "still here");
    FIXTURE_UNTIL(&fixture, server.received == 10);
    fixture_hang_up(peer);
    FIXTURE_UNTIL(&fixture, strstr(fixture.trace, "eof") != NULL);
    fixture_close(&fixture);
}

/* The classic: a response larger than all buffers, a close, and a client that is slow to read. */
GT_TEST(a_close_after_flush_delivers_everything_to_a_slow_reader)
{
    enum { SIZE = 3 << 20 };
    struct fixture fixture = {0};
    struct server server = {.quiet = true};
    const struct gori_session_options options = {.send_max = 8 << 20,
                                                 .drain_timeout = 60 * GORI_SECONDS};
    static uint8_t data[SIZE];
    static uint8_t room[70000];
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, &options);
    struct gt_peer *peer = server_meet(&server);
    gt_peer_set_buffers(peer, 65536, 65536);
    fixture_fill(data, SIZE, 9, 0);
    GT_EQUAL(gori_session_send(server.session, data, SIZE), GORI_SEND_HIGH);
    gori_session_close_after_flush(server.session);
    send_text(peer, "unread request bytes");
    size_t got = 0;
    while (got < SIZE) {
        int64_t result = gt_peer_recv(peer, room, sizeof(room));
        GT_CHECK(result > 0 || result == GORI_EAGAIN);
        if (result > 0) {
            fixture_check(room, (size_t)result, 9, got);
            got += (size_t)result;
        }
        fixture_turn(&fixture);
    }
    expect_end(&fixture, peer, 0);
    fixture_hang_up(peer);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    GT_EQUAL(server.reason, GORI_CLOSE_LOCAL);
    fixture_close(&fixture);
}

GT_TEST(draining_has_a_limit_of_time)
{
    struct fixture fixture = {0};
    struct server server = {0};
    const struct gori_session_options options = {.drain_timeout = 5 * GORI_MILLISECONDS};
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, &options);
    struct gt_peer *peer = server_meet(&server);
    gori_session_close_after_flush(server.session);
    FIXTURE_UNTIL(&fixture, server.closed == 1); /* the peer never ends its direction */
    GT_EQUAL(server.reason, GORI_CLOSE_LOCAL);
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(draining_has_a_limit_of_bytes)
{
    struct fixture fixture = {0};
    struct server server = {.quiet = true};
    const struct gori_session_options options = {.drain_timeout = 600 * GORI_SECONDS,
                                                 .drain_bytes = 50000};
    static uint8_t data[16384];
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, &options);
    struct gt_peer *peer = server_meet(&server);
    gori_session_close_after_flush(server.session);
    uint64_t sent = 0;
    while (server.closed == 0) {
        int64_t result = gt_peer_send(peer, data, sizeof(data));
        sent += result > 0 ? (uint64_t)result : 0;
        fixture_turn(&fixture);
    }
    GT_CHECK(sent > 50000);
    GT_EQUAL(server.received, 0);
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(a_close_drops_the_queue)
{
    struct fixture fixture = {0};
    struct server server = {0};
    static uint8_t data[4 << 20];
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    GT_EQUAL(gori_session_send(server.session, data, sizeof(data)), GORI_SEND_HIGH);
    fixture_turn(&fixture);
    fixture.in_call = true;
    gori_session_close(server.session);
    gori_session_close_after_flush(server.session);
    fixture.in_call = false;
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    GT_EQUAL_STRING(fixture.trace, "open close(local)");
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(a_reset_by_us_and_by_the_peer)
{
    struct fixture fixture = {0};
    struct server server = {0};
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    gori_session_reset(server.session);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    expect_end(&fixture, peer, GORI_ECONNRESET);
    fixture_hang_up(peer);
    peer = server_meet(&server);
    send_text(peer, "last");
    FIXTURE_UNTIL(&fixture, server.received == 4);
    fixture_reset(peer);
    FIXTURE_UNTIL(&fixture, server.closed == 2);
    GT_EQUAL_STRING(fixture.trace, "open close(reset) open recv(last) close(reset)");
    GT_EQUAL(server.error, GORI_ECONNRESET);
    fixture_close(&fixture);
}

GT_TEST(the_producer_is_told_when_to_stop_and_when_to_go_on)
{
    struct fixture fixture = {0};
    struct server server = {0};
    const struct gori_session_options options = {.send_high = 100000, .send_low = 1000};
    static uint8_t data[50000];
    static uint8_t room[65536];
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, &options);
    struct gt_peer *peer = server_meet(&server);
    gt_peer_set_buffers(peer, 65536, 65536);
    unsigned sends = 0;
    int result = 0;
    /* The system takes some first; then the queue grows to the mark. */
    while (result == 0) {
        result = gori_session_send(server.session, data, sizeof(data));
        sends++;
        fixture_turn(&fixture);
    }
    GT_EQUAL(result, GORI_SEND_HIGH);
    GT_CHECK(gori_session_send_bytes(server.session) >= 100000 - 50000);
    GT_EQUAL_STRING(fixture.trace, "open");
    uint64_t got = 0;
    while (got < (uint64_t)sends * sizeof(data)) {
        int64_t count = gt_peer_recv(peer, room, sizeof(room));
        got += count > 0 ? (uint64_t)count : 0;
        fixture_turn(&fixture);
    }
    FIXTURE_UNTIL(&fixture, gori_session_send_bytes(server.session) == 0);
    GT_EQUAL_STRING(fixture.trace, "open drain");
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(a_slow_consumer_is_closed_at_the_hard_limit)
{
    struct fixture fixture = {0};
    struct server server = {0};
    const struct gori_session_options options = {.send_high = 1000, .send_max = 1 << 20};
    static uint8_t data[100000];
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, &options);
    struct gt_peer *peer = server_meet(&server);
    int result;
    do {
        result = gori_session_send(server.session, data, sizeof(data));
        fixture_turn(&fixture);
    } while (result >= 0);
    GT_EQUAL(result, GORI_ELIMIT);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    GT_EQUAL(server.reason, GORI_CLOSE_SLOW);
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(idle_sessions_are_told_and_then_closed)
{
    struct fixture fixture = {0};
    struct server server = {0};
    const struct gori_session_options options = {.idle_timeout = 5 * GORI_MILLISECONDS};
    fixture_open(&fixture);
    server_open(&fixture, &server, &default_events, &options);
    gori_time before = gori_loop_now(fixture.loop);
    struct gt_peer *peer = server_meet(&server);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    GT_CHECK(gori_loop_now(fixture.loop) >= before + 5 * GORI_MILLISECONDS);
    GT_EQUAL_STRING(fixture.trace, "open close(timeout)");
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

static void close_session(struct server *server, struct gori_session *session)
{
    (void)server;
    gori_session_close(session);
}

GT_TEST(a_handler_decides_what_a_timeout_means)
{
    struct fixture fixture = {0};
    struct server server = {0};
    const struct gori_session_options options = {.idle_timeout = 3 * GORI_MILLISECONDS,
                                                 .total_timeout = 3600 * GORI_SECONDS};
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, &options);
    struct gt_peer *peer = server_meet(&server);
    FIXTURE_UNTIL(&fixture, strstr(fixture.trace, "timeout(1) timeout(1)") != NULL);
    server.on_timeout = close_session;
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    GT_EQUAL(server.reason, GORI_CLOSE_LOCAL);
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(deadlines_and_total_limits_fire_once_in_their_time)
{
    struct fixture fixture = {0};
    struct server server = {0};
    const struct gori_session_options options = {.total_timeout = 100 * GORI_MILLISECONDS};
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, &options);
    struct gt_peer *peer = server_meet(&server);
    gori_session_set_deadline(server.session, 3600 * GORI_SECONDS);
    gori_session_set_deadline(server.session, 4 * GORI_MILLISECONDS);
    FIXTURE_UNTIL(&fixture, strstr(fixture.trace, "timeout(3)") != NULL);
    GT_EQUAL_STRING(fixture.trace, "open timeout(4) timeout(3)");
    gori_session_set_deadline(server.session, GORI_MILLISECONDS);
    gori_session_set_deadline(server.session, GORI_NEVER);
    fixture_settle(&fixture);
    GT_EQUAL_STRING(fixture.trace, "open timeout(4) timeout(3)");
    gori_session_close(server.session);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(a_connect_opens_or_closes)
{
    struct fixture fixture = {0};
    struct server server = {.echo = true};
    struct server client = {.fixture = &fixture};
    struct gori_session *session;
    fixture_open(&fixture);
    server_open(&fixture, &server, &default_events, NULL);
    fixture.in_call = true;
    GT_EQUAL(gori_session_connect(fixture.loop, &server.addr, &all_events, NULL, &client, &session),
             0);
    fixture.in_call = false;
    FIXTURE_UNTIL(&fixture, client.opened == 1 && server.opened == 1);
    GT_EQUAL(gori_session_send(session, "hi", 2), 0);
    FIXTURE_UNTIL(&fixture, client.received == 2);
    gori_session_close(session);
    FIXTURE_UNTIL(&fixture, client.closed == 1 && server.closed == 1);
    GT_EQUAL(server.reason, GORI_CLOSE_PEER);

    struct gori_addr nobody = fixture_addr("127.0.0.1:0");
    fixture_hang_up(fixture_listen(&fixture, &nobody, 1));
    fixture.trace[0] = '\0';
    GT_EQUAL(gori_session_connect(fixture.loop, &nobody, &all_events, NULL, &client, &session), 0);
    FIXTURE_UNTIL(&fixture, client.closed == 2);
    GT_EQUAL(client.reason, GORI_CLOSE_CONNECT);
    GT_EQUAL(client.error, GORI_ECONNREFUSED);
    GT_EQUAL_STRING(fixture.trace, "close(connect)");
    fixture_close(&fixture);
}

GT_TEST(a_connect_that_is_closed_before_it_opened_closes_once)
{
    struct fixture fixture = {0};
    struct server server = {0};
    struct server client = {.fixture = &fixture};
    struct gori_session *session;
    fixture_open(&fixture);
    server_open(&fixture, &server, &default_events, NULL);
    GT_EQUAL(gori_session_connect(fixture.loop, &server.addr, &all_events, NULL, &client, &session),
             0);
    gori_session_close(session);
    FIXTURE_UNTIL(&fixture, client.closed == 1);
    GT_EQUAL(client.opened, 0);
    GT_EQUAL(client.reason, GORI_CLOSE_LOCAL);
    fixture_close(&fixture);
}

static void close_on_open(struct server *server, struct gori_session *session)
{
    (void)server;
    gori_session_close(session);
}

static void send_and_close(struct server *server, struct gori_session *session,
                           struct gori_slice bytes)
{
    (void)bytes;
    GT_EQUAL(gori_session_send(session, "bye", 3), 0);
    gori_session_close_after_flush(session);
    server->on_recv = NULL;
}

static void close_at_once(struct server *server, struct gori_session *session,
                          struct gori_slice bytes)
{
    (void)server;
    (void)bytes;
    gori_session_close(session);
}

GT_TEST(a_session_may_be_closed_in_each_of_its_callbacks)
{
    struct fixture fixture = {0};
    struct server server = {0};
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    server.on_open = close_on_open;
    struct gt_peer *peer = server_meet(&server);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    expect_end(&fixture, peer, 0);
    fixture_hang_up(peer);
    server.on_open = NULL;
    server.on_recv = close_at_once;
    peer = server_meet(&server);
    send_text(peer, "a");
    FIXTURE_UNTIL(&fixture, server.closed == 2);
    fixture_hang_up(peer);
    server.on_recv = send_and_close;
    peer = server_meet(&server);
    send_text(peer, "b");
    expect_text(&fixture, peer, "bye");
    expect_end(&fixture, peer, 0);
    fixture_hang_up(peer);
    FIXTURE_UNTIL(&fixture, server.closed == 3);
    server.on_eof = close_session;
    peer = server_meet(&server);
    gt_peer_shutdown(peer);
    FIXTURE_UNTIL(&fixture, server.closed == 4);
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(a_stale_id_names_nothing)
{
    struct fixture fixture = {0};
    struct server server = {0};
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    uint64_t last = 0;
    for (unsigned i = 1; i <= 20; i++) {
        struct gt_peer *peer = server_meet(&server);
        uint64_t id = gori_session_id(server.session);
        GT_CHECK(id != last);
        GT_CHECK(gori_loop_session(fixture.loop, id) == server.session);
        GT_CHECK(gori_session_id_is_live(fixture.loop, id));
        GT_CHECK(gori_loop_session(fixture.loop, last) == NULL);
        gori_session_close(server.session);
        FIXTURE_UNTIL(&fixture, server.closed == i);
        fixture_turn(&fixture);
        GT_CHECK(gori_loop_session(fixture.loop, id) == NULL);
        GT_CHECK(!gori_session_id_is_live(fixture.loop, id));
        last = id;
        fixture_hang_up(peer);
    }
    GT_CHECK(gori_loop_session(fixture.loop, 0) == NULL);
    GT_CHECK(gori_loop_session(fixture.loop, UINT64_MAX) == NULL);
    fixture_close(&fixture);
}

GT_TEST(a_reference_keeps_the_memory_beyond_the_close)
{
    struct fixture fixture = {0};
    struct server server = {0};
    const struct gori_session_options options = {.context_bytes = 64};
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, &options);
    struct gt_peer *peer = server_meet(&server);
    struct gori_session *session = server.session;
    uint8_t *context = gori_session_context(session);
    for (int i = 0; i < 64; i++) {
        GT_EQUAL(context[i], 0);
    }
    memset(context, 7, 64);
    gori_session_ref(session);
    gori_session_close(session);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    fixture_settle(&fixture);
    struct gori_addr addr;
    GT_EQUAL(context[63], 7);
    GT_EQUAL(gori_session_send(session, "x", 1), GORI_ECLOSED);
    GT_EQUAL(gori_session_peer(session, &addr), GORI_ECLOSED);
    gori_session_pause(session);
    gori_session_resume(session);
    gori_session_shutdown(session);
    gori_session_reset(session);
    gori_session_set_deadline(session, 0);
    fixture_settle(&fixture);
    GT_EQUAL_STRING(fixture.trace, "open close(local)");
    gori_session_unref(session);
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(addresses_are_right)
{
    struct fixture fixture = {0};
    struct server server = {0};
    struct gori_addr addr;
    char text[GORI_ADDR_TEXT_BYTES];
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    GT_CHECK(gori_addr_port(&server.addr) != 0);
    struct gt_peer *peer = server_meet(&server);
    GT_EQUAL(gori_session_peer(server.session, &addr), 0);
    gori_addr_format(&addr, text, sizeof(text));
    GT_CHECK(strncmp(text, "127.0.0.1:", 10) == 0);
    GT_CHECK(gori_addr_port(&addr) != 0);
    GT_CHECK(gori_addr_port(&addr) != gori_addr_port(&server.addr));
    GT_EQUAL(gori_session_local(server.session, &addr), 0);
    GT_EQUAL(gori_addr_port(&addr), gori_addr_port(&server.addr));
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

struct relay {
    struct gori_session *target;
    unsigned kept;
};

static struct relay relay;

static void forward(struct server *server, struct gori_session *session, struct gori_slice bytes)
{
    struct gori_buffer *buffer = gori_session_retain(session);
    (void)server;
    if (buffer != NULL) {
        relay.kept++;
        GT_CHECK(gori_session_send_buffer(relay.target, buffer, bytes) >= 0);
        gori_buffer_release(buffer);
    } else {
        GT_CHECK(gori_session_send(relay.target, bytes.data, bytes.size) >= 0);
    }
}

GT_TEST(a_receive_buffer_is_forwarded_without_a_copy)
{
    struct fixture fixture = {0};
    struct server server = {.quiet = true};
    static uint8_t data[50000];
    static uint8_t room[50000];
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    struct gt_peer *to = server_meet(&server);
    relay = (struct relay){.target = server.session};
    server.on_recv = forward;
    struct gt_peer *from = server_meet(&server);
    fixture_fill(data, sizeof(data), 13, 0);
    GT_EQUAL(gt_peer_send(from, data, sizeof(data)), sizeof(data));
    size_t got = 0;
    while (got < sizeof(data)) {
        int64_t result = gt_peer_recv(to, room + got, sizeof(room) - got);
        got += result > 0 ? (size_t)result : 0;
        fixture_turn(&fixture);
    }
    fixture_check(room, sizeof(room), 13, 0);
    GT_CHECK(relay.kept > 0);
    fixture_settle(&fixture);
    struct gori_loop_stats stats;
    gori_loop_read_stats(fixture.loop, &stats);
    GT_EQUAL(stats.buffers_held_now, 0);
    fixture_hang_up(to);
    fixture_hang_up(from);
    fixture_close(&fixture);
}

GT_TEST(one_block_goes_to_many_sessions)
{
    enum { PEERS = 20 };
    struct fixture fixture = {0};
    struct server server = {0};
    struct gt_peer *peers[PEERS];
    struct gori_session *sessions[PEERS];
    struct gori_block *block;
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    for (int i = 0; i < PEERS; i++) {
        peers[i] = server_meet(&server);
        sessions[i] = server.session;
    }
    GT_EQUAL(gori_block_create(&fixture.memory.allocator, "to all", 6, &block), 0);
    for (int i = 0; i < PEERS; i++) {
        GT_EQUAL(gori_session_send(sessions[i], "first ", 6), 0);
        GT_EQUAL(gori_session_send_block(sessions[i], block), 0);
        GT_EQUAL(gori_session_send(sessions[i], " last", 5), 0);
    }
    gori_block_unref(block);
    for (int i = 0; i < PEERS; i++) {
        expect_text(&fixture, peers[i], "first to all last");
        fixture_hang_up(peers[i]);
    }
    fixture_close(&fixture);
}

static struct gori_file *make_file(struct gori_root **ret_root, size_t size, const char *name)
{
    char folder[GT_FOLDER_BYTES];
    static uint8_t data[1 << 20];
    struct gori_file *file;
    gt_make_folder(folder);
    fixture_fill(data, size, 14, 0);
    gt_write_file(folder, name, data, size);
    GT_EQUAL(gori_root_open(NULL, folder, ret_root), 0);
    GT_EQUAL(gori_root_open_file(*ret_root, name, &file), 0);
    GT_EQUAL(gori_file_describe(file)->size, size);
    gt_remove_folder(folder, name);
    return file;
}

GT_TEST(files_go_between_other_things_in_order)
{
    enum { SIZE = 300000 };
    struct fixture fixture = {0};
    struct server server = {0};
    struct gori_root *root;
    static uint8_t room[SIZE];
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    struct gori_file *file = make_file(&root, SIZE, "f");
    GT_EQUAL(gori_session_send(server.session, "head ", 5), 0);
    GT_EQUAL(gori_session_send_file(server.session, file, 0, SIZE), 0);
    GT_EQUAL(gori_session_send(server.session, " mid ", 5), 0);
    GT_EQUAL(gori_session_send_file(server.session, file, 10, 20), 0);
    GT_EQUAL(gori_session_send(server.session, " tail", 5), 0);
    gori_file_unref(file);
    gori_root_close(root);
    expect_text(&fixture, peer, "head ");
    size_t got = 0;
    while (got < SIZE) {
        int64_t result = gt_peer_recv(peer, room + got, SIZE - got);
        got += result > 0 ? (size_t)result : 0;
        fixture_turn(&fixture);
    }
    fixture_check(room, SIZE, 14, 0);
    expect_text(&fixture, peer, " mid ");
    char small[21] = {0};
    fixture_fill((uint8_t *)small, 20, 14, 10);
    for (got = 0; got < 20;) {
        int64_t result = gt_peer_recv(peer, room + got, 20 - got);
        got += result > 0 ? (size_t)result : 0;
        fixture_turn(&fixture);
    }
    GT_EQUAL_BYTES(room, 20, small, 20);
    expect_text(&fixture, peer, " tail");
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(a_file_that_is_shorter_than_promised_closes_the_session)
{
    struct fixture fixture = {0};
    struct server server = {0};
    struct gori_root *root;
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    struct gori_file *file = make_file(&root, 1000, "f");
    GT_CHECK(gori_session_send_file(server.session, file, 0, 2000) >= 0);
    GT_EQUAL(gori_session_send(server.session, "must not follow", 15), 0);
    gori_file_unref(file);
    gori_root_close(root);
    FIXTURE_UNTIL(&fixture, server.closed == 1);
    GT_EQUAL(server.reason, GORI_CLOSE_TRUNCATED);
    uint8_t room[4000];
    int64_t result;
    size_t got = 0;
    do {
        result = gt_peer_recv(peer, room + got, sizeof(room) - got);
        got += result > 0 ? (size_t)result : 0;
        fixture_turn(&fixture);
    } while (result > 0 || result == GORI_EAGAIN);
    GT_EQUAL(got, 1000);
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(a_closing_listener_takes_what_is_queued_and_lets_sessions_go_on)
{
    struct fixture fixture = {0};
    struct server server = {.echo = true};
    struct gt_peer *peers[8];
    fixture_open(&fixture);
    server_open(&fixture, &server, &default_events, NULL);
    fixture_settle(&fixture);
    for (int i = 0; i < 8; i++) {
        peers[i] = fixture_connect(&fixture, &server.addr);
        GT_CHECK(peers[i] != NULL);
    }
    gori_listener_close(server.listener);
    gori_listener_close(server.listener);
    FIXTURE_UNTIL(&fixture, server.listener_closed == 1);
    FIXTURE_UNTIL(&fixture, server.opened == 8);
    for (int i = 0; i < 8; i++) {
        send_text(peers[i], "still");
        expect_text(&fixture, peers[i], "still");
        fixture_hang_up(peers[i]);
    }
    FIXTURE_UNTIL(&fixture, server.closed == 8);
    fixture_close(&fixture);
    GT_EQUAL(server.listener_closed, 1);
}

GT_TEST(an_address_in_use_is_an_error)
{
    struct fixture fixture = {0};
    struct server server = {0};
    struct gori_listener *second;
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    struct gori_listener_config config = {.addr = server.addr, .events = &all_events};
    GT_EQUAL(gori_listener_open(fixture.loop, &config, &second), GORI_EADDRINUSE);
    config.events = NULL;
    GT_EQUAL(gori_listener_open(fixture.loop, &config, &second), GORI_EINVAL);
    fixture_close(&fixture);
}

GT_TEST(a_limit_of_sessions_pauses_accepting_and_resumes)
{
    struct fixture fixture = {0};
    struct server server = {0};
    fixture_open(&fixture);
    struct gori_listener_config config = {.addr = fixture_addr("127.0.0.1:0"),
                                          .events = &all_events,
                                          .user = &server,
                                          .sessions_max = 2};
    server.fixture = &fixture;
    GT_EQUAL(gori_listener_open(fixture.loop, &config, &server.listener), 0);
    gori_listener_addr(server.listener, &server.addr);
    struct gt_peer *first = server_meet(&server);
    struct gori_session *session = server.session;
    struct gt_peer *second = server_meet(&server);
    struct gt_peer *third = fixture_connect(&fixture, &server.addr);
    fixture_settle(&fixture);
    GT_EQUAL(server.opened, 2);
    gori_session_close(session);
    FIXTURE_UNTIL(&fixture, server.opened == 3);
    fixture_hang_up(first);
    fixture_hang_up(second);
    fixture_hang_up(third);
    fixture_close(&fixture);
}

GT_TEST(unix_sockets_work_and_a_dead_path_is_taken_over)
{
    struct fixture fixture = {0};
    struct server server = {.echo = true};
    char path[64];
    char text[80];
    snprintf(path, sizeof(path), "/tmp/gori-conformance-%d.sock", (int)getpid());
    snprintf(text, sizeof(text), "unix:%s", path);
    fixture_open(&fixture);
    struct gori_handle probe = {0};
    if (gori_handle_open(fixture.loop, GORI_ADDR_UNIX, &probe) == GORI_ENOTSUP) {
        GT_SKIP("this system has no UNIX sockets");
    }
    gori_handle_close(&probe);
    struct gori_addr addr = fixture_addr(text);
    fixture_hang_up(
        fixture_listen(&fixture, &addr, 1)); /* leaves the path behind, on a real system */
    server_open_at(&fixture, &server, text, &default_events, NULL);
    struct gori_listener *second;
    struct gori_listener_config config = {.addr = addr, .events = &all_events};
    GT_EQUAL(gori_listener_open(fixture.loop, &config, &second), GORI_EADDRINUSE);
    fixture_settle(&fixture); /* to find out that somebody lives there, the system has to ask */
    struct gt_peer *peer = server_meet(&server);
    send_text(peer, "local");
    expect_text(&fixture, peer, "local");
    GT_EQUAL(gori_session_peer(server.session, &addr), 0);
    fixture_hang_up(peer);
    fixture_close(&fixture);
    GT_CHECK(access(path, F_OK) != 0);
}

GT_TEST(ipv6_works)
{
    struct fixture fixture = {0};
    struct server server = {.echo = true};
    fixture_open(&fixture);
    server_open_at(&fixture, &server, "[::1]:0", &default_events, NULL);
    struct gt_peer *peer = server_meet(&server);
    send_text(peer, "six");
    expect_text(&fixture, peer, "six");
    fixture_hang_up(peer);
    fixture_close(&fixture);
}

GT_TEST(destroying_a_loop_closes_every_session_once)
{
    struct fixture fixture = {0};
    struct server server = {0};
    struct gt_peer *peers[5];
    static uint8_t data[4 << 20];
    fixture_open(&fixture);
    server_open(&fixture, &server, &all_events, NULL);
    for (int i = 0; i < 5; i++) {
        peers[i] = server_meet(&server);
        GT_CHECK(gori_session_send(server.session, data, sizeof(data)) >= 0);
    }
    fixture_turn(&fixture);
    gori_loop_destroy(fixture.loop);
    GT_EQUAL(server.closed, 5);
    GT_EQUAL(server.reason, GORI_CLOSE_SHUTDOWN);
    GT_EQUAL(server.listener_closed, 1);
    for (int i = 0; i < 5; i++) {
        fixture_hang_up(peers[i]);
    }
    GT_EQUAL(gori_loop_create(&fixture.config, &fixture.loop), 0);
    fixture_close(&fixture);
}

/* After warm-up a working server allocates nothing. */
GT_TEST(the_steady_state_allocates_nothing)
{
    struct fixture fixture = {0};
    struct server server = {.echo = true, .quiet = true};
    struct gt_peer *peers[10];
    static uint8_t data[9000];
    static uint8_t room[9000];
    uint64_t allocations = 0;
    fixture_open(&fixture);
    server_open(&fixture, &server, &default_events, NULL);
    for (int round = 0; round < 60; round++) {
        if (round == 30) {
            allocations = gi_fault_alloc_count(&fixture.memory);
        }
        fixture.trace[0] = '\0';
        unsigned closed_before = server.closed;
        for (int i = 0; i < 10; i++) {
            peers[i] = server_meet(&server);
        }
        for (int i = 0; i < 10; i++) {
            GT_EQUAL(gt_peer_send(peers[i], data, sizeof(data)), sizeof(data));
        }
        for (int i = 0; i < 10; i++) {
            size_t got = 0;
            while (got < sizeof(data)) {
                int64_t result = gt_peer_recv(peers[i], room, sizeof(room));
                got += result > 0 ? (size_t)result : 0;
                fixture_turn(&fixture);
            }
            fixture_hang_up(peers[i]);
        }
        FIXTURE_UNTIL(&fixture, server.closed == closed_before + 10);
    }
    GT_EQUAL(gi_fault_alloc_count(&fixture.memory), allocations);
    fixture_close(&fixture);
}
