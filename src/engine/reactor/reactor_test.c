/* SPDX-License-Identifier: MIT */
/*
 * The reactor with real sockets, case by case, once for each poller of Linux; built another time
 * for kqueue, on the double of tests/double/kqueue.
 */
#include <fcntl.h>
#include <gori/error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/reactor_bed.h"

static int listen_on_loopback(struct gori_addr *ret_addr)
{
    int fd;
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", ret_addr), 0);
    GT_EQUAL(gi_os_listen(ret_addr, 128, GI_OS_BLOCKING, &fd), 0);
    GT_EQUAL(gi_os_local_addr(fd, ret_addr), 0);
    return fd;
}

static int connect_to(const struct gori_addr *addr)
{
    int fd;
    GT_EQUAL(gi_os_socket(gori_addr_family(addr), GI_OS_BLOCKING, &fd), 0);
    GT_EQUAL(gi_os_connect(fd, addr), 0);
    return fd;
}

/* An idle multishot receive holds no buffer; what comes is delivered, then the end, last. */
REACTOR_TEST(receives_until_the_end)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    int fds[2];
    bed_init(&bed, impl, 4);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    submit(&bed, &op, &handle, GORI_OP_RECV_MULTI);
    turn(&bed, 0);
    turn(&bed, 0);
    GT_EQUAL(bed.count, 0);
    GT_EQUAL(bed.buffers.made, 0);
    put(fds[1], "hello");
    turn_until(&bed, 1);
    GT_EQUAL(bed.records[0].result, 5);
    GT_CHECK(!bed.records[0].is_last);
    GT_EQUAL_BYTES(bed.records[0].buffer->data, 5, "hello", 5);
    gori_buffer_release(bed.records[0].buffer);
    put(fds[1], "bye");
    close(fds[1]);
    turn_until(&bed, 3);
    GT_EQUAL(bed.records[1].result, 3);
    gori_buffer_release(bed.records[1].buffer);
    GT_EQUAL(bed.records[2].result, 0);
    GT_CHECK(bed.records[2].is_last);
    close_and_wait(&bed, &handle);
    bed_fini(&bed);
}

/* A message costs one wait and two completions: the second turn does not ask the kernel. */
REACTOR_TEST(echo_waits_once_for_a_message)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op receive = {0};
    struct gori_op answer = {0};
    int fds[2];
    bed_init(&bed, impl, 4);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    submit(&bed, &receive, &handle, GORI_OP_RECV_MULTI);
    turn(&bed, 0);
    uint64_t allocations = 0;
    for (int i = 0; i < 10; i++) {
        uint64_t before = waits(&bed);
        bed.count = 0;
        put(fds[1], "ping");
        turn_until(&bed, 1);
        struct gori_buffer *buffer = bed.records[0].buffer;
        struct gori_slice piece = slice(buffer->data, 4);
        submit_send(&bed, &answer, &handle, &piece, 1);
        turn_until(&bed, 2);
        GT_CHECK(bed.records[1].op == &answer);
        GT_EQUAL(bed.records[1].result, 4);
        gori_buffer_release(buffer);
        GT_EQUAL(waits(&bed), before + 1);
        if (i == 0) {
            allocations = gi_fault_alloc_count(&bed.fault);
        }
    }
    GT_EQUAL(gi_fault_alloc_count(&bed.fault), allocations);
    close(fds[1]);
    close_and_wait(&bed, &handle);
    bed_fini(&bed);
}

