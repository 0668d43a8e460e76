/* SPDX-License-Identifier: MIT */
/*
 * The simulated engine through its vtable, without the runtime: that a calm world does what a
 * kernel does, that each fault does what it says, and that a seed gives the same world twice.
 * Method: one engine ("the loop") and scripted peers in one world; completions are logged.
 */
#include <gori/error.h>
#include <lib/test.h>

#include "base/alloc.h"
#include "base/fault_alloc.h"
#include "engine/sim/sim.h"

#define LOG_MAX 512

struct logged {
    struct gori_op *op;
    struct gori_handle *closed;
    int64_t result;
    gori_native accepted;
    bool is_last;
    size_t text_size;
    char text[64]; /* the beginning of what was received */
};

struct fixture {
    struct gi_fault_alloc memory;
    struct gi_sim *sim;
    struct gi_buffers buffers;
    struct gi_engine *engine;
    struct logged log[LOG_MAX];
    size_t count;
    struct gori_buffer *held[LOG_MAX]; /* kept instead of released, when `hold` is set */
    size_t held_count;
    bool hold;
};

static void begin(struct fixture *f, const struct gi_sim_config *config)
{
    memset(f, 0, sizeof(*f));
    gi_fault_alloc_init(&f->memory, NULL);
    const struct gori_allocator *allocator = &f->memory.allocator;
    GT_EQUAL(gi_sim_create(allocator, config, &f->sim), 0);
    GT_EQUAL(gi_buffers_init(&f->buffers, allocator, 512, 8), 0);
    struct gi_engine_config engine_config = {
        .allocator = allocator, .buffers = &f->buffers, .ops_max = 64, .simulation = f->sim};
    GT_EQUAL(gi_engine_sim.create(&engine_config, &f->engine), 0);
}

static void end(struct fixture *f)
{
    gi_engine_sim.destroy(f->engine);
    gi_buffers_fini(&f->buffers);
    gi_sim_destroy(f->sim);
    gi_fault_alloc_fini(&f->memory);
}

static void note(struct fixture *f, const struct gi_completion *completion)
{
    GT_CHECK(f->count < LOG_MAX);
    const struct gori_completion *what = &completion->what;
    struct logged *entry = &f->log[f->count++];
    *entry = (struct logged){.op = completion->op,
                             .closed = completion->closed,
                             .result = what->result,
                             .accepted = what->accepted,
                             .is_last = what->is_last};
    if (what->buffer == NULL) {
        return;
    }
    entry->text_size =
        what->data.size < sizeof(entry->text) ? what->data.size : sizeof(entry->text);
    memcpy(entry->text, what->data.data, entry->text_size);
    if (f->hold) {
        f->held[f->held_count++] = what->buffer;
    } else {
        gori_buffer_release(what->buffer);
    }
}

/* One turn that waits at most `wait`; the log then has what it delivered. */
static void turn(struct fixture *f, gori_time wait)
{
    gori_time now = gi_engine_sim.now(f->engine);
    gori_time deadline = wait == GORI_NEVER ? GORI_NEVER : now + wait;
    f->count = 0;
    GT_EQUAL(gi_engine_sim.turn(f->engine, deadline), 0);
    struct gi_completion completion;
    while (gi_engine_sim.next(f->engine, &completion)) {
        note(f, &completion);
    }
}

static int submit(struct fixture *f, struct gori_op *op, struct gori_handle *handle, uint8_t kind)
{
    op->kind = kind;
    op->handle = handle;
    return gi_engine_sim.submit(f->engine, op);
}

static struct gori_addr addr_of(const char *text)
{
    struct gori_addr addr;
    GT_EQUAL(gori_addr_parse(text, &addr), 0);
    return addr;
}

static gori_native peer_listen(struct fixture *f, const char *text)
{
    struct gori_addr addr = addr_of(text);
    struct gi_listen_options options = {.backlog = 16};
    gori_native native;
    GT_EQUAL(gi_sim_listen(f->sim, NULL, &addr, &options, &native), 0);
    return native;
}

