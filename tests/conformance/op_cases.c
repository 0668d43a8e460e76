/* SPDX-License-Identifier: MIT */
/*
 * Conformance of operations: the ten rules of <gori/op.h>, one or more cases for each.
 */
#include "conformance/fixture.h"
#include "lib/system.h"

/* Rules 4 and 5: a call must not call back.  CALL wraps every submit. */
#define CALL(fixture, expression)                                                                  \
    do {                                                                                           \
        (fixture)->in_call = true;                                                                 \
        GT_EQUAL((expression), 0);                                                                 \
        (fixture)->in_call = false;                                                                \
    } while (0)

static void peer_send_all(struct fixture *fixture, struct gt_peer *peer, const void *data,
                          size_t size)
{
    size_t sent = 0;
    while (sent < size) {
        int64_t result = gt_peer_send(peer, (const uint8_t *)data + sent, size - sent);
        GT_CHECK(result >= 0 || result == GORI_EAGAIN);
        if (result > 0) {
            sent += (size_t)result;
        } else {
            fixture_turn(fixture);
        }
    }
}

/* Reads exactly `size` bytes and checks their stamp. */
static void peer_expect(struct fixture *fixture, struct gt_peer *peer, size_t size, uint8_t stamp)
{
    static uint8_t room[65536];
    size_t got = 0;
    while (got < size) {
        size_t wanted = size - got < sizeof(room) ? size - got : sizeof(room);
        int64_t result = gt_peer_recv(peer, room, wanted);
        GT_CHECK(result > 0 || result == GORI_EAGAIN);
        if (result > 0) {
            fixture_check(room, (size_t)result, stamp, got);
            got += (size_t)result;
        } else {
            fixture_turn(fixture);
        }
    }
}

static void peer_expect_end(struct fixture *fixture, struct gt_peer *peer)
{
    uint8_t byte;
    int64_t result;
    FIXTURE_UNTIL(fixture, (result = gt_peer_recv(peer, &byte, 1)) != GORI_EAGAIN);
    GT_EQUAL(result, 0);
}

GT_TEST(a_receive_takes_what_is_there)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    uint8_t room[16] = {0};
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    CALL(&fixture, gori_op_recv(&probe.op, &pair.handle, room, sizeof(room)));
    fixture_settle(&fixture);
    GT_EQUAL(probe.completions, 0);
    peer_send_all(&fixture, pair.peer, "hello", 5);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, 5);
    GT_EQUAL_BYTES(room, 5, "hello", 5);
    pair_close(&pair);
    GT_EQUAL(probe.completions, 1);
    fixture_close(&fixture);
}