/* An edge comes once: what a budget or a full buffer left behind is fetched without another. */
REACTOR_TEST(more_than_a_turn_may_read_is_not_lost)
{
    enum { BYTES = 40 * BUFFER_BYTES + 1 };
    static uint8_t sent[BYTES];
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    int fds[2];
    bed_init(&bed, impl, 4);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    submit(&bed, &op, &handle, GORI_OP_RECV_MULTI);
    for (size_t i = 0; i < BYTES; i++) {
        sent[i] = (uint8_t)(i * 7);
    }
    GT_EQUAL(send(fds[1], sent, BYTES, 0), BYTES);
    size_t got = 0;
    while (got < BYTES) {
        bed.count = 0;
        struct gi_completion completion;
        GT_EQUAL(impl->turn(bed.engine, GORI_NEVER), 0);
        uint32_t steps = 0;
        for (; impl->next(bed.engine, &completion); steps++) {
            size_t size = (size_t)completion.what.result;
            GT_EQUAL_BYTES(completion.what.data.data, size, sent + got, size);
            got += size;
            gori_buffer_release(completion.what.buffer);
        }
        GT_CHECK(steps <= GI_REACTOR_BUDGET);
    }
    close(fds[1]);
    close_and_wait(&bed, &handle);
    bed_fini(&bed);
}

/* One that always has data leaves the others their turn within one round. */
REACTOR_TEST(busy_handle_does_not_keep_out_others)
{
    static uint8_t flood[30 * BUFFER_BYTES];
    struct bed bed;
    struct gori_handle handles[2];
    struct gori_op ops[2] = {0};
    int busy[2];
    int quiet[2];
    bed_init(&bed, impl, 4);
    make_pair(busy);
    make_pair(quiet);
    attach(&bed, busy[0], &handles[0]);
    attach(&bed, quiet[0], &handles[1]);
    submit(&bed, &ops[0], &handles[0], GORI_OP_RECV_MULTI);
    submit(&bed, &ops[1], &handles[1], GORI_OP_RECV_MULTI);
    GT_EQUAL(send(busy[1], flood, sizeof(flood), 0), sizeof(flood));
    put(quiet[1], "x");
    GT_EQUAL(impl->turn(bed.engine, GORI_NEVER), 0);
    struct gi_completion completion;
    bool seen = false;
    for (int i = 0; i < 2; i++) {
        GT_CHECK(impl->next(bed.engine, &completion));
        seen = seen || completion.op == &ops[1];
        gori_buffer_release(completion.what.buffer);
    }
    GT_CHECK(seen);
    close_and_wait(&bed, &handles[0]);
    close_and_wait(&bed, &handles[1]);
    close(busy[1]);
    close(quiet[1]);
    bed_fini(&bed);
}

/* A receive into the caller's memory: waits, then takes what is there; the end is 0. */
REACTOR_TEST(receives_once_into_memory)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    char memory[4];
    int fds[2];
    bed_init(&bed, impl, 1);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    op.as.recv.data = memory;
    op.as.recv.size = sizeof(memory);
    submit(&bed, &op, &handle, GORI_OP_RECV);
    turn(&bed, 0);
    GT_EQUAL(bed.count, 0);
    put(fds[1], "abcdef");
    close(fds[1]);
    int64_t const expected[] = {4, 2, 0};
    for (uint32_t i = 0; i < 3; i++) {
        turn_until(&bed, i + 1);
        GT_EQUAL(bed.records[i].result, expected[i]);
        GT_CHECK(bed.records[i].is_last);
        if (i < 2) {
            op.as.recv.data = memory;
            op.as.recv.size = sizeof(memory);
            submit(&bed, &op, &handle, GORI_OP_RECV);
        }
    }
    close_and_wait(&bed, &handle);
    bed_fini(&bed);
}

/* Out of buffers a receive waits without a word and without asking the kernel again and again; the
   one that has waited longest gets the first buffer that comes back. */
