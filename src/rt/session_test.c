/* SPDX-License-Identifier: MIT */
/*
 * Sessions on every engine that can be had here: receiving, sending, the ways to end.  What needs
 * time runs in the simulated world only (session_time_test.c).
 * Method: a listener whose sessions write down their callbacks, and scripted peers.
 */
#include "rt/session.h"

#include <lib/session_fixture.h>
#include <lib/system.h>

#define SESSION_TEST GT_TEST_ON_ALL

static size_t echo(struct fixture *f, struct gori_session *session, struct gori_slice bytes)
{
    (void)f;
    GT_CHECK(gori_session_send(session, bytes.data, bytes.size) >= 0);
    return bytes.size;
}

SESSION_TEST(echo_comes_back_and_the_end_closes)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    f.script.on_recv = echo;
    struct gt_peer peer = connect_peer(&f);
    for (size_t i = 1; i <= 20; i++) {
        peer_send(&f, &peer, "hello", 5);
        peer_read_bytes(&f, &peer, 5 * i);
    }
    GT_EQUAL_BYTES(f.read, 10, "hellohello", 10);
    GT_EQUAL(f.closed, 0);
    gt_peer_shutdown(&peer);
    GT_EQUAL(peer_read_end(&f, &peer), 0);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_PEER);
    GT_EQUAL(f.last_error, 0);
    gt_peer_close(&peer);
    end(&f);
}

static size_t echo_by_reference(struct fixture *f, struct gori_session *session,
                                struct gori_slice bytes)
{
    (void)f;
    struct gori_buffer *buffer = gori_session_retain(session);
    GT_CHECK(buffer != NULL);
    GT_CHECK(gori_session_send_buffer(session, buffer, bytes) >= 0);
    gori_buffer_release(buffer);
    return bytes.size;
}

SESSION_TEST(received_buffers_go_on_without_a_copy)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    f.script.on_recv = echo_by_reference;
    struct gt_peer peer = connect_peer(&f);
    size_t size = 200000;
    uint8_t *bytes = pattern(size);
    for (size_t at = 0; at < size; at += 4000) {
        peer_send(&f, &peer, bytes + at, 4000);
        peer_read_bytes(&f, &peer, at + 4000);
    }
    GT_CHECK(memcmp(f.read, bytes, size) == 0);
    GT_CHECK(gori_session_retain(f.session) == NULL);
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    end(&f);
}

SESSION_TEST(close_ends_the_stream_and_delivers_nothing_more)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    struct gt_peer peer = connect_peer(&f);
    uint64_t id = gori_session_id(f.session);
    GT_CHECK(gori_session_id_is_live(f.loop, id));
    GT_CHECK(gori_loop_session(f.loop, id) == f.session);
    struct gori_session *session = f.session;
    gori_session_close(session);
    gori_session_close(session);
    GT_EQUAL(f.closed, 0);
    GT_EQUAL(gori_session_send(session, "x", 1), GORI_ECLOSED);
    (void)gt_peer_send(&peer, "late", 4);
    GT_CHECK(peer_read_end(&f, &peer) <= 0);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_LOCAL);
    GT_EQUAL(f.received_bytes, 0);
    GT_CHECK(!gori_session_id_is_live(f.loop, id));
    GT_CHECK(gori_loop_session(f.loop, id) == NULL);
    gt_peer_close(&peer);
    end(&f);
}

static size_t close_at_once(struct fixture *f, struct gori_session *session,
                            struct gori_slice bytes)
{
    (void)f;
    gori_session_close(session);
    return bytes.size;
}

SESSION_TEST(close_inside_on_recv_is_the_last_delivery)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    f.script.on_recv = close_at_once;
    struct gt_peer peer = connect_peer(&f);
    size_t size = 100000;
    uint8_t *bytes = pattern(size);
    (void)gt_peer_send(&peer, bytes, size);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.calls, 1);
    gt_peer_close(&peer);
    end(&f);
}