GT_TEST(a_receive_of_less_than_there_is_leaves_the_rest)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    uint8_t room[4] = {0};
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    peer_send_all(&fixture, pair.peer, "abcdefgh", 8);
    gt_peer_shutdown(pair.peer);
    for (int i = 0; i < 2; i++) {
        probe_init(&fixture, &probe);
        CALL(&fixture, gori_op_recv(&probe.op, &pair.handle, room, sizeof(room)));
        FIXTURE_UNTIL(&fixture, probe.last == 1);
        GT_EQUAL(probe.result, 4);
        GT_EQUAL_BYTES(room, 4, i == 0 ? "abcd" : "efgh", 4);
    }
    probe_init(&fixture, &probe);
    CALL(&fixture, gori_op_recv(&probe.op, &pair.handle, room, sizeof(room)));
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, 0);
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(a_multishot_receive_gives_all_bytes_in_order_and_then_the_end)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[300000];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    probe.stamp = 3;
    fixture_fill(data, sizeof(data), 3, 0);
    CALL(&fixture, gori_op_recv_multi(&probe.op, &pair.handle));
    peer_send_all(&fixture, pair.peer, data, sizeof(data));
    FIXTURE_UNTIL(&fixture, probe.bytes == sizeof(data));
    GT_EQUAL(probe.last, 0);
    gt_peer_shutdown(pair.peer);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, 0);
    GT_CHECK(probe.completions > 1);
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(bytes_before_the_end_come_before_the_end)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[20000];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    probe.stamp = 9;
    fixture_fill(data, sizeof(data), 9, 0);
    peer_send_all(&fixture, pair.peer, data, sizeof(data));
    fixture_hang_up(pair.peer);
    pair.peer = NULL;
    CALL(&fixture, gori_op_recv_multi(&probe.op, &pair.handle));
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.bytes, sizeof(data));
    GT_EQUAL(probe.result, 0);
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(a_send_gathers_all_pieces_in_order)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[GORI_SEND_PIECES_MAX * 700];
    struct gori_slice pieces[GORI_SEND_PIECES_MAX];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    fixture_fill(data, sizeof(data), 5, 0);
    for (size_t i = 0; i < GORI_SEND_PIECES_MAX; i++) {
        pieces[i] = (struct gori_slice){data + i * 700, 700};
    }
    CALL(&fixture, gori_op_send(&probe.op, &pair.handle, pieces, GORI_SEND_PIECES_MAX));
    peer_expect(&fixture, pair.peer, sizeof(data), 5);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, sizeof(data));
    GT_EQUAL(probe.completions, 1);
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(a_send_larger_than_every_buffer_arrives_whole_at_a_slow_reader)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[12 << 20]; /* more than the system keeps for two sockets */
    struct gori_slice pieces[3];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    gt_peer_set_buffers(pair.peer, 65536, 65536);
    probe_init(&fixture, &probe);
    fixture_fill(data, sizeof(data), 8, 0);
    pieces[0] = (struct gori_slice){data, 1};
    pieces[1] = (struct gori_slice){data + 1, 2000000};
    pieces[2] = (struct gori_slice){data + 2000001, sizeof(data) - 2000001};
    CALL(&fixture, gori_op_send(&probe.op, &pair.handle, pieces, 3));
    fixture_settle(&fixture);
    GT_EQUAL(probe.completions, 0);
    peer_expect(&fixture, pair.peer, sizeof(data), 8);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, sizeof(data));
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(both_directions_work_at_once)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe receive;
    struct probe send;
    static uint8_t out[1 << 20];
    static uint8_t in[100000];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &receive);
    probe_init(&fixture, &send);
    receive.stamp = 2;
    fixture_fill(out, sizeof(out), 1, 0);
    fixture_fill(in, sizeof(in), 2, 0);
    struct gori_slice piece = {out, sizeof(out)};
    CALL(&fixture, gori_op_recv_multi(&receive.op, &pair.handle));
    CALL(&fixture, gori_op_send(&send.op, &pair.handle, &piece, 1));
    peer_send_all(&fixture, pair.peer, in, sizeof(in));
    FIXTURE_UNTIL(&fixture, receive.bytes == sizeof(in));
    peer_expect(&fixture, pair.peer, sizeof(out), 1);
    FIXTURE_UNTIL(&fixture, send.last == 1);
    GT_EQUAL(receive.last, 0);
    pair_close(&pair);
    GT_EQUAL(receive.last, 1);
    GT_EQUAL(receive.result, GORI_ECANCELED);
    fixture_close(&fixture);
}