REACTOR_TEST(exhaustion_parks_in_order_and_does_not_spin)
{
    struct bed bed;
    struct gori_handle handles[3];
    struct gori_op ops[3] = {0};
    int peers[3];
    bed_init(&bed, impl, 1);
    for (int i = 0; i < 3; i++) {
        int fds[2];
        make_pair(fds);
        peers[i] = fds[1];
        attach(&bed, fds[0], &handles[i]);
        submit(&bed, &ops[i], &handles[i], GORI_OP_RECV_MULTI);
        put(peers[i], "x");
        turn(&bed, 0);
        turn(&bed, 0);
    }
    GT_EQUAL(bed.count, 1);
    GT_CHECK(bed.records[0].op == &ops[0]);
    uint64_t before = waits(&bed);
    turn(&bed, gi_os_now() + 3 * GORI_MILLISECONDS);
    GT_EQUAL(waits(&bed), before + 1);
    GT_EQUAL(bed.count, 1);
    for (uint32_t i = 0; i < 2; i++) {
        gori_buffer_release(bed.records[i].buffer);
        turn_until(&bed, i + 2);
        GT_CHECK(bed.records[i + 1].op == &ops[i + 1]);
        turn(&bed, 0);
        turn(&bed, 0);
    }
    gori_buffer_release(bed.records[2].buffer);
    for (int i = 0; i < 3; i++) {
        close_and_wait(&bed, &handles[i]);
        close(peers[i]);
    }
    bed_fini(&bed);
}

/* Sending goes on while the receive of the same handle waits for a buffer. */
REACTOR_TEST(starved_receive_does_not_hold_up_a_send)
{
    static uint8_t data[1 << 20];
    static uint8_t drain[1 << 20];
    struct bed bed;
    struct gori_handle handle;
    struct gori_op receive = {0};
    struct gori_op answer = {0};
    struct gori_slice piece = slice(data, sizeof(data));
    int fds[2];
    bed_init(&bed, impl, 1);
    struct gori_buffer *only = gi_buffers_lend(&bed.buffers);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    submit(&bed, &receive, &handle, GORI_OP_RECV_MULTI);
    submit_send(&bed, &answer, &handle, &piece, 1);
    put(fds[1], "x");
    while (bed.count == 0) {
        turn(&bed, gi_os_now() + GORI_MILLISECONDS);
        (void)recv(fds[1], drain, sizeof(drain), MSG_DONTWAIT);
    }
    GT_CHECK(bed.records[0].op == &answer);
    GT_EQUAL(bed.records[0].result, sizeof(data));
    gi_buffers_unlend(&bed.buffers, only);
    turn_until(&bed, 2);
    GT_CHECK(bed.records[1].op == &receive);
    gori_buffer_release(bed.records[1].buffer);
    close_and_wait(&bed, &handle);
    close(fds[1]);
    bed_fini(&bed);
}

/* No memory for a first buffer: asked again by time, not in a loop. */
REACTOR_TEST(receive_without_memory_is_retried)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    int fds[2];
    bed_init(&bed, impl, 4);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    submit(&bed, &op, &handle, GORI_OP_RECV_MULTI);
    put(fds[1], "x");
    gi_fault_alloc_fail_from(&bed.fault, 1);
    uint64_t before = waits(&bed);
    for (int i = 0; i < 8; i++) {
        turn(&bed, gi_os_now() + 4 * GORI_MILLISECONDS);
    }
    GT_EQUAL(bed.count, 0);
    GT_CHECK(waits(&bed) - before <= 8);
    gi_fault_alloc_fail_never(&bed.fault);
    turn_until(&bed, 1);
    GT_EQUAL(bed.records[0].result, 1);
    gori_buffer_release(bed.records[0].buffer);
    close_and_wait(&bed, &handle);
    close(fds[1]);
    bed_fini(&bed);
}

