/* SPDX-License-Identifier: MIT */
/*
 * What is easily lost or invented where readiness is told as an edge, as a level or not at all:
 * bytes that stay behind a read, ends that come together with bytes, and events for a descriptor
 * number that has got another owner.  The same is asked of engines that know no readiness.
 */
#include "conformance/fixture.h"

#include <string.h>

#define STAMP 7

static void send_all(struct fixture *fixture, struct gt_peer *peer, const uint8_t *data,
                     size_t size)
{
    size_t sent = 0;
    while (sent < size) {
        int64_t result = gt_peer_send(peer, data + sent, size - sent);
        if (result == GORI_EAGAIN) {
            fixture_turn(fixture);
            continue;
        }
        GT_CHECK(result > 0);
        sent += (size_t)result;
    }
}

/* The silent stall: bytes are left in the socket, the peer says nothing more, and whoever asks
   again gets them all the same. */
GT_TEST(what_a_receive_leaves_behind_is_not_lost)
{
    enum { SIZE = 1000, PIECE = 7 };
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    uint8_t data[SIZE];
    uint8_t piece[PIECE];
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    fixture_fill(data, SIZE, STAMP, 0);
    send_all(&fixture, pair.peer, data, SIZE);
    size_t got = 0;
    while (got < SIZE) {
        probe_init(&fixture, &probe);
        GT_EQUAL(gori_op_recv(&probe.op, &pair.handle, piece, PIECE), 0);
        FIXTURE_UNTIL(&fixture, probe.last == 1);
        GT_CHECK(probe.result > 0 && probe.result <= PIECE);
        fixture_check(piece, (size_t)probe.result, STAMP, got);
        got += (size_t)probe.result;
        if (got % 5 == 0) {
            fixture_settle(&fixture); /* nobody waits for it, and the edge is long past */
        }
    }
    pair_close(&pair);
    fixture_close(&fixture);
}

/* A multishot receive that was cancelled in the middle of a long answer goes on where it was. */
GT_TEST(a_receive_that_pauses_finds_the_rest)
{
    enum { SIZE = 200000 };
    static uint8_t data[SIZE];
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    gt_peer_set_buffers(pair.peer, 2 * SIZE, 0);
    fixture_fill(data, SIZE, STAMP, 0);
    uint64_t got = 0;
    size_t sent = 0;
    while (got < SIZE) {
        probe_init(&fixture, &probe);
        GT_EQUAL(gori_op_recv_multi(&probe.op, &pair.handle), 0);
        if (sent < SIZE) {
            int64_t result = gt_peer_send(pair.peer, data + sent, SIZE - sent);
            sent += result > 0 ? (size_t)result : 0;
        }
        FIXTURE_UNTIL(&fixture, probe.completions > 0);
        gori_op_cancel(&probe.op);
        FIXTURE_UNTIL(&fixture, probe.last == 1);
        GT_CHECK(probe.result > 0 || probe.result == GORI_ECANCELED);
        got += probe.bytes;
        fixture_settle(&fixture);
    }
    GT_EQUAL(got, SIZE);
    pair_close(&pair);
    fixture_close(&fixture);
}

/* Bytes and the end come in one piece, to somebody who was not listening: first the bytes. */
GT_TEST(bytes_come_before_the_end_that_came_with_them)
{
    struct fixture fixture = {0};
    struct pair pair;
    struct probe probe;
    fixture_open(&fixture);
    pair_open(&fixture, &pair);
    fixture_settle(&fixture);
    GT_EQUAL(gt_peer_send(pair.peer, "last words", 10), 10);
    fixture_hang_up(pair.peer);
    pair.peer = NULL;
    fixture_settle(&fixture); /* nobody receives: the end must neither spin nor be forgotten */
    probe_init(&fixture, &probe);
    GT_EQUAL(gori_op_recv_multi(&probe.op, &pair.handle), 0);
    FIXTURE_UNTIL(&fixture, probe.last == 1);
    GT_EQUAL(probe.bytes, 10);
    GT_EQUAL(probe.result, 0);
    pair_close(&pair);
    fixture_close(&fixture);
}

/* A storm of half-closes: each side reads all, then the end, and the other direction still works.
 */