GT_TEST(a_cancelled_receive_completes_once_and_loses_nothing)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[50000];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    fixture_fill(data, sizeof(data), 4, 0);
    uint64_t got = 0;
    size_t sent = 0;
    for (int round = 0; round < 200; round++) {
        probe_init(&fixture, &probe);
        probe.stamp = 4;
        probe.bytes = got;
        CALL(&fixture, gori_op_recv_multi(&probe.op, &pair.handle));
        if (round % 3 == 0) {
            fixture_turn(&fixture);
        }
        int64_t result = gt_peer_send(pair.peer, data + sent, 250);
        GT_EQUAL(result, 250);
        sent += 250;
        fixture.in_call = true;
        gori_op_cancel(&probe.op);
        gori_op_cancel(&probe.op); /* asking twice is asking once */
        fixture.in_call = false;
        FIXTURE_UNTIL(&fixture, probe.last == 1);
        GT_EQUAL(probe.result, GORI_ECANCELED);
        got = probe.bytes;
    }
    probe_init(&fixture, &probe);
    probe.stamp = 4;
    probe.bytes = got;
    CALL(&fixture, gori_op_recv_multi(&probe.op, &pair.handle));
    FIXTURE_UNTIL(&fixture, probe.bytes == sent);
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(a_cancelled_single_receive_completes_once_and_loses_nothing)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    uint8_t room[64];
    uint8_t data[64];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    uint64_t got = 0;
    for (uint64_t sent = 0; sent < 6400; sent += 64) {
        probe_init(&fixture, &probe);
        CALL(&fixture, gori_op_recv(&probe.op, &pair.handle, room, sizeof(room)));
        fixture_fill(data, sizeof(data), 6, sent);
        GT_EQUAL(gt_peer_send(pair.peer, data, sizeof(data)), sizeof(data));
        gori_op_cancel(&probe.op);
        FIXTURE_UNTIL(&fixture, probe.last == 1);
        if (probe.result > 0) {
            fixture_check(room, (size_t)probe.result, 6, got);
            got += (uint64_t)probe.result;
        } else {
            GT_EQUAL(probe.result, GORI_ECANCELED);
        }
    }
    while (got < 6400) {
        probe_init(&fixture, &probe);
        CALL(&fixture, gori_op_recv(&probe.op, &pair.handle, room, sizeof(room)));
        FIXTURE_UNTIL(&fixture, probe.last == 1);
        GT_CHECK(probe.result > 0);
        fixture_check(room, (size_t)probe.result, 6, got);
        got += (uint64_t)probe.result;
    }
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(a_cancelled_send_completes_once)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[8 << 20];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    struct gori_slice piece = {data, sizeof(data)};
    CALL(&fixture, gori_op_send(&probe.op, &pair.handle, &piece, 1));
    fixture_settle(&fixture);
    GT_EQUAL(probe.completions, 0);
    gori_op_cancel(&probe.op);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_CHECK(probe.result == GORI_ECANCELED);
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(a_cancel_of_what_is_over_or_never_began_does_nothing)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    uint8_t room[8];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    gori_op_cancel(&probe.op);
    CALL(&fixture, gori_op_recv(&probe.op, &pair.handle, room, sizeof(room)));
    peer_send_all(&fixture, pair.peer, "x", 1);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    gori_op_cancel(&probe.op);
    fixture_settle(&fixture);
    GT_EQUAL(probe.completions, 1);
    pair_close(&pair);
    fixture_close(&fixture);
}

/* A cancel of the first activation must not hit the second of the same op. */
struct again {
    struct probe probe;
    struct gori_handle *handle;
    uint8_t room[8];
    unsigned rounds;
};

static void receive_again(struct gori_op *op, const struct gori_completion *completion)
{
    struct again *again = op->user;
    GT_CHECK(completion->is_last);
    again->rounds++;
    if (again->rounds < 3) {
        GT_EQUAL(gori_op_recv(op, again->handle, again->room, sizeof(again->room)), 0);
    }
}

GT_TEST(an_op_may_be_submitted_again_in_its_last_completion)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct again again = {0};
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    again.handle = &pair.handle;
    again.probe.op.on_complete = receive_again;
    again.probe.op.user = &again;
    CALL(&fixture, gori_op_recv(&again.probe.op, &pair.handle, again.room, 8));
    gori_op_cancel(&again.probe.op);
    FIXTURE_UNTIL(&fixture, again.rounds == 1);
    fixture_settle(&fixture);
    GT_EQUAL(again.rounds, 1); /* the second activation is alive */
    for (unsigned round = 2; round <= 3; round++) {
        peer_send_all(&fixture, pair.peer, "y", 1);
        FIXTURE_UNTIL(&fixture, again.rounds == round);
    }
    pair_close(&pair);
    fixture_close(&fixture);
}

struct freed {
    struct gori_op op;
    unsigned *completions;
};

static void free_myself(struct gori_op *op, const struct gori_completion *completion)
{
    struct freed *freed = op->user;
    GT_CHECK(completion->is_last);
    (*freed->completions)++;
    memset(freed, 0xAA, sizeof(*freed));
    free(freed);
}