SESSION_TEST(close_after_flush_gives_the_peer_everything)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    struct gt_peer peer = connect_peer(&f);
    size_t size = 2 << 20;
    uint8_t *bytes = pattern(size);
    struct gori_session *session = f.session;
    GT_EQUAL(gori_session_send(session, bytes, size), GORI_SEND_HIGH);
    gori_session_close_after_flush(session);
    gori_session_close_after_flush(session);
    GT_EQUAL(gori_session_send(session, "x", 1), GORI_ECLOSED);
    peer_send(&f, &peer, bytes, 5000); /* thrown away; unread it would be a reset */
    GT_EQUAL(peer_read_end(&f, &peer), 0);
    GT_EQUAL(f.read_bytes, size);
    GT_CHECK(memcmp(f.read, bytes, size) == 0);
    GT_EQUAL(f.closed, 0); /* draining: the peer has not ended its direction */
    GT_EQUAL(f.received_bytes, 0);
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_LOCAL);
    end(&f);
}

SESSION_TEST(half_closes_work_in_both_directions)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine, .handle_eof = true});
    struct gt_peer peer = connect_peer(&f);
    peer_send(&f, &peer, "question", 8);
    gt_peer_shutdown(&peer);
    TURN_UNTIL(&f, f.eofs == 1);
    GT_EQUAL_BYTES(f.received, f.received_bytes, "question", 8);
    turns(&f, 5);
    GT_EQUAL(f.closed, 0);
    GT_EQUAL(gori_session_send(f.session, "answer", 6), 0);
    struct gori_session *session = f.session;
    gori_session_shutdown(session);
    gori_session_shutdown(session);
    GT_EQUAL(gori_session_send(session, "x", 1), GORI_ECLOSED);
    GT_EQUAL(peer_read_end(&f, &peer), 0);
    GT_EQUAL_BYTES(f.read, f.read_bytes, "answer", 6);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_LOCAL);
    GT_EQUAL(f.eofs, 1);
    gt_peer_close(&peer);
    end(&f);
}

SESSION_TEST(our_half_close_leaves_receiving_open)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine, .handle_eof = true});
    struct gt_peer peer = connect_peer(&f);
    gori_session_shutdown(f.session);
    GT_EQUAL(peer_read_end(&f, &peer), 0);
    peer_send(&f, &peer, "still here", 10);
    TURN_UNTIL(&f, f.received_bytes == 10);
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.eofs, 1);
    end(&f);
}

/* Frames: a length byte and a payload. */
static size_t take_frames(struct fixture *f, struct gori_session *session, struct gori_slice bytes)
{
    (void)f;
    (void)session;
    size_t used = 0;
    while (used < bytes.size && used + 1 + bytes.data[used] <= bytes.size) {
        used += 1 + (size_t)bytes.data[used];
    }
    return used;
}

SESSION_TEST(an_unconsumed_tail_is_shown_again_with_what_follows)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    f.script.on_recv = take_frames;
    struct gt_peer peer = connect_peer(&f);
    uint8_t frames[600];
    size_t size = 0;
    for (uint8_t payload = 0; size + payload < sizeof(frames); payload = (uint8_t)(payload + 7)) {
        frames[size++] = payload;
        memset(frames + size, payload, payload);
        size += payload;
    }
    for (size_t at = 0; at < size; at += 13) {
        peer_send(&f, &peer, frames + at, size - at < 13 ? size - at : 13);
    }
    TURN_UNTIL(&f, f.received_bytes == size);
    GT_CHECK(memcmp(f.received, frames, size) == 0);
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    end(&f);
}

static size_t take_nothing(struct fixture *f, struct gori_session *session, struct gori_slice bytes)
{
    (void)f;
    (void)session;
    (void)bytes;
    return 0;
}