/* Small socket buffers cut a gathered send wherever they like; the bytes arrive whole, in order. */
static void send_cut_at(struct bed *bed, size_t first, size_t total)
{
    static uint8_t data[300000];
    static uint8_t got[sizeof(data)];
    struct gori_handle handle;
    struct gori_op op = {0};
    int fds[2];
    make_pair(fds);
    int small = 1;
    GT_EQUAL(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    attach(bed, fds[0], &handle);
    for (size_t i = 0; i < total; i++) {
        data[i] = (uint8_t)(i ^ i >> 8);
    }
    struct gori_slice pieces[] = {slice(data, first), slice(data, 0),
                                  slice(data + first, total - first), slice(data, 0)};
    submit_send(bed, &op, &handle, pieces, 4);
    size_t size = 0;
    bed->count = 0;
    while (size < total) {
        turn(bed, 0);
        ssize_t result = recv(fds[1], got + size, 1 + size % 5000, MSG_DONTWAIT);
        size += result > 0 ? (size_t)result : 0;
    }
    turn_until(bed, 1);
    GT_EQUAL(bed->records[0].result, total);
    GT_EQUAL_BYTES(got, total, data, total);
    close_and_wait(bed, &handle);
    close(fds[1]);
}

REACTOR_TEST(short_sends_continue_in_order)
{
    struct bed bed;
    bed_init(&bed, impl, 1);
    static size_t const firsts[] = {0,    1,    2,    511,  512,  513, 2303,
                                    2304, 2305, 4607, 4608, 4609, 9999};
    for (size_t i = 0; i < GI_ARRAY_COUNT(firsts); i++) {
        send_cut_at(&bed, firsts[i], 10000);
    }
    send_cut_at(&bed, 150000, 300000);
    bed_fini(&bed);
}

/* A send of nothing is complete with nothing. */
REACTOR_TEST(empty_send_completes)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    struct gori_slice pieces[] = {slice("", 0), slice("", 0)};
    int fds[2];
    bed_init(&bed, impl, 1);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    submit_send(&bed, &op, &handle, pieces, 2);
    turn_until(&bed, 1);
    GT_EQUAL(bed.records[0].result, 0);
    close_and_wait(&bed, &handle);
    close(fds[1]);
    bed_fini(&bed);
}

/* The peer is gone: an error value, not a signal. */
REACTOR_TEST(send_to_nobody_is_an_error)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    struct gori_slice piece = slice("x", 1);
    int fds[2];
    bed_init(&bed, impl, 1);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    close(fds[1]);
    submit_send(&bed, &op, &handle, &piece, 1);
    turn_until(&bed, 1);
    GT_EQUAL(bed.records[0].result, GORI_EPIPE);
    close_and_wait(&bed, &handle);
    bed_fini(&bed);
}

static int make_file(size_t size)
{
    char name[] = "/tmp/gori-reactor-XXXXXX";
    int fd = mkstemp(name);
    GT_CHECK(fd >= 0);
    unlink(name);
    for (size_t i = 0; i < size; i += 1024) {
        uint8_t block[1024];
        memset(block, (int)(i >> 10), sizeof(block));
        GT_EQUAL(write(fd, block, sizeof(block)), sizeof(block));
    }
    return fd;
}

static void submit_file(struct bed *bed, struct gori_op *op, struct gori_handle *handle, int file,
                        uint64_t offset, uint64_t size)
{
    memset(&op->as, 0, sizeof(op->as));
    op->as.send_file.file = file;
    op->as.send_file.offset = offset;
    op->as.send_file.size = size;
    submit(bed, op, handle, GORI_OP_SEND_FILE);
}

/* A file larger than one step and than any socket buffer arrives whole; one too short says so. */
REACTOR_TEST(sends_files)
{
    enum { SIZE = 3 << 20 };
    static uint8_t got[64 << 10];
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    int fds[2];
    bed_init(&bed, impl, 1);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    int file = make_file(SIZE);
    submit_file(&bed, &op, &handle, file, 512, SIZE - 512);
    size_t size = 0;
    while (size < SIZE - 512) {
        turn(&bed, 0);
        ssize_t result = recv(fds[1], got, sizeof(got), MSG_DONTWAIT);
        for (ssize_t i = 0; i < result; i++) {
            GT_EQUAL(got[i], (uint8_t)((512 + size + (size_t)i) >> 10));
        }
        size += result > 0 ? (size_t)result : 0;
    }
    turn_until(&bed, 1);
    GT_EQUAL(bed.records[0].result, SIZE - 512);
    submit_file(&bed, &op, &handle, file, SIZE - 10, 11);
    turn_until(&bed, 2);
    GT_EQUAL(bed.records[1].result, GORI_ETRUNCATED);
    close_and_wait(&bed, &handle);
    close(fds[1]);
    close(file);
    bed_fini(&bed);
}