GT_TEST(an_op_may_be_freed_in_its_last_completion)
{
    struct fixture fixture = {0};
    struct pair pair;
    unsigned completions = 0;
    uint8_t room[8];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    struct freed *freed = calloc(1, sizeof(*freed));
    freed->op.on_complete = free_myself;
    freed->op.user = freed;
    freed->completions = &completions;
    CALL(&fixture, gori_op_recv(&freed->op, &pair.handle, room, sizeof(room)));
    gori_op_cancel(&freed->op);
    FIXTURE_UNTIL(&fixture, completions == 1);
    fixture_settle(&fixture);
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(a_close_with_a_receive_in_flight_ends_both_once_and_the_peer_sees_it)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    CALL(&fixture, gori_op_recv_multi(&probe.op, &pair.handle));
    fixture_settle(&fixture);
    fixture.in_call = true;
    gori_handle_close(&pair.handle);
    gori_handle_close(&pair.handle);
    fixture.in_call = false;
    FIXTURE_UNTIL(&fixture, pair.closed > 0);
    GT_EQUAL(probe.last, 1);
    GT_EQUAL(probe.result, GORI_ECANCELED);
    peer_expect_end(&fixture, pair.peer);
    (void)gt_peer_send(pair.peer, "late", 4);
    fixture_settle(&fixture);
    GT_EQUAL(probe.completions, 1);
    GT_EQUAL(pair.closed, 1);
    fixture_hang_up(pair.peer);
    fixture_close(&fixture);
}

GT_TEST(a_close_with_a_send_in_flight_ends_it_once)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[8 << 20];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    struct gori_slice piece = {data, sizeof(data)};
    CALL(&fixture, gori_op_send(&probe.op, &pair.handle, &piece, 1));
    fixture_settle(&fixture);
    pair_close(&pair);
    GT_EQUAL(probe.last, 1);
    GT_EQUAL(probe.result, GORI_ECANCELED);
    fixture_close(&fixture);
}

GT_TEST(a_close_right_after_a_submit_is_a_close)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe receive;
    struct probe send;
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &receive);
    probe_init(&fixture, &send);
    struct gori_slice piece = {(const uint8_t *)"bye", 3};
    CALL(&fixture, gori_op_recv_multi(&receive.op, &pair.handle));
    CALL(&fixture, gori_op_send(&send.op, &pair.handle, &piece, 1));
    pair_close(&pair);
    GT_EQUAL(receive.last, 1);
    GT_EQUAL(send.last, 1);
    fixture_close(&fixture);
}

GT_TEST(a_reset_is_seen_as_one)
{
    struct fixture fixture = {0};
    struct pair pair;
    uint8_t byte;
    int64_t result;
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    fixture.in_call = true;
    gori_handle_reset(&pair.handle);
    fixture.in_call = false;
    FIXTURE_UNTIL(&fixture, pair.closed > 0);
    FIXTURE_UNTIL(&fixture, (result = gt_peer_recv(pair.peer, &byte, 1)) != GORI_EAGAIN);
    GT_EQUAL(result, GORI_ECONNRESET);
    fixture_hang_up(pair.peer);
    fixture_close(&fixture);
}

GT_TEST(a_reset_with_a_receive_in_flight_is_seen_as_one)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    uint8_t byte;
    int64_t result;
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    CALL(&fixture, gori_op_recv_multi(&probe.op, &pair.handle));
    fixture_settle(&fixture);
    gori_handle_reset(&pair.handle);
    FIXTURE_UNTIL(&fixture, pair.closed > 0);
    GT_EQUAL(probe.result, GORI_ECANCELED);
    FIXTURE_UNTIL(&fixture, (result = gt_peer_recv(pair.peer, &byte, 1)) != GORI_EAGAIN);
    GT_EQUAL(result, GORI_ECONNRESET);
    fixture_hang_up(pair.peer);
    fixture_close(&fixture);
}

GT_TEST(a_reset_by_the_peer_ends_a_receive)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    CALL(&fixture, gori_op_recv_multi(&probe.op, &pair.handle));
    fixture_settle(&fixture);
    fixture_reset(pair.peer);
    pair.peer = NULL;
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, GORI_ECONNRESET);
    GT_EQUAL(probe.completions, 1);
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(a_send_to_who_is_gone_fails_without_a_signal)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[1 << 20];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    fixture_reset(pair.peer);
    pair.peer = NULL;
    struct gori_slice piece = {data, sizeof(data)};
    int64_t result = 0;
    for (int i = 0; i < 3 && result >= 0; i++) {
        probe_init(&fixture, &probe);
        CALL(&fixture, gori_op_send(&probe.op, &pair.handle, &piece, 1));
        FIXTURE_UNTIL(&fixture, probe.last == 1);
        result = probe.result;
    }
    GT_CHECK(result == GORI_EPIPE || result == GORI_ECONNRESET);
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(a_file_to_who_is_gone_fails_without_a_signal)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[1 << 20];
    int file = gt_make_file(data, sizeof(data));
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    fixture_reset(pair.peer);
    pair.peer = NULL;
    const struct gori_file_range range = {.file = file, .offset = 0, .size = sizeof(data)};
    int64_t result = 0;
    for (int i = 0; i < 3; i++) {
        probe_init(&fixture, &probe);
        CALL(&fixture, gori_op_send_file(&probe.op, &pair.handle, &range));
        FIXTURE_UNTIL(&fixture, probe.last == 1);
        result = probe.result;
    }
    GT_CHECK(result == GORI_EPIPE || result == GORI_ECONNRESET);
    pair_close(&pair);
    fixture_close(&fixture);
    gt_close_file(file);
}