static gori_native peer_connect(struct fixture *f, const char *text)
{
    struct gori_addr addr = addr_of(text);
    gori_native native;
    GT_EQUAL(gi_sim_open(f->sim, NULL, gori_addr_family(&addr), &native), 0);
    GT_EQUAL(gi_sim_connect(f->sim, native, &addr), 0);
    return native;
}

static void attach(struct fixture *f, struct gori_handle *handle, gori_native native)
{
    memset(handle, 0, sizeof(*handle));
    handle->native = native;
    GT_EQUAL(gi_engine_sim.attach(f->engine, handle), 0);
}

static void listen_on(struct fixture *f, const char *text, struct gori_handle *handle)
{
    struct gori_addr addr = addr_of(text);
    struct gi_listen_options options = {.backlog = 16};
    gori_native native;
    GT_EQUAL(gi_engine_sim.sockets->listen(f->engine, &addr, &options, &native), 0);
    attach(f, handle, native);
}

/* A connection: the loop's end in `handle`, the scripted peer's as the result. */
static gori_native make_pair(struct fixture *f, struct gori_handle *handle)
{
    struct gori_addr addr = addr_of("127.0.0.1:7");
    struct gi_listen_options options = {.backlog = 16};
    gori_native listener;
    GT_EQUAL(gi_engine_sim.sockets->listen(f->engine, &addr, &options, &listener), 0);
    gori_native peer = peer_connect(f, "127.0.0.1:7");
    gori_native accepted;
    GT_EQUAL(gi_engine_sim.sockets->accept(f->engine, listener, &accepted), 0);
    gi_engine_sim.sockets->close(f->engine, listener);
    attach(f, handle, accepted);
    return peer;
}

/* Closes the handle and takes turns until it says that it is closed. */
static void close_handle(struct fixture *f, struct gori_handle *handle)
{
    gi_engine_sim.close(f->engine, handle);
    for (int i = 0; i < 100; i++) {
        turn(f, GORI_SECONDS);
        if (f->count > 0 && f->log[f->count - 1].closed == handle) {
            return;
        }
    }
    GT_CHECK(false);
}

static int64_t peer_send(struct fixture *f, gori_native peer, const char *text)
{
    return gi_sim_send(f->sim, peer, text, strlen(text));
}

/* What peers and loops see in a calm world. */

GT_TEST(accept_delivers_every_connection_and_goes_on)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    struct gori_handle listener;
    struct gori_op accept = {0};
    listen_on(&f, "127.0.0.1:80", &listener);
    GT_EQUAL(submit(&f, &accept, &listener, GORI_OP_ACCEPT), 0);
    gori_native one = peer_connect(&f, "127.0.0.1:80");
    gori_native two = peer_connect(&f, "127.0.0.1:80");
    turn(&f, GORI_NEVER);
    GT_EQUAL(f.count, 2);
    GT_CHECK(f.log[0].accepted != GORI_NATIVE_NONE && !f.log[0].is_last);
    gi_engine_sim.sockets->close(f.engine, f.log[0].accepted);
    gi_engine_sim.sockets->close(f.engine, f.log[1].accepted);
    char byte;
    GT_EQUAL(gi_sim_recv(f.sim, one, &byte, 1), 0);
    gi_engine_sim.cancel(f.engine, &accept);
    turn(&f, GORI_NEVER);
    GT_EQUAL(f.count, 1);
    GT_EQUAL(f.log[0].result, GORI_ECANCELED);
    GT_CHECK(f.log[0].is_last);
    gi_sim_close(f.sim, one);
    gi_sim_close(f.sim, two);
    close_handle(&f, &listener);
    end(&f);
}

GT_TEST(bytes_come_before_the_end_of_the_stream)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    struct gori_handle handle;
    struct gori_op recv = {0};
    gori_native peer = make_pair(&f, &handle);
    GT_EQUAL(submit(&f, &recv, &handle, GORI_OP_RECV_MULTI), 0);
    turn(&f, 0);
    GT_EQUAL(f.count, 0);
    GT_EQUAL(peer_send(&f, peer, "hello"), 5);
    gi_sim_close(f.sim, peer);
    turn(&f, GORI_NEVER);
    GT_EQUAL(f.count, 2);
    GT_EQUAL_BYTES(f.log[0].text, f.log[0].text_size, "hello", 5);
    GT_CHECK(!f.log[0].is_last);
    GT_EQUAL(f.log[1].result, 0);
    GT_CHECK(f.log[1].is_last);
    close_handle(&f, &handle);
    end(&f);
}