GT_TEST(half_closed_connections_still_answer)
{
    enum { COUNT = 40 };
    static struct pair pairs[COUNT];
    static struct probe receives[COUNT];
    struct fixture fixture = {0};
    fixture_open(&fixture);
    for (int i = 0; i < COUNT; i++) {
        pair_open(&fixture, &pairs[i]);
        probe_init(&fixture, &receives[i]);
        GT_EQUAL(gori_op_recv_multi(&receives[i].op, &pairs[i].handle), 0);
    }
    for (int i = 0; i < COUNT; i++) {
        GT_EQUAL(gt_peer_send(pairs[i].peer, "ask", 3), 3);
        gt_peer_shutdown(pairs[i].peer);
    }
    for (int i = 0; i < COUNT; i++) {
        struct probe send;
        const struct gori_slice answer = {.data = (const uint8_t *)"answer", .size = 6};
        char got[8];
        FIXTURE_UNTIL(&fixture, receives[i].last == 1);
        GT_EQUAL(receives[i].bytes, 3);
        GT_EQUAL(receives[i].result, 0);
        probe_init(&fixture, &send);
        GT_EQUAL(gori_op_send(&send.op, &pairs[i].handle, &answer, 1), 0);
        FIXTURE_UNTIL(&fixture, send.last == 1);
        GT_EQUAL(send.result, 6);
        FIXTURE_UNTIL(&fixture, gt_peer_state(pairs[i].peer) & GT_PEER_READABLE);
        GT_EQUAL(gt_peer_recv(pairs[i].peer, got, sizeof(got)), 6);
    }
    for (int i = 0; i < COUNT; i++) {
        pair_close(&pairs[i]);
    }
    fixture_close(&fixture);
}

/* All peers leave at once, half of them by a reset: each receive ends once, with what happened. */
GT_TEST(a_storm_of_hang_ups_ends_each_once)
{
    enum { COUNT = 40 };
    static struct pair pairs[COUNT];
    static struct probe receives[COUNT];
    struct fixture fixture = {0};
    fixture_open(&fixture);
    for (int i = 0; i < COUNT; i++) {
        pair_open(&fixture, &pairs[i]);
        probe_init(&fixture, &receives[i]);
        GT_EQUAL(gori_op_recv_multi(&receives[i].op, &pairs[i].handle), 0);
    }
    for (int i = 0; i < COUNT; i++) {
        if (i % 2 == 0) {
            fixture_hang_up(pairs[i].peer);
        } else {
            fixture_reset(pairs[i].peer);
        }
        pairs[i].peer = NULL;
    }
    for (int i = 0; i < COUNT; i++) {
        FIXTURE_UNTIL(&fixture, receives[i].last == 1);
        GT_EQUAL(receives[i].result, i % 2 == 0 ? 0 : GORI_ECONNRESET);
    }
    fixture_settle(&fixture);
    for (int i = 0; i < COUNT; i++) {
        GT_EQUAL(receives[i].completions, 1);
        pair_close(&pairs[i]);
    }
    fixture_close(&fixture);
}

/* The number of a closed connection goes to the next one, while events of the old one are under
   way: the new owner gets nothing but its own. */
GT_TEST(a_reused_descriptor_gets_no_old_event)
{
    struct fixture fixture = {0};
    fixture_open(&fixture);
    for (int i = 0; i < 20; i++) {
        struct pair old;
        struct pair new;
        struct probe probe;
        pair_open(&fixture, &old);
        fixture_settle(&fixture);
        GT_EQUAL(gt_peer_send(old.peer, "for the old one", 15), 15);
        if (i % 2 == 0) {
            fixture_reset(old.peer);
        } else {
            fixture_hang_up(old.peer);
        }
        old.peer = NULL;
        pair_close(&old);
        pair_open(&fixture, &new);
        probe_init(&fixture, &probe);
        GT_EQUAL(gori_op_recv_multi(&probe.op, &new.handle), 0);
        fixture_settle(&fixture);
        GT_EQUAL(probe.completions, 0);
        GT_EQUAL(gt_peer_send(new.peer, "new", 3), 3);
        FIXTURE_UNTIL(&fixture, probe.completions == 1);
        GT_EQUAL(probe.bytes, 3);
        pair_close(&new);
    }
    fixture_close(&fixture);
}