GT_TEST(a_half_closed_connection_still_receives)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    CALL(&fixture, gori_op_recv_multi(&probe.op, &pair.handle));
    CALL(&fixture, gori_handle_shutdown(&pair.handle));
    peer_expect_end(&fixture, pair.peer);
    peer_send_all(&fixture, pair.peer, "after", 5);
    FIXTURE_UNTIL(&fixture, probe.bytes == 5);
    GT_EQUAL(probe.last, 0);
    pair_close(&pair);
    fixture_close(&fixture);
}

GT_TEST(what_cannot_be_asked_is_refused_and_never_completes)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe first;
    struct probe second;
    struct probe third;
    static uint8_t data[8 << 20];
    uint8_t room[8];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &first);
    probe_init(&fixture, &second);
    probe_init(&fixture, &third);
    struct gori_slice piece = {data, sizeof(data)};
    GT_EQUAL(gori_op_send(&first.op, &pair.handle, &piece, 0), GORI_EINVAL);
    GT_EQUAL(gori_op_send(&first.op, &pair.handle, &piece, GORI_SEND_PIECES_MAX + 1), GORI_EINVAL);
    GT_EQUAL(gori_op_recv(&first.op, &pair.handle, room, 0), GORI_EINVAL);
    CALL(&fixture, gori_op_recv_multi(&first.op, &pair.handle));
    GT_EQUAL(gori_op_recv_multi(&first.op, &pair.handle), GORI_EBUSY);
    GT_EQUAL(gori_op_recv(&second.op, &pair.handle, room, sizeof(room)), GORI_EBUSY);
    CALL(&fixture, gori_op_send(&second.op, &pair.handle, &piece, 1));
    GT_EQUAL(gori_op_send(&third.op, &pair.handle, &piece, 1), GORI_EBUSY);
    gori_handle_close(&pair.handle);
    GT_EQUAL(gori_op_send(&third.op, &pair.handle, &piece, 1), GORI_ECLOSED);
    GT_EQUAL(gori_handle_shutdown(&pair.handle), GORI_ECLOSED);
    FIXTURE_UNTIL(&fixture, pair.closed > 0);
    GT_EQUAL(gori_op_recv_multi(&third.op, &pair.handle), GORI_ECLOSED);
    GT_EQUAL(third.completions, 0);
    GT_EQUAL(first.last, 1);
    GT_EQUAL(second.last, 1);
    fixture_hang_up(pair.peer);
    fixture_close(&fixture);
}

GT_TEST(operations_have_a_configured_maximum)
{
    struct fixture fixture = {.config = {.ops_max = 2}};
    struct pair pairs[2];
    struct probe probes[3];
    fixture_open(&fixture);
    pair_open(&fixture, &pairs[0]);
    pair_open(&fixture, &pairs[1]);
    for (int i = 0; i < 3; i++) {
        probe_init(&fixture, &probes[i]);
    }
    struct gori_slice piece = {(const uint8_t *)"z", 1};
    CALL(&fixture, gori_op_recv_multi(&probes[0].op, &pairs[0].handle));
    CALL(&fixture, gori_op_recv_multi(&probes[1].op, &pairs[1].handle));
    GT_EQUAL(gori_op_send(&probes[2].op, &pairs[0].handle, &piece, 1), GORI_ELIMIT);
    gori_op_cancel(&probes[1].op);
    FIXTURE_UNTIL(&fixture, probes[1].last == 1);
    CALL(&fixture, gori_op_send(&probes[2].op, &pairs[0].handle, &piece, 1));
    FIXTURE_UNTIL(&fixture, probes[2].last == 1);
    pair_close(&pairs[0]);
    pair_close(&pairs[1]);
    fixture_close(&fixture);
}