GT_TEST(a_reset_comes_after_the_bytes_and_is_told_once)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    struct gori_handle handle;
    struct gori_op recv = {0};
    gori_native peer = make_pair(&f, &handle);
    GT_EQUAL(submit(&f, &recv, &handle, GORI_OP_RECV_MULTI), 0);
    GT_EQUAL(peer_send(&f, peer, "bye"), 3);
    gi_sim_set_reset_on_close(f.sim, peer);
    gi_sim_close(f.sim, peer);
    turn(&f, GORI_NEVER);
    GT_EQUAL(f.count, 2);
    GT_EQUAL(f.log[0].result, 3);
    GT_EQUAL(f.log[1].result, GORI_ECONNRESET);
    struct gori_slice piece = {.data = (const uint8_t *)"x", .size = 1};
    struct gori_op send = {.as.send = {.pieces = &piece, .count = 1}};
    GT_EQUAL(submit(&f, &send, &handle, GORI_OP_SEND), 0);
    turn(&f, GORI_NEVER);
    GT_EQUAL(f.log[0].result, GORI_EPIPE);
    close_handle(&f, &handle);
    end(&f);
}

GT_TEST(a_close_with_unread_bytes_is_a_reset)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    struct gori_handle handle;
    gori_native peer = make_pair(&f, &handle);
    GT_EQUAL(peer_send(&f, peer, "unread"), 6);
    close_handle(&f, &handle);
    GT_CHECK((gi_sim_ready(f.sim, peer) & GI_SIM_RESET) != 0);
    gi_sim_close(f.sim, peer);
    end(&f);
}

GT_TEST(bytes_sent_to_a_closed_peer_come_back_as_a_reset)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    struct gori_handle handle;
    gori_native peer = make_pair(&f, &handle);
    close_handle(&f, &handle);
    char byte;
    GT_EQUAL(gi_sim_recv(f.sim, peer, &byte, 1), 0);
    GT_EQUAL(peer_send(&f, peer, "x"), 1);
    GT_EQUAL(peer_send(&f, peer, "y"), GORI_EPIPE);
    gi_sim_close(f.sim, peer);
    end(&f);
}

GT_TEST(a_send_larger_than_all_buffers_arrives_whole_and_in_order)
{
    static struct fixture f;
    static uint8_t bytes[100000];
    static uint8_t got[100000];
    begin(&f, &(struct gi_sim_config){.send_bytes_max = 700, .recv_bytes_max = 300});
    struct gori_handle handle;
    gori_native peer = make_pair(&f, &handle);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 31 + i / 251);
    }
    struct gori_slice pieces[3] = {{bytes, 1}, {bytes + 1, 0}, {bytes + 1, sizeof(bytes) - 1}};
    struct gori_op send = {.as.send = {.pieces = pieces, .count = 3}};
    GT_EQUAL(submit(&f, &send, &handle, GORI_OP_SEND), 0);
    size_t size = 0;
    int64_t result = 0;
    while (size < sizeof(bytes)) {
        turn(&f, 0);
        result = f.count > 0 ? f.log[0].result : result;
        int64_t count = gi_sim_recv(f.sim, peer, got + size, sizeof(got) - size);
        GT_CHECK(count > 0);
        size += (size_t)count;
    }
    GT_EQUAL(result, sizeof(bytes));
    GT_EQUAL_BYTES(bytes, sizeof(bytes), got, sizeof(got));
    close_handle(&f, &handle);
    gi_sim_close(f.sim, peer);
    end(&f);
}