/* All that is queued is accepted; then the op waits. */
REACTOR_TEST(accepts_all_that_queue)
{
    enum { COUNT = 40 };
    struct bed bed;
    struct gori_handle listener;
    struct gori_op op = {0};
    struct gori_addr addr;
    int clients[COUNT];
    bed_init(&bed, impl, 1);
    attach(&bed, listen_on_loopback(&addr), &listener);
    submit(&bed, &op, &listener, GORI_OP_ACCEPT);
    turn(&bed, 0);
    for (int i = 0; i < COUNT; i++) {
        clients[i] = connect_to(&addr);
    }
    turn_until(&bed, COUNT);
    turn(&bed, 0);
    GT_EQUAL(bed.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        GT_EQUAL(bed.records[i].result, 0);
        GT_CHECK(!bed.records[i].is_last);
        GT_CHECK(bed.records[i].accepted >= 0);
        gi_os_close((int)bed.records[i].accepted);
        close(clients[i]);
    }
    close_and_wait(&bed, &listener);
    bed_fini(&bed);
}

/* Without descriptors an accept ends with that error, once; submitted again it goes on. */
REACTOR_TEST(accept_without_descriptors_ends)
{
    struct bed bed;
    struct gori_handle listener;
    struct gori_op op = {0};
    struct gori_addr addr;
    bed_init(&bed, impl, 1);
    attach(&bed, listen_on_loopback(&addr), &listener);
    submit(&bed, &op, &listener, GORI_OP_ACCEPT);
    int client = connect_to(&addr);
    struct rlimit before;
    GT_EQUAL(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = (rlim_t)client + 1, .rlim_max = before.rlim_max};
    GT_EQUAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    turn_until(&bed, 1);
    GT_EQUAL(bed.records[0].result, GORI_EMFILE);
    GT_CHECK(bed.records[0].is_last);
    uint64_t asked = waits(&bed);
    turn(&bed, gi_os_now() + 3 * GORI_MILLISECONDS);
    GT_EQUAL(bed.count, 1);
    GT_CHECK(waits(&bed) - asked <= 1);
    GT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
    submit(&bed, &op, &listener, GORI_OP_ACCEPT);
    turn_until(&bed, 2);
    GT_EQUAL(bed.records[1].result, 0);
    gi_os_close((int)bed.records[1].accepted);
    close_and_wait(&bed, &listener);
    close(client);
    bed_fini(&bed);
}

static void submit_connect(struct bed *bed, struct gori_op *op, struct gori_handle *handle,
                           const struct gori_addr *addr)
{
    int fd;
    GT_EQUAL(gi_os_socket(gori_addr_family(addr), GI_OS_BLOCKING, &fd), 0);
    attach(bed, fd, handle);
    op->as.connect.addr = addr;
    submit(bed, op, handle, GORI_OP_CONNECT);
}

/* Connecting, also after a turn in which the poller saw the socket unconnected. */
REACTOR_TEST(connects_and_is_refused)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    struct gori_op receive = {0};
    struct gori_addr addr;
    int fd;
    bed_init(&bed, impl, 1);
    int listener = listen_on_loopback(&addr);
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &fd), 0);
    attach(&bed, fd, &handle);
    turn(&bed, 0);
    op.as.connect.addr = &addr;
    submit(&bed, &op, &handle, GORI_OP_CONNECT);
    turn_until(&bed, 1);
    GT_EQUAL(bed.records[0].result, 0);
    GT_EQUAL(handle.ready & GI_POLL_DRAIN, 0);
    submit(&bed, &receive, &handle, GORI_OP_RECV_MULTI);
    int peer = accept(listener, NULL, NULL);
    put(peer, "x");
    turn_until(&bed, 2);
    GT_EQUAL(bed.records[1].result, 1);
    gori_buffer_release(bed.records[1].buffer);
    close_and_wait(&bed, &handle);
    close(peer);
    close(listener);
    submit_connect(&bed, &op, &handle, &addr);
    turn_until(&bed, 1);
    GT_EQUAL(bed.records[0].result, GORI_ECONNREFUSED);
    close_and_wait(&bed, &handle);
    bed_fini(&bed);
}

