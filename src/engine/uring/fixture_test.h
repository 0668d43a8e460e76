/* SPDX-License-Identifier: MIT */
/*
 * A loop in miniature for the tests of this folder: the engine with a pool, and the bookkeeping
 * that src/rt/op.c does for it, so that these tests need no runtime.  Each operation records what
 * came of it.  Not for other engines: theirs is the conformance suite.
 */
#ifndef GI_ENGINE_URING_FIXTURE_TEST_H
#define GI_ENGINE_URING_FIXTURE_TEST_H

#include <gori/error.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/uring/uring.h"
#include "lib/test.h"
#include "os/os.h"

/* An operation and all that it was told. */
struct record {
    struct gori_op op;
    int64_t last_result;
    uint64_t bytes;
    uint32_t completions;
    uint32_t lasts;
    int accepted; /* the newest, -1 for none */
    bool keeps;   /* holds on to the buffers it gets */
    struct gori_buffer *kept[64];
    uint32_t kept_count;
};

struct fixture {
    struct gi_buffers buffers;
    struct gi_engine *engine;
    struct gi_uring *uring;
    uint32_t delivered;
};

/* A handle and whether its close was delivered. */
struct socket {
    struct gori_handle handle;
    uint32_t closed;
};

static inline int fixture_try(struct fixture *fixture, uint32_t buffers_max)
{
    memset(fixture, 0, sizeof(*fixture));
    GT_EQUAL(gi_buffers_init(&fixture->buffers, gori_allocator_default(), 4096, buffers_max), 0);
    struct gi_engine_config config = {
        .allocator = gori_allocator_default(), .buffers = &fixture->buffers, .ops_max = 100000};
    int error = gi_engine_uring.create(&config, &fixture->engine);
    fixture->uring = (struct gi_uring *)fixture->engine;
    return error;
}

static inline void fixture_init(struct fixture *fixture, uint32_t buffers_max)
{
    GT_EQUAL(fixture_try(fixture, buffers_max), 0);
}

static inline void fixture_fini(struct fixture *fixture)
{
    fixture->engine->impl->destroy(fixture->engine);
    gi_buffers_fini(&fixture->buffers);
}

static inline void record_completion(struct record *record, const struct gori_completion *what)
{
    GT_CHECK(record->lasts == 0);
    record->completions++;
    record->last_result = what->result;
    if (what->result > 0) {
        record->bytes += (uint64_t)what->result;
    }
    if (what->accepted != GORI_NATIVE_NONE) {
        if (record->accepted >= 0) {
            gi_os_close(record->accepted); /* nobody took it */
        }
        record->accepted = (int)what->accepted;
    }
    if (what->buffer != NULL && record->keeps) {
        GT_CHECK(record->kept_count < GI_ARRAY_COUNT(record->kept));
        record->kept[record->kept_count++] = what->buffer;
    } else if (what->buffer != NULL) {
        gori_buffer_release(what->buffer);
    }
    if (what->is_last) {
        record->lasts++;
        record->op.state = GI_OP_IDLE;
    }
}

/* One turn of the engine, and all that it delivers. */
static inline uint32_t fixture_turn(struct fixture *fixture, gori_time wait)
{
    gori_time deadline = wait == 0 ? 0 : gi_os_now() + wait;
    GT_EQUAL(fixture->engine->impl->turn(fixture->engine, deadline), 0);
    struct gi_completion completion;
    uint32_t count = 0;
    while (fixture->engine->impl->next(fixture->engine, &completion)) {
        count++;
        if (completion.closed != NULL) {
            struct socket *socket = gori_container_of(completion.closed, struct socket, handle);
            socket->closed++;
            socket->handle.state = GI_HANDLE_FREE;
        } else {
            record_completion(gori_container_of(completion.op, struct record, op),
                              &completion.what);
        }
    }
    fixture->delivered += count;
    return count;
}

/* Turns until the condition holds; the test's own time limit ends what never does. */
#define FIXTURE_UNTIL(fixture, condition)                                                          \
    while (!(condition)) {                                                                         \
        (void)fixture_turn((fixture), 100 * GORI_MILLISECONDS);                                    \
    }

static inline void socket_adopt(struct fixture *fixture, struct socket *socket, int fd)
{
    memset(socket, 0, sizeof(*socket));
    socket->handle.native = fd;
    GT_EQUAL(fixture->engine->impl->attach(fixture->engine, &socket->handle), 0);
    socket->handle.state = GI_HANDLE_OPEN;
}

static inline void socket_close(struct fixture *fixture, struct socket *socket)
{
    socket->handle.state = GI_HANDLE_CLOSING;
    fixture->engine->impl->close(fixture->engine, &socket->handle);
}

static inline void record_submit(struct fixture *fixture, struct record *record,
                                 struct socket *socket, enum gori_op_kind kind)
{
    record->op.kind = (uint8_t)kind;
    record->op.handle = &socket->handle;
    record->op.state = GI_OP_SUBMITTED;
    record->lasts = 0;
    record->completions = 0;
    record->bytes = 0;
    record->accepted = -1;
    GT_EQUAL(fixture->engine->impl->submit(fixture->engine, &record->op), 0);
}

static inline void record_send(struct fixture *fixture, struct record *record,
                               struct socket *socket, const struct gori_slice *pieces,
                               uint32_t count)
{
    record->op.as.send.pieces = pieces;
    record->op.as.send.count = count;
    record->op.as.send.index = 0;
    record->op.as.send.offset = 0;
    record->op.as.send.progress = 0;
    record_submit(fixture, record, socket, GORI_OP_SEND);
}

static inline void record_cancel(struct fixture *fixture, struct record *record)
{
    record->op.state = GI_OP_CANCELING;
    fixture->engine->impl->cancel(fixture->engine, &record->op);
}

/* A listener on a port of the system's choice. */
static inline int listen_anywhere(struct gori_addr *ret_addr)
{
    int fd = -1;
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", ret_addr), 0);
    GT_EQUAL(gi_os_listen(ret_addr, 4096, GI_OS_BLOCKING, &fd), 0);
    GT_EQUAL(gi_os_local_addr(fd, ret_addr), 0);
    return fd;
}

/* A connected pair: [0] for the engine, [1] for the test, which may wait on it. */
static inline void connect_pair(int ret_fds[2])
{
    struct gori_addr addr;
    int listener = listen_anywhere(&addr);
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &ret_fds[1]), 0);
    GT_EQUAL(connect(ret_fds[1], (const struct sockaddr *)addr.as.native, addr.size), 0);
    ret_fds[0] = accept(listener, NULL, NULL);
    GT_CHECK(ret_fds[0] >= 0);
    gi_os_close(listener);
}

/* Whether something can be read from a descriptor, the end of the stream included. */
static inline bool is_readable(int fd)
{
    struct pollfd event = {.fd = fd, .events = POLLIN};
    return poll(&event, 1, 0) == 1;
}

#endif