GT_TEST(half_closed_both_ways)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    struct gori_handle handle;
    struct gori_op recv = {0};
    gori_native peer = make_pair(&f, &handle);
    GT_EQUAL(gi_engine_sim.sockets->shutdown_send(f.engine, handle.native), 0);
    char byte;
    GT_EQUAL(gi_sim_recv(f.sim, peer, &byte, 1), 0);
    GT_EQUAL(peer_send(&f, peer, "still"), 5);
    GT_EQUAL(submit(&f, &recv, &handle, GORI_OP_RECV_MULTI), 0);
    turn(&f, GORI_NEVER);
    GT_EQUAL_BYTES(f.log[0].text, f.log[0].text_size, "still", 5);
    GT_EQUAL(gi_sim_shutdown_send(f.sim, peer), 0);
    turn(&f, GORI_NEVER);
    GT_EQUAL(f.log[0].result, 0);
    gi_sim_close(f.sim, peer);
    close_handle(&f, &handle);
    end(&f);
}

GT_TEST(connect_meets_a_listener_or_is_refused)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    const char *const targets[] = {"127.0.0.1:81", "[::1]:81", "unix:/tmp/a.sock", "127.0.0.1:9",
                                   "unix:/tmp/nowhere"};
    const int results[] = {0, 0, 0, GORI_ECONNREFUSED, GORI_ENOTFOUND};
    gori_native listeners[] = {peer_listen(&f, "*:81"), peer_listen(&f, "unix:/tmp/a.sock")};
    for (size_t i = 0; i < 5; i++) {
        struct gori_addr addr = addr_of(targets[i]);
        gori_native native;
        struct gori_handle handle;
        struct gori_op connect = {.as.connect.addr = &addr};
        enum gori_addr_family family = gori_addr_family(&addr);
        GT_EQUAL(gi_engine_sim.sockets->open(f.engine, family, &native), 0);
        attach(&f, &handle, native);
        GT_EQUAL(submit(&f, &connect, &handle, GORI_OP_CONNECT), 0);
        turn(&f, GORI_NEVER);
        GT_EQUAL(f.count, 1);
        GT_EQUAL(f.log[0].result, results[i]);
        close_handle(&f, &handle);
    }
    gi_sim_close(f.sim, listeners[0]);
    gi_sim_close(f.sim, listeners[1]);
    end(&f);
}

GT_TEST(a_connect_to_nowhere_waits_until_it_is_cancelled)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    struct gori_addr addr = addr_of("192.0.2.1:80");
    gori_native native;
    struct gori_handle handle;
    struct gori_op connect = {.as.connect.addr = &addr};
    GT_EQUAL(gi_engine_sim.sockets->open(f.engine, GORI_ADDR_IPV4, &native), 0);
    attach(&f, &handle, native);
    GT_EQUAL(submit(&f, &connect, &handle, GORI_OP_CONNECT), 0);
    turn(&f, 60 * GORI_SECONDS);
    GT_EQUAL(f.count, 0);
    gi_engine_sim.cancel(f.engine, &connect);
    turn(&f, GORI_NEVER);
    GT_EQUAL(f.log[0].result, GORI_ECANCELED);
    close_handle(&f, &handle);
    end(&f);
}

GT_TEST(a_taken_address_is_refused_and_shared_ports_are_shared)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    struct gori_addr addr = addr_of("127.0.0.1:80");
    struct gi_listen_options options = {.backlog = 1, .reuse_port = true};
    gori_native one, two, three;
    GT_EQUAL(gi_sim_listen(f.sim, NULL, &addr, &options, &one), 0);
    GT_EQUAL(gi_sim_listen(f.sim, NULL, &addr, &options, &two), 0);
    options.reuse_port = false;
    GT_EQUAL(gi_sim_listen(f.sim, NULL, &addr, &options, &three), GORI_EADDRINUSE);
    addr = addr_of("0.0.0.0:80");
    GT_EQUAL(gi_sim_listen(f.sim, NULL, &addr, &options, &three), GORI_EADDRINUSE);
    addr = addr_of("192.0.2.1:80");
    GT_EQUAL(gi_sim_listen(f.sim, NULL, &addr, &options, &three), GORI_EADDRNOTAVAIL);
    addr = addr_of("127.0.0.1:0");
    GT_EQUAL(gi_sim_listen(f.sim, NULL, &addr, &options, &three), 0);
    GT_EQUAL(gi_sim_addr(f.sim, three, GI_SOCKET_LOCAL, &addr), 0);
    GT_CHECK(gori_addr_port(&addr) != 0);
    gi_sim_close(f.sim, one);
    gi_sim_close(f.sim, two);
    gi_sim_close(f.sim, three);
    end(&f);
}