GT_TEST(a_connect_to_nobody_is_refused)
{
    struct fixture fixture = {0};
    struct gori_addr addr = fixture_addr("127.0.0.1:0");
    struct gori_handle handle = {0};
    struct probe probe;
    fixture_open(&fixture);
    struct gt_peer *listener =
        fixture_listen(&fixture, &addr, 1); /* a port that was free a moment ago */
    fixture_hang_up(listener);
    probe_init(&fixture, &probe);
    GT_EQUAL(gori_handle_open(fixture.loop, GORI_ADDR_IPV4, &handle), 0);
    CALL(&fixture, gori_op_connect(&probe.op, &handle, &addr));
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, GORI_ECONNREFUSED);
    gori_handle_close(&handle);
    fixture_close(&fixture);
}

static void accept_many(const char *text, unsigned count)
{
    struct fixture fixture = {0};
    struct gori_addr addr = fixture_addr(text);
    struct gt_peer *peers[64];
    struct probe probe;
    fixture_open(&fixture);
    struct pair server = {.fixture = &fixture};
    GT_EQUAL(gori_handle_listen(fixture.loop, &addr, NULL, &server.handle), 0);
    GT_EQUAL(gori_handle_addr(&server.handle, &addr), 0);
    probe_init(&fixture, &probe);
    CALL(&fixture, gori_op_accept(&probe.op, &server.handle));
    for (unsigned i = 0; i < count; i++) {
        peers[i] = fixture_connect(&fixture, &addr);
        GT_CHECK(peers[i] != NULL);
    }
    FIXTURE_UNTIL(&fixture, probe.accepted_count == count);
    GT_EQUAL(probe.last, 0);
    for (unsigned i = 0; i < count; i++) {
        gori_native_close(fixture.loop, probe.accepted[i]);
        peer_expect_end(&fixture, peers[i]);
        fixture_hang_up(peers[i]);
    }
    gori_handle_close(&server.handle);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, GORI_ECANCELED);
    fixture_close(&fixture);
}

GT_TEST(an_accept_gives_every_connection_over_ipv4)
{
    accept_many("127.0.0.1:0", 64);
}

GT_TEST(an_accept_gives_every_connection_over_ipv6)
{
    accept_many("[::1]:0", 20);
}

GT_TEST(descriptors_do_not_leak_when_accepts_are_cancelled)
{
    struct fixture fixture = {0};
    struct gori_addr addr = fixture_addr("127.0.0.1:0");
    struct pair server = {.fixture = &fixture};
    struct probe probe;
    fixture_open(&fixture);
    GT_EQUAL(gori_handle_listen(fixture.loop, &addr, NULL, &server.handle), 0);
    GT_EQUAL(gori_handle_addr(&server.handle, &addr), 0);
    for (int round = 0; round < 200; round++) {
        probe_init(&fixture, &probe);
        CALL(&fixture, gori_op_accept(&probe.op, &server.handle));
        struct gt_peer *peer = fixture_connect(&fixture, &addr);
        GT_CHECK(peer != NULL);
        gori_op_cancel(&probe.op);
        FIXTURE_UNTIL(&fixture, probe.last == 1);
        for (unsigned i = 0; i < probe.accepted_count; i++) {
            gori_native_close(fixture.loop, probe.accepted[i]);
        }
        fixture_hang_up(peer);
    }
    gori_handle_close(&server.handle);
    fixture_close(&fixture); /* counts them */
}

/* Case: close A with a receive pending; B gets the same number; A's end must not touch B. */
GT_TEST(a_descriptor_that_is_used_again_gets_its_own_bytes_only)
{
    struct fixture fixture = {0};
    struct pair a;
    struct pair b;
    struct probe first;
    struct probe second;
    fixture_open(&fixture);
    for (int round = 0; round < 50; round++) {
        pair_open(&fixture, &a);
        probe_init(&fixture, &first);
        CALL(&fixture, gori_op_recv_multi(&first.op, &a.handle));
        fixture_turn(&fixture);
        gori_handle_close(&a.handle);
        (void)gt_peer_send(a.peer, "for a", 5);
        FIXTURE_UNTIL(&fixture, a.closed > 0);
        pair_open(&fixture, &b);
        probe_init(&fixture, &second);
        second.stamp = 7;
        CALL(&fixture, gori_op_recv_multi(&second.op, &b.handle));
        uint8_t data[10];
        fixture_fill(data, sizeof(data), 7, 0);
        peer_send_all(&fixture, b.peer, data, sizeof(data));
        FIXTURE_UNTIL(&fixture, second.bytes == sizeof(data));
        GT_EQUAL(first.last, 1);
        pair_close(&b);
        fixture_hang_up(a.peer);
    }
    fixture_close(&fixture);
}