/* A UNIX peer whose queue is full: no event tells when it has room, so it is asked again by time.
 */
REACTOR_TEST(connect_to_a_full_queue_waits)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    struct gori_addr addr;
    int listener;
    bed_init(&bed, impl, 1);
    char name[64];
    snprintf(name, sizeof(name), "unix:@gori-reactor-%d", (int)getpid());
    GT_EQUAL(gori_addr_parse(name, &addr), 0);
    GT_EQUAL(gi_os_listen(&addr, 0, 0, &listener), 0);
    int first = connect_to(&addr);
    submit_connect(&bed, &op, &handle, &addr);
    uint64_t before = waits(&bed);
    for (int i = 0; i < 6; i++) {
        turn(&bed, gi_os_now() + GORI_MILLISECONDS);
    }
    GT_EQUAL(bed.count, 0);
    GT_CHECK(waits(&bed) - before <= 6);
    int peers[2];
    GT_EQUAL(gi_os_accept(listener, 0, &peers[0]), 0);
    turn_until(&bed, 1);
    GT_EQUAL(bed.records[0].result, 0);
    GT_EQUAL(gi_os_accept(listener, 0, &peers[1]), 0);
    close_and_wait(&bed, &handle);
    close(first);
    close(peers[0]);
    close(peers[1]);
    close(listener);
    bed_fini(&bed);
}

/* Cancel ends a waiting op; one whose result is decided keeps it. */
REACTOR_TEST(cancel_only_asks)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op receive = {0};
    struct gori_op answer = {0};
    struct gori_slice piece = slice("x", 1);
    int fds[2];
    bed_init(&bed, impl, 1);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    submit(&bed, &receive, &handle, GORI_OP_RECV_MULTI);
    submit_send(&bed, &answer, &handle, &piece, 1);
    impl->cancel(bed.engine, &answer);
    impl->cancel(bed.engine, &receive);
    put(fds[1], "kept");
    turn_until(&bed, 2);
    GT_EQUAL(bed.records[0].result, 1);
    GT_EQUAL(bed.records[1].result, GORI_ECANCELED);
    turn(&bed, 0);
    GT_EQUAL(bed.count, 2);
    submit(&bed, &receive, &handle, GORI_OP_RECV_MULTI);
    turn_until(&bed, 3);
    GT_EQUAL(bed.records[2].result, 4);
    gori_buffer_release(bed.records[2].buffer);
    close_and_wait(&bed, &handle);
    close(fds[1]);
    bed_fini(&bed);
}

/* Close: all ops complete, then the descriptor goes, then the handle is told, once; the peer sees
   the end. */
REACTOR_TEST(close_comes_after_all_completions)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op receive = {0};
    struct gori_op answer = {0};
    struct gori_slice piece = slice("x", 1);
    char got[2];
    int fds[2];
    bed_init(&bed, impl, 1);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    submit(&bed, &receive, &handle, GORI_OP_RECV_MULTI);
    submit_send(&bed, &answer, &handle, &piece, 1);
    close_now(&bed, &handle);
    GT_EQUAL(bed.count, 0);
    GT_CHECK(fcntl(fds[0], F_GETFD) >= 0);
    turn_until(&bed, 3);
    GT_EQUAL(bed.records[0].result, 1);
    GT_EQUAL(bed.records[1].result, GORI_ECANCELED);
    GT_CHECK(bed.records[2].closed == &handle);
    GT_EQUAL(recv(fds[1], got, 2, 0), 1);
    GT_EQUAL(recv(fds[1], got, 2, 0), 0);
    turn(&bed, 0);
    GT_EQUAL(bed.count, 3);
    close(fds[1]);
    bed_fini(&bed);
}