GT_TEST(close_cancels_in_order_and_reuses_the_number_only_afterwards)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    struct gori_handle handle;
    struct gori_op recv = {0};
    gori_native peer = make_pair(&f, &handle);
    GT_EQUAL(submit(&f, &recv, &handle, GORI_OP_RECV_MULTI), 0);
    turn(&f, 0);
    gi_engine_sim.close(f.engine, &handle);
    gori_native other;
    GT_EQUAL(gi_sim_open(f.sim, NULL, GORI_ADDR_IPV4, &other), 0);
    GT_CHECK(other != handle.native);
    turn(&f, GORI_NEVER);
    GT_EQUAL(f.count, 2);
    GT_CHECK(f.log[0].op == &recv && f.log[0].result == GORI_ECANCELED);
    GT_CHECK(f.log[1].closed == &handle);
    char byte;
    GT_EQUAL(gi_sim_recv(f.sim, peer, &byte, 1), 0);
    gori_native again;
    GT_EQUAL(gi_sim_open(f.sim, NULL, GORI_ADDR_IPV4, &again), 0);
    GT_EQUAL(again, handle.native);
    gi_sim_close(f.sim, again);
    gi_sim_close(f.sim, other);
    gi_sim_close(f.sim, peer);
    end(&f);
}

GT_TEST(a_receive_out_of_buffers_is_parked_and_resumed)
{
    static struct fixture f;
    static char bytes[10 * 512];
    begin(&f, &(struct gi_sim_config){0});
    struct gori_handle handle;
    struct gori_op recv = {0};
    gori_native peer = make_pair(&f, &handle);
    GT_EQUAL(submit(&f, &recv, &handle, GORI_OP_RECV_MULTI), 0);
    GT_EQUAL(gi_sim_send(f.sim, peer, bytes, sizeof(bytes)), sizeof(bytes));
    f.hold = true;
    turn(&f, 0);
    GT_EQUAL(f.count, 8);
    turn(&f, GORI_SECONDS); /* it waits; it does not spin */
    GT_EQUAL(f.count, 0);
    for (size_t i = 0; i < 8; i++) {
        gori_buffer_release(f.held[i]);
    }
    f.hold = false;
    turn(&f, 0);
    GT_EQUAL(f.count, 2);
    gi_sim_close(f.sim, peer);
    close_handle(&f, &handle);
    end(&f);
}

GT_TEST(wake_ends_a_wait)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    gori_time before = gi_sim_now(f.sim);
    gi_engine_sim.wake(f.engine);
    turn(&f, GORI_NEVER);
    GT_EQUAL(gi_sim_now(f.sim), before);
    turn(&f, GORI_SECONDS);
    GT_EQUAL(gi_sim_now(f.sim), before + GORI_SECONDS);
    end(&f);
}

/* Limits and faults. */

GT_TEST(a_full_completion_queue_loses_nothing)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){.completions_max = 2});
    struct gori_handle listener;
    struct gori_op accept = {0};
    gori_native peers[9];
    listen_on(&f, "127.0.0.1:80", &listener);
    GT_EQUAL(submit(&f, &accept, &listener, GORI_OP_ACCEPT), 0);
    for (size_t i = 0; i < 9; i++) {
        peers[i] = peer_connect(&f, "127.0.0.1:80");
    }
    size_t accepted = 0;
    while (accepted < 9) {
        turn(&f, GORI_NEVER);
        for (size_t i = 0; i < f.count; i++) {
            gi_engine_sim.sockets->close(f.engine, f.log[i].accepted);
        }
        accepted += f.count;
    }
    GT_EQUAL(accepted, 9);
    struct gi_sim_stats stats;
    gi_sim_stats(f.sim, &stats);
    GT_CHECK(stats.overflows > 0);
    for (size_t i = 0; i < 9; i++) {
        gi_sim_close(f.sim, peers[i]);
    }
    close_handle(&f, &listener);
    end(&f);
}