SESSION_TEST(too_much_unconsumed_closes)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine, .options = {.recv_max = 20000}});
    f.script.on_recv = take_nothing;
    struct gt_peer peer = connect_peer(&f);
    uint8_t *bytes = pattern(30000);
    (void)gt_peer_send(&peer, bytes, 15000);
    turns(&f, 10);
    GT_EQUAL(f.closed, 0);
    (void)gt_peer_send(&peer, bytes, 15000);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_TOO_LARGE);
    GT_EQUAL(f.last_error, GORI_EMSGSIZE);
    gt_peer_close(&peer);
    end(&f);
}

static size_t pause_at_once(struct fixture *f, struct gori_session *session,
                            struct gori_slice bytes)
{
    (void)f;
    gori_session_pause(session);
    return bytes.size < 100 ? bytes.size : 100;
}

SESSION_TEST(a_pause_holds_in_order_and_bounded)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    f.script.on_recv = pause_at_once;
    struct gt_peer peer = connect_peer(&f);
    gt_peer_set_buffers(&peer, 64 << 10, 64 << 10);
    size_t size = 4 << 20;
    uint8_t *bytes = pattern(size);
    size_t sent = 0;
    for (int i = 0; i < 200; i++) {
        int64_t result = gt_peer_send(&peer, bytes + sent, size - sent);
        sent += result > 0 ? (size_t)result : 0;
        turn(&f);
    }
    GT_EQUAL(f.calls, 1); /* stopped inside the first delivery */
    GT_EQUAL(f.received_bytes, 100);
    struct gori_loop_stats stats;
    gori_loop_read_stats(f.loop, &stats);
    GT_CHECK(stats.buffers_held_now <= 300); /* what came before the cancel */
    for (int i = 0; i < 20; i++) {
        uint32_t calls = f.calls;
        gori_session_resume(f.session);
        GT_EQUAL(f.calls, calls); /* not inside the call */
        TURN_UNTIL(&f, f.calls == calls + 1);
        turns(&f, 3);
        GT_EQUAL(f.calls, calls + 1);
    }
    f.script.on_recv = NULL;
    gori_session_resume(f.session);
    peer_send(&f, &peer, bytes + sent, size - sent);
    gt_peer_shutdown(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.received_bytes, size);
    GT_CHECK(memcmp(f.received, bytes, size) == 0);
    gt_peer_close(&peer);
    end(&f);
}

SESSION_TEST(the_end_comes_after_what_was_held)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine, .handle_eof = true});
    struct gt_peer peer = connect_peer(&f);
    gori_session_pause(f.session);
    peer_send(&f, &peer, "last words", 10);
    gt_peer_close(&peer);
    turns(&f, 10);
    GT_EQUAL(f.calls, 0);
    GT_EQUAL(f.eofs, 0);
    gori_session_resume(f.session);
    TURN_UNTIL(&f, f.eofs == 1);
    GT_EQUAL_BYTES(f.received, f.received_bytes, "last words", 10);
    gori_session_close(f.session);
    TURN_UNTIL(&f, f.closed == 1);
    end(&f);
}

SESSION_TEST(resume_shows_the_tail_again_without_new_bytes)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    f.script.on_recv = take_nothing;
    struct gt_peer peer = connect_peer(&f);
    peer_send(&f, &peer, "abc", 3);
    TURN_UNTIL(&f, f.calls == 1);
    turns(&f, 3);
    GT_EQUAL(f.calls, 1);
    f.script.on_recv = NULL;
    gori_session_resume(f.session);
    TURN_UNTIL(&f, f.calls == 2);
    GT_EQUAL_BYTES(f.received, f.received_bytes, "abc", 3);
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    end(&f);
}

SESSION_TEST(bytes_before_a_reset_are_delivered_first)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    struct gt_peer peer = connect_peer(&f);
    GT_EQUAL(gt_peer_send(&peer, "goodbye", 7), 7);
    gt_peer_reset(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL_BYTES(f.received, f.received_bytes, "goodbye", 7);
    GT_EQUAL(f.last_reason, GORI_CLOSE_RESET);
    GT_EQUAL(f.last_error, GORI_ECONNRESET);
    end(&f);
}