/* The same descriptor number in the same turn: what was ready of the old one is not the new one's.
 */
REACTOR_TEST(reused_descriptor_gets_no_old_event)
{
    struct bed bed;
    struct gori_handle old;
    struct gori_handle new;
    struct gori_op op = {0};
    int fds[2];
    bed_init(&bed, impl, 2);
    for (int i = 0; i < 50; i++) {
        make_pair(fds);
        int old_peer = fds[1];
        int number = fds[0];
        attach(&bed, fds[0], &old);
        submit(&bed, &op, &old, GORI_OP_RECV_MULTI);
        put(old_peer, "old");
        close_and_wait(&bed, &old);
        make_pair(fds);
        GT_EQUAL(fds[0], number);
        attach(&bed, fds[0], &new);
        submit(&bed, &op, &new, GORI_OP_RECV_MULTI);
        turn(&bed, 0);
        turn(&bed, 0);
        GT_EQUAL(bed.count, 0);
        put(fds[1], "new");
        turn_until(&bed, 1);
        GT_EQUAL_BYTES(bed.records[0].buffer->data, 3, "new", 3);
        gori_buffer_release(bed.records[0].buffer);
        close_and_wait(&bed, &new);
        close(fds[1]);
        close(old_peer);
    }
    bed_fini(&bed);
}

/* A peer that ends while nobody reads costs nothing until somebody does. */
REACTOR_TEST(end_without_a_receive_does_not_spin)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    int fds[2];
    bed_init(&bed, impl, 2);
    make_pair(fds);
    attach(&bed, fds[0], &handle);
    put(fds[1], "x");
    close(fds[1]);
    turn(&bed, 0);
    uint64_t before = waits(&bed);
    turn(&bed, gi_os_now() + 2 * GORI_MILLISECONDS);
    GT_EQUAL(waits(&bed), before + 1);
    gori_time start = gi_os_now();
    turn(&bed, start + 2 * GORI_MILLISECONDS);
    GT_CHECK(gi_os_now() >= start + 2 * GORI_MILLISECONDS);
    submit(&bed, &op, &handle, GORI_OP_RECV_MULTI);
    turn_until(&bed, 2);
    GT_EQUAL(bed.records[0].result, 1);
    GT_EQUAL(bed.records[1].result, 0);
    gori_buffer_release(bed.records[0].buffer);
    close_and_wait(&bed, &handle);
    bed_fini(&bed);
}

/* Urgent data stops a receive short of what is there; what is behind it arrives all the same. */
REACTOR_TEST(urgent_data_does_not_hide_what_follows)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    struct gori_addr addr;
    bed_init(&bed, impl, 4);
    int listener = listen_on_loopback(&addr);
    int client = connect_to(&addr);
    attach(&bed, accept(listener, NULL, NULL), &handle);
    put(client, "before");
    GT_EQUAL(send(client, "!", 1, MSG_OOB), 1);
    put(client, "after");
    submit(&bed, &op, &handle, GORI_OP_RECV_MULTI);
    int64_t got = 0;
    while (got < 11) {
        bed.count = 0;
        turn(&bed, GORI_NEVER);
        for (uint32_t i = 0; i < bed.count; i++) {
            got += bed.records[i].result;
            gori_buffer_release(bed.records[i].buffer);
        }
    }
    GT_EQUAL(got, 11);
    close_and_wait(&bed, &handle);
    close(client);
    close(listener);
    bed_fini(&bed);
}

static void wake_often(void *argument)
{
    struct bed *bed = argument;
    for (int i = 0; i < 1000; i++) {
        bed->engine->impl->wake(bed->engine);
    }
}