GT_TEST(out_of_descriptors_ends_the_accept_and_keeps_the_connection)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){.descriptors_max = 1});
    struct gori_handle listener;
    struct gori_op accept = {0};
    listen_on(&f, "127.0.0.1:80", &listener);
    GT_EQUAL(submit(&f, &accept, &listener, GORI_OP_ACCEPT), 0);
    gori_native peer = peer_connect(&f, "127.0.0.1:80");
    turn(&f, GORI_NEVER);
    GT_EQUAL(f.count, 1);
    GT_EQUAL(f.log[0].result, GORI_EMFILE);
    GT_CHECK(f.log[0].is_last);
    gi_sim_close(f.sim, peer);
    close_handle(&f, &listener);
    end(&f);
}

GT_TEST(late_completions_of_a_reused_slot_are_dropped)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){.faults = {.stale = 1000}});
    struct gori_handle handle;
    gori_native peer = make_pair(&f, &handle);
    char byte;
    struct gori_op recv = {.as.recv = {&byte, 1}};
    for (int i = 0; i < 5; i++) {
        GT_EQUAL(submit(&f, &recv, &handle, GORI_OP_RECV), 0);
        GT_EQUAL(peer_send(&f, peer, "x"), 1);
        turn(&f, GORI_NEVER);
        GT_EQUAL(f.count, 1);
    }
    struct gi_engine_stats stats;
    gi_engine_sim.stats(f.engine, &stats);
    GT_CHECK(stats.stale_completions >= 4);
    gi_sim_close(f.sim, peer);
    close_handle(&f, &handle);
    end(&f);
}

GT_TEST(a_lost_cancel_delivers_what_was_done)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){.faults = {.cancel_lost = 1000}});
    struct gori_handle handle;
    gori_native peer = make_pair(&f, &handle);
    char bytes[8];
    struct gori_op recv = {.as.recv = {bytes, sizeof(bytes)}};
    GT_EQUAL(submit(&f, &recv, &handle, GORI_OP_RECV), 0);
    turn(&f, 0);
    gi_engine_sim.cancel(f.engine, &recv);
    GT_EQUAL(peer_send(&f, peer, "late"), 4);
    turn(&f, GORI_NEVER);
    GT_EQUAL(f.count, 1);
    GT_EQUAL(f.log[0].result, 4);
    gi_sim_close(f.sim, peer);
    close_handle(&f, &handle);
    end(&f);
}

GT_TEST(the_nth_submit_fails)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){.submit_fails_at = 2});
    struct gori_handle handle;
    struct gori_op recv = {0};
    struct gori_slice piece = {.data = (const uint8_t *)"x", .size = 1};
    struct gori_op send = {.as.send = {.pieces = &piece, .count = 1}};
    gori_native peer = make_pair(&f, &handle);
    GT_EQUAL(submit(&f, &recv, &handle, GORI_OP_RECV_MULTI), 0);
    GT_EQUAL(submit(&f, &send, &handle, GORI_OP_SEND), GORI_ENOMEM);
    GT_EQUAL(submit(&f, &send, &handle, GORI_OP_SEND), 0);
    gi_sim_close(f.sim, peer);
    close_handle(&f, &handle);
    end(&f);
}

/* Violations. */

static void wait_for_ever(void)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    turn(&f, GORI_NEVER);
}

static void leak_a_socket(void)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    gori_native native;
    GT_EQUAL(gi_engine_sim.sockets->open(f.engine, GORI_ADDR_IPV4, &native), 0);
    end(&f);
}

static void receive_twice(void)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    struct gori_handle handle;
    struct gori_op ops[2] = {{0}};
    (void)make_pair(&f, &handle);
    (void)submit(&f, &ops[0], &handle, GORI_OP_RECV_MULTI);
    (void)submit(&f, &ops[1], &handle, GORI_OP_RECV_MULTI);
}

GT_TEST(violations_stop_the_program)
{
    GT_DIES(wait_for_ever());
    GT_DIES(leak_a_socket());
    GT_DIES(receive_twice());
}

/* Several loops, and the same world twice. */

struct counting_actor {
    struct gi_sim_actor actor;
    struct fixture *f;
    struct gi_engine *engine;
    unsigned runs;
};