SESSION_TEST(reset_is_seen_as_a_reset)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    struct gt_peer peer = connect_peer(&f);
    gori_session_reset(f.session);
    GT_EQUAL(peer_read_end(&f, &peer), GORI_ECONNRESET);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_RESET);
    gt_peer_close(&peer);
    end(&f);
}

SESSION_TEST(sends_of_one_turn_are_one_send)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    struct gt_peer peer = connect_peer(&f);
    turns(&f, 3);
    struct gori_block *block;
    GT_EQUAL(gori_block_create(NULL, f.received, 1000, &block), 0);
    struct gori_loop_stats before;
    gori_loop_read_stats(f.loop, &before);
    for (int i = 0; i < 15; i++) {
        GT_EQUAL(gori_session_send(f.session, "abcd", 4), 0);
        GT_EQUAL(gori_session_send_block(f.session, block), 0);
    }
    GT_EQUAL(gori_session_send_bytes(f.session), 15 * 1004);
    gori_block_unref(block);
    peer_read_bytes(&f, &peer, 15 * 1004);
    turns(&f, 2);
    struct gori_loop_stats after;
    gori_loop_read_stats(f.loop, &after);
    GT_EQUAL(after.completions - before.completions, 1);
    GT_EQUAL(gori_session_send_bytes(f.session), 0);
    GT_EQUAL(after.send_bytes_now, 0);
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    end(&f);
}

SESSION_TEST(watermarks_tell_the_producer)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){
                  .engine = engine,
                  .options = {.send_high = 2 << 20, .send_low = 1 << 20, .send_max = 7 << 20}});
    struct gt_peer peer = connect_peer(&f);
    size_t size = 1 << 20;
    uint8_t *bytes = pattern(size);
    GT_EQUAL(gori_session_send(f.session, bytes, size), 0);
    GT_EQUAL(gori_session_send(f.session, bytes, size), GORI_SEND_HIGH);
    for (int i = 0; i < 4; i++) {
        GT_EQUAL(gori_session_send(f.session, bytes, size), GORI_SEND_HIGH);
    }
    GT_EQUAL(f.drains, 0);
    peer_read_bytes(&f, &peer, 6 * size);
    TURN_UNTIL(&f, gori_session_send_bytes(f.session) == 0);
    GT_EQUAL(f.drains, 1);
    for (size_t i = 0; i < 6; i++) {
        GT_CHECK(memcmp(f.read + i * size, bytes, size) == 0);
    }
    /* A slow consumer is closed at the limit. */
    int result = 0;
    while (result >= 0) {
        result = gori_session_send(f.session, bytes, size);
    }
    GT_EQUAL(result, GORI_ELIMIT);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_SLOW);
    gt_peer_close(&peer);
    end(&f);
}

SESSION_TEST(a_send_to_a_gone_peer_ends_as_a_reset)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    struct gt_peer peer = connect_peer(&f);
    GT_EQUAL(gt_peer_send(&peer, "answer", 6), 6);
    gt_peer_reset(&peer);
    GT_CHECK(gori_session_send(f.session, "x", 1) >= 0);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_RESET);
    GT_EQUAL(f.received_bytes, 6); /* what came before is not lost */
    end(&f);
}

static void send_hello(struct fixture *f, struct gori_session *session)
{
    (void)f;
    GT_CHECK(gori_session_send(session, "hello", 5) >= 0);
}