/* Exhaustion parks: nothing is delivered, nothing is lost, the loop does not spin, and all resume.
 */
GT_TEST(receives_wait_for_buffers_in_turn_and_resume)
{
    enum { PAIRS = 6, BUFFERS = 4 };
    struct fixture fixture = {.config = {.buffers_max = BUFFERS, .buffer_bytes = 512}};
    struct pair pairs[PAIRS];
    struct probe probes[PAIRS];
    uint8_t data[4 * 512];
    fixture_open(&fixture);
    for (int i = 0; i < PAIRS; i++) {
        pair_open(&fixture, &pairs[i]);
        probe_init(&fixture, &probes[i]);
        probes[i].stamp = (uint8_t)(i + 1);
        probes[i].hold = true;
        CALL(&fixture, gori_op_recv_multi(&probes[i].op, &pairs[i].handle));
    }
    for (int i = 0; i < PAIRS; i++) {
        fixture_fill(data, sizeof(data), (uint8_t)(i + 1), 0);
        peer_send_all(&fixture, pairs[i].peer, data, sizeof(data));
    }
    fixture_settle(&fixture);
    unsigned held = 0;
    for (int i = 0; i < PAIRS; i++) {
        GT_EQUAL(probes[i].last, 0);
        held += probes[i].held_count;
    }
    GT_EQUAL(held, BUFFERS);
    struct gori_loop_stats stats;
    gori_loop_read_stats(fixture.loop, &stats);
    GT_EQUAL(stats.buffers_held_now, BUFFERS);
    GT_CHECK(stats.buffers_now <= BUFFERS);
    for (;;) {
        uint64_t bytes = 0;
        for (int i = 0; i < PAIRS; i++) {
            probe_release_held(&probes[i]);
            bytes += probes[i].bytes;
        }
        if (bytes == PAIRS * sizeof(data)) {
            break;
        }
        fixture_turn(&fixture);
    }
    for (int i = 0; i < PAIRS; i++) {
        pair_close(&pairs[i]);
    }
    fixture_close(&fixture);
}

GT_TEST(a_parked_receive_can_be_cancelled_and_closed)
{
    struct fixture fixture = {.config = {.buffers_max = 1, .buffer_bytes = 512}};
    struct pair pairs[3];
    struct probe probes[3];
    fixture_open(&fixture);
    for (int i = 0; i < 3; i++) {
        pair_open(&fixture, &pairs[i]);
        probe_init(&fixture, &probes[i]);
        probes[i].hold = true;
        CALL(&fixture, gori_op_recv_multi(&probes[i].op, &pairs[i].handle));
        peer_send_all(&fixture, pairs[i].peer, "abc", 3);
        fixture_settle(&fixture);
    }
    GT_EQUAL(probes[0].held_count, 1);
    gori_op_cancel(&probes[1].op);
    FIXTURE_UNTIL(&fixture, probes[1].last == 1);
    GT_EQUAL(probes[1].result, GORI_ECANCELED);
    pair_close(&pairs[2]);
    GT_EQUAL(probes[2].last, 1);
    probe_release_held(&probes[0]);
    struct probe again;
    probe_init(&fixture, &again);
    CALL(&fixture, gori_op_recv_multi(&again.op, &pairs[1].handle));
    FIXTURE_UNTIL(&fixture, again.bytes == 3);
    pair_close(&pairs[0]);
    pair_close(&pairs[1]);
    fixture_close(&fixture);
}

GT_TEST(a_range_of_a_file_arrives_whole)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[2 << 20];
    fixture_fill(data, sizeof(data), 11, 0);
    int file = gt_make_file(data, sizeof(data));
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    struct gori_file_range range = {.file = file, .offset = 0, .size = sizeof(data)};
    CALL(&fixture, gori_op_send_file(&probe.op, &pair.handle, &range));
    fixture_settle(&fixture);
    peer_expect(&fixture, pair.peer, sizeof(data), 11);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, sizeof(data));
    probe_init(&fixture, &probe);
    range.size = 100;
    CALL(&fixture, gori_op_send_file(&probe.op, &pair.handle, &range));
    peer_expect(&fixture, pair.peer, 100, 11);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    pair_close(&pair);
    fixture_close(&fixture);
    gt_close_file(file);
}