static void run_counting(struct gi_sim_actor *actor)
{
    struct counting_actor *counting = gori_container_of(actor, struct counting_actor, actor);
    struct gi_completion completion;
    counting->runs++;
    GT_EQUAL(gi_engine_sim.turn(counting->engine, GORI_NEVER), 0);
    GT_CHECK(!gi_engine_sim.next(counting->engine, &completion));
}

GT_TEST(stepping_runs_those_who_can_and_ends_when_none_can)
{
    static struct fixture f;
    begin(&f, &(struct gi_sim_config){0});
    struct gi_engine_config config = {
        .allocator = &f.memory.allocator, .buffers = &f.buffers, .ops_max = 8, .simulation = f.sim};
    struct counting_actor actors[2] = {{.engine = f.engine}};
    GT_EQUAL(gi_engine_sim.create(&config, &actors[1].engine), 0);
    for (size_t i = 0; i < 2; i++) {
        actors[i].actor.run = run_counting;
        gi_sim_add(f.sim, &actors[i].actor);
    }
    while (gi_sim_step(f.sim)) {
    }
    GT_EQUAL(actors[0].runs + actors[1].runs, 2);
    gi_engine_sim.wake(actors[1].engine);
    GT_CHECK(gi_sim_step(f.sim));
    GT_EQUAL(actors[1].runs, 2);
    gi_sim_remove(f.sim, &actors[0].actor);
    gi_sim_remove(f.sim, &actors[1].actor);
    gi_engine_sim.destroy(actors[1].engine);
    end(&f);
}

/* Sends both ways over a bad network until all has arrived; answers the world's hash. */
static uint64_t run_world(uint64_t seed)
{
    static struct fixture f;
    static uint8_t bytes[5000];
    begin(&f, &(struct gi_sim_config){.seed = seed,
                                      .send_bytes_max = 400,
                                      .recv_bytes_max = 400,
                                      .delay_max = GORI_MILLISECONDS,
                                      .faults = {.short_send = 300,
                                                 .short_recv = 300,
                                                 .segment = 300,
                                                 .late = 200,
                                                 .late_submit = 200,
                                                 .spurious = 100,
                                                 .starve = 100,
                                                 .shuffle = 500}});
    struct gori_handle handle;
    struct gori_handle client;
    struct gori_op recv = {0};
    struct gori_slice piece = {.data = bytes, .size = sizeof(bytes)};
    struct gori_op send = {.as.send = {.pieces = &piece, .count = 1}};
    struct gori_op connect = {0};
    struct gori_addr addr = addr_of("127.0.0.1:7");
    gori_native listener = peer_listen(&f, "127.0.0.1:7");
    gori_native native;
    GT_EQUAL(gi_engine_sim.sockets->open(f.engine, GORI_ADDR_IPV4, &native), 0);
    attach(&f, &client, native);
    connect.as.connect.addr = &addr;
    GT_EQUAL(submit(&f, &connect, &client, GORI_OP_CONNECT), 0);
    for (f.count = 0; f.count == 0;) {
        turn(&f, GORI_NEVER);
    }
    GT_EQUAL(f.log[0].result, 0);
    GT_EQUAL(gi_sim_accept(f.sim, listener, &native), 0);
    handle.native = native;
    GT_EQUAL(submit(&f, &send, &client, GORI_OP_SEND), 0);
    GT_EQUAL(submit(&f, &recv, &client, GORI_OP_RECV_MULTI), 0);
    size_t got = 0;
    while (got < sizeof(bytes)) {
        turn(&f, GORI_MILLISECONDS);
        int64_t count = gi_sim_recv(f.sim, handle.native, bytes, 100);
        got += count > 0 ? (size_t)count : 0;
    }
    gi_sim_close(f.sim, handle.native);
    gi_sim_close(f.sim, listener);
    close_handle(&f, &client);
    uint64_t hash = gi_sim_hash(f.sim);
    end(&f);
    return hash;
}

GT_TEST(one_seed_is_one_world)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        GT_EQUAL(run_world(seed), run_world(seed));
    }
    GT_CHECK(run_world(1) != run_world(2));
}

GT_MAIN()