SESSION_TEST(connects_and_sends_what_was_queued_before)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine, .without_listener = true});
    struct gt_peer listener;
    struct gori_addr addr = addr_of("127.0.0.1:0");
    GT_EQUAL(gt_peer_listen(&f.network, &addr, 8, &listener), 0);
    gt_peer_addr(&listener, &addr);
    f.script.on_open = send_hello;
    struct gori_session *session;
    GT_EQUAL(gori_session_connect(f.loop, &addr, &events_plain, NULL, &f, &session), 0);
    GT_EQUAL(f.opened, 0);
    GT_EQUAL(gori_session_send(session, "early ", 6), 0);
    struct gori_addr peer_addr;
    GT_EQUAL(gori_session_peer(session, &peer_addr), 0);
    GT_EQUAL(gori_addr_port(&peer_addr), gori_addr_port(&addr));
    struct gt_peer peer;
    TURN_UNTIL(&f, gt_peer_accept(&listener, &peer) == 0);
    peer_read_bytes(&f, &peer, 11);
    GT_EQUAL_BYTES(f.read, f.read_bytes, "early hello", 11);
    peer_send(&f, &peer, "back", 4);
    TURN_UNTIL(&f, f.received_bytes == 4);
    GT_EQUAL(gori_session_peer(session, &peer_addr), 0);
    GT_EQUAL(gori_addr_port(&peer_addr), gori_addr_port(&addr));
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    gt_peer_close(&listener);
    end(&f);
}

SESSION_TEST(a_refused_connect_closes_without_opening)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    struct gori_addr addr = f.addr;
    gori_listener_close(f.listener);
    TURN_UNTIL(&f, f.listeners_closed == 1);
    struct gori_session *session;
    GT_EQUAL(gori_session_connect(f.loop, &addr, &events_plain, NULL, &f, &session), 0);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.opened, 0);
    GT_EQUAL(f.last_reason, GORI_CLOSE_CONNECT);
    GT_EQUAL(f.last_error, GORI_ECONNREFUSED);
    f.closed = 0;
    end(&f);
}

SESSION_TEST(close_while_opening_comes_once)
{
    struct fixture f;
    struct fixture client = {0}; /* what happens to the connecting ends */
    begin(&f, &(struct fixture_config){.engine = engine});
    struct gori_session *session;
    GT_EQUAL(gori_session_connect(f.loop, &f.addr, &events_plain, NULL, &client, &session), 0);
    gori_session_close(session);
    TURN_UNTIL(&f, client.closed == 1);
    GT_EQUAL(client.last_reason, GORI_CLOSE_LOCAL);
    GT_EQUAL(client.opened, 0);
    /* With something to send it is opened, flushed, and then closed. */
    GT_EQUAL(gori_session_connect(f.loop, &f.addr, &events_plain, NULL, &client, &session), 0);
    GT_EQUAL(gori_session_send(session, "bye", 3), 0);
    gori_session_close_after_flush(session);
    TURN_UNTIL(&f, f.received_bytes == 3 && client.closed == 2);
    GT_EQUAL(client.opened, 1);
    GT_EQUAL(client.last_reason, GORI_CLOSE_LOCAL);
    end(&f);
}

static void keep_reference(struct fixture *f, struct gori_session *session)
{
    (void)f;
    gori_session_ref(session);
}

SESSION_TEST(a_reference_keeps_the_memory_and_nothing_else)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine, .options = {.context_bytes = 40}});
    f.script.on_open = keep_reference;
    struct gt_peer peer = connect_peer(&f);
    struct gori_session *session = f.session;
    uint8_t *context = gori_session_context(session);
    for (int i = 0; i < 40; i++) {
        GT_EQUAL(context[i], 0);
        context[i] = (uint8_t)i;
    }
    GT_EQUAL((uintptr_t)context % 16, 0);
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    turns(&f, 3);
    struct gori_addr addr;
    GT_EQUAL(context[39], 39);
    GT_EQUAL(gori_session_send(session, "x", 1), GORI_ECLOSED);
    GT_EQUAL(gori_session_peer(session, &addr), GORI_ECLOSED);
    gori_session_close(session);
    gori_session_shutdown(session);
    gori_session_pause(session);
    gori_session_resume(session);
    gori_session_set_deadline(session, 1);
    gori_session_set_idle_timeout(session, 1);
    turns(&f, 3);
    GT_EQUAL(f.closed, 1);
    gori_session_unref(session);
    end(&f);
}