GT_TEST(what_is_sent_with_more_to_come_arrives_before_it)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[100000];
    fixture_fill(data, sizeof(data), 13, 0);
    int file = gt_make_file(data, sizeof(data));
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    const struct gori_slice piece = {data, 100};
    CALL(&fixture, gori_op_send_more(&probe.op, &pair.handle, &piece, 1));
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, 100);
    probe_init(&fixture, &probe);
    const struct gori_file_range range = {.file = file, .offset = 100, .size = sizeof(data) - 100};
    CALL(&fixture, gori_op_send_file(&probe.op, &pair.handle, &range));
    peer_expect(&fixture, pair.peer, sizeof(data), 13);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    pair_close(&pair);
    fixture_close(&fixture);
    gt_close_file(file);
}

GT_TEST(a_file_that_became_shorter_is_an_error_after_its_bytes)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[1000];
    fixture_fill(data, sizeof(data), 12, 0);
    int file = gt_make_file(data, sizeof(data));
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    struct gori_file_range range = {.file = file, .offset = 0, .size = 5000};
    CALL(&fixture, gori_op_send_file(&probe.op, &pair.handle, &range));
    peer_expect(&fixture, pair.peer, sizeof(data), 12);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, GORI_ETRUNCATED);
    pair_close(&pair);
    fixture_close(&fixture);
    gt_close_file(file);
}

GT_TEST(a_file_send_can_be_cancelled)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[8 << 20];
    int file = gt_make_file(data, sizeof(data));
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    struct gori_file_range range = {.file = file, .offset = 0, .size = sizeof(data)};
    CALL(&fixture, gori_op_send_file(&probe.op, &pair.handle, &range));
    fixture_settle(&fixture);
    GT_EQUAL(probe.completions, 0);
    gori_op_cancel(&probe.op);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.result, GORI_ECANCELED);
    pair_close(&pair);
    fixture_close(&fixture);
    gt_close_file(file);
}

/* One sender that never stops must not keep another from being heard, nor timers from firing. */
GT_TEST(one_hot_sender_does_not_starve_the_others)
{
    struct fixture fixture = {.config = {.buffers_max = 8, .buffer_bytes = 512}};
    struct pair hot;
    struct pair cold;
    struct probe loud;
    struct probe quiet;
    static uint8_t data[1 << 20];
    fixture_open(&fixture);
    pair_open(&fixture, &hot);
    pair_open(&fixture, &cold);
    probe_init(&fixture, &loud);
    probe_init(&fixture, &quiet);
    CALL(&fixture, gori_op_recv_multi(&loud.op, &hot.handle));
    CALL(&fixture, gori_op_recv_multi(&quiet.op, &cold.handle));
    (void)gt_peer_send(hot.peer, data, sizeof(data));
    peer_send_all(&fixture, cold.peer, "me", 2);
    for (int turn = 0; turn < 200 && quiet.bytes < 2; turn++) {
        (void)gt_peer_send(hot.peer, data, 65536); /* as much as fits: it is never idle */
        GT_CHECK(gori_loop_turn(fixture.loop, 0) >= 0);
    }
    GT_EQUAL(quiet.bytes, 2);
    pair_close(&hot);
    pair_close(&cold);
    fixture_close(&fixture);
}

GT_TEST(destroying_a_loop_ends_what_is_in_flight_first)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe receive;
    struct probe send;
    static uint8_t data[8 << 20];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    probe_init(&fixture, &receive);
    probe_init(&fixture, &send);
    struct gori_slice piece = {data, sizeof(data)};
    CALL(&fixture, gori_op_recv_multi(&receive.op, &pair.handle));
    CALL(&fixture, gori_op_send(&send.op, &pair.handle, &piece, 1));
    fixture_settle(&fixture);
    fixture_hang_up(pair.peer);
    fixture_close(&fixture);
    GT_EQUAL(receive.last, 1);
    GT_EQUAL(send.last, 1);
    GT_EQUAL(pair.closed, 1);
}