/* Each wake ends a wait, from any thread, before or during it; after the last one all is quiet. */
REACTOR_TEST(wake_ends_a_wait)
{
    struct bed bed;
    bed_init(&bed, impl, 1);
    impl->wake(bed.engine);
    turn(&bed, GORI_NEVER);
    impl->wake(bed.engine);
    impl->wake(bed.engine);
    turn(&bed, GORI_NEVER);
    struct gi_os_thread thread;
    GT_EQUAL(gi_os_thread_start(&thread, wake_often, &bed), 0);
    turn(&bed, GORI_NEVER);
    gi_os_thread_join(&thread);
    impl->wake(bed.engine);
    turn(&bed, GORI_NEVER);
    gori_time deadline = gi_os_now() + 2 * GORI_MILLISECONDS;
    turn(&bed, deadline);
    GT_CHECK(gi_os_now() >= deadline);
    bed_fini(&bed);
}

/* A wait without work lasts until its deadline, not less; a deadline that is past costs no wait. */
REACTOR_TEST(turn_keeps_its_deadline)
{
    struct bed bed;
    bed_init(&bed, impl, 1);
    for (gori_time length = 1; length < 4 * GORI_MILLISECONDS; length = length * 10 + 1) {
        gori_time deadline = gi_os_now() + length;
        turn(&bed, deadline);
        GT_CHECK(gi_os_now() >= deadline);
    }
    turn(&bed, 1);
    turn(&bed, 0);
    bed_fini(&bed);
}

/* Every allocation of a start may fail: it says so and leaves nothing behind. */
REACTOR_TEST(create_survives_lack_of_memory)
{
    struct gi_fault_alloc fault;
    struct gi_buffers buffers;
    gi_fault_alloc_init(&fault, NULL);
    GT_EQUAL(gi_buffers_init(&buffers, &fault.allocator, BUFFER_BYTES, 1), 0);
    struct gi_engine_config config = {.allocator = &fault.allocator, .buffers = &buffers};
    struct gi_engine *engine = NULL;
    int result = GORI_ENOMEM;
    for (uint64_t i = 1; result == GORI_ENOMEM; i++) {
        gi_fault_alloc_fail_once(&fault, i);
        result = impl->create(&config, &engine);
    }
    GT_EQUAL(result, 0);
    impl->destroy(engine);
    gi_buffers_fini(&buffers);
    gi_fault_alloc_fini(&fault);
}

/* epoll refuses what is always ready; the descriptor stays the caller's. */
GT_TEST(epoll_refuses_plain_files)
{
    struct bed bed;
    struct gori_handle handle = {0};
    bed_init(&bed, &gi_engine_epoll, 1);
    int file = make_file(0);
    handle.native = file;
    GT_EQUAL(bed.engine->impl->attach(bed.engine, &handle), GORI_EPERM);
    close(file);
    bed_fini(&bed);
}

/* The first descriptor that does not fit into the sets of select is refused, and harms nothing. */
GT_TEST(select_refuses_large_descriptors)
{
    struct bed bed;
    struct gori_handle handle;
    struct gori_op op = {0};
    struct rlimit limit;
    int fds[2];
    GT_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = FD_SETSIZE + 1;
    if (limit.rlim_max < limit.rlim_cur || setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        GT_SKIP("this machine does not allow so many descriptors");
    }
    bed_init(&bed, &gi_engine_select, 1);
    make_pair(fds);
    GT_EQUAL(dup2(fds[0], FD_SETSIZE), FD_SETSIZE);
    memset(&handle, 0, sizeof(handle));
    handle.native = FD_SETSIZE;
    GT_EQUAL(bed.engine->impl->attach(bed.engine, &handle), GORI_ELIMIT);
    GT_EQUAL(dup2(fds[0], FD_SETSIZE - 1), FD_SETSIZE - 1);
    attach(&bed, FD_SETSIZE - 1, &handle);
    submit(&bed, &op, &handle, GORI_OP_RECV_MULTI);
    put(fds[1], "x");
    turn_until(&bed, 1);
    GT_EQUAL(bed.records[0].result, 1);
    gori_buffer_release(bed.records[0].buffer);
    close_and_wait(&bed, &handle);
    bed_fini(&bed);
}

GT_MAIN()