SESSION_TEST(destroy_closes_what_is_open)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    struct gt_peer peers[3];
    for (int i = 0; i < 3; i++) {
        peers[i] = connect_peer(&f);
    }
    uint8_t *bytes = pattern(1 << 20);
    GT_CHECK(gori_session_send(f.session, bytes, 1 << 20) >= 0);
    turn(&f);
    gori_loop_destroy(f.loop);
    GT_EQUAL(f.closed, 3);
    GT_EQUAL(f.last_reason, GORI_CLOSE_SHUTDOWN);
    GT_EQUAL(f.listeners_closed, 1);
    f.loop = NULL;
    for (int i = 0; i < 3; i++) {
        gt_peer_close(&peers[i]);
    }
    end(&f);
}

static struct gori_file *open_file(size_t size, struct gori_root **ret_root)
{
    char folder[GT_FOLDER_BYTES];
    gt_make_folder(folder);
    gt_write_file(folder, "file", pattern(size), size);
    struct gori_file *file;
    GT_EQUAL(gori_root_open(NULL, folder, ret_root), 0);
    GT_EQUAL(gori_root_open_file(*ret_root, "file", &file), 0);
    gt_remove_folder(folder, "file");
    return file;
}

SESSION_TEST(a_file_stands_in_order_between_bytes)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    struct gori_root *root;
    size_t size = (3 << 20) + 77;
    struct gori_file *file = open_file(size, &root);
    struct gt_peer peer = connect_peer(&f);
    GT_EQUAL(gori_session_send(f.session, "head", 4), 0);
    GT_EQUAL(gori_session_send_file(f.session, file, 100, size - 100), 0);
    GT_EQUAL(gori_session_send(f.session, "tail", 4), 0);
    GT_EQUAL(gori_session_send_bytes(f.session), 8 + (16 << 10));
    peer_read_bytes(&f, &peer, size - 100 + 8);
    uint8_t *bytes = pattern(size);
    GT_EQUAL_BYTES(f.read, 4, "head", 4);
    GT_CHECK(memcmp(f.read + 4, bytes + 100, size - 100) == 0);
    GT_EQUAL_BYTES(f.read + size - 96, 4, "tail", 4);
    /* Beyond the end of the file: the session cannot keep its word. */
    GT_EQUAL(gori_session_send_file(f.session, file, size - 10, 20), 0);
    TURN_UNTIL(&f, f.closed == 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_TRUNCATED);
    gt_peer_close(&peer);
    gori_file_unref(file);
    gori_root_close(root);
    end(&f);
}

SESSION_TEST(steady_state_takes_no_memory)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine, .options = {.context_bytes = 100}});
    f.script.on_recv = echo;
    uint8_t *bytes = pattern(50000);
    for (int round = 0; round < 12; round++) {
        if (round == 4) {
            gi_fault_alloc_fail_never(&f.memory); /* counts from here */
        }
        struct gt_peer peer = connect_peer(&f);
        f.read_bytes = 0;
        f.received_bytes = 0;
        for (size_t at = 0; at < 50000; at += 5000) {
            peer_send(&f, &peer, bytes + at, 5000);
            peer_read_bytes(&f, &peer, at + 5000);
        }
        uint32_t closed = f.closed;
        gt_peer_close(&peer);
        TURN_UNTIL(&f, f.closed == closed + 1);
    }
    GT_EQUAL(gi_fault_alloc_count(&f.memory), 0);
    end(&f);
}

GT_TEST(an_idle_session_is_small)
{
    printf("struct gori_session: %zu bytes\n", sizeof(struct gori_session));
    GT_CHECK(sizeof(struct gori_session) + sizeof(struct gi_id_entry) + 64 <= 600);
}

GT_MAIN()
