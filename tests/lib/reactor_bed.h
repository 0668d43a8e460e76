/* SPDX-License-Identifier: MIT */
/*
 * A bed for tests of the reactor: the test plays the runtime.  It submits, turns, pulls, and keeps
 * what it was given, in order.  For the tests of src/engine/reactor.
 */
#ifndef GT_REACTOR_BED_H
#define GT_REACTOR_BED_H

#include "lib/test.h"

#include <gori/error.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fault_alloc.h"
#include "engine/reactor/reactor.h"

#define RECORDS_MAX  256
#define BUFFER_BYTES 512

/* What was delivered, in order. */
struct record {
    struct gori_op *op;
    struct gori_handle *closed;
    int64_t result;
    bool is_last;
    gori_native accepted;
    struct gori_buffer *buffer;
};

struct bed {
    struct gi_fault_alloc fault;
    struct gi_buffers buffers;
    struct gi_engine *engine;
    struct record records[RECORDS_MAX];
    uint32_t count;
};

static inline void bed_init(struct bed *bed, const struct gi_engine_impl *impl,
                            uint32_t buffers_max)
{
    memset(bed, 0, sizeof(*bed));
    gi_fault_alloc_init(&bed->fault, NULL);
    GT_EQUAL(gi_buffers_init(&bed->buffers, &bed->fault.allocator, BUFFER_BYTES, buffers_max), 0);
    struct gi_engine_config config = {
        .allocator = &bed->fault.allocator,
        .buffers = &bed->buffers,
        .ops_max = 1000,
    };
    GT_EQUAL(impl->create(&config, &bed->engine), 0);
}

static inline void bed_fini(struct bed *bed)
{
    bed->engine->impl->destroy(bed->engine);
    gi_buffers_fini(&bed->buffers);
    gi_fault_alloc_fini(&bed->fault);
}

/* One turn, and everything that it brings. */
static inline void turn(struct bed *bed, gori_time deadline)
{
    GT_EQUAL(bed->engine->impl->turn(bed->engine, deadline), 0);
    struct gi_completion completion;
    while (bed->engine->impl->next(bed->engine, &completion)) {
        GT_CHECK(bed->count < RECORDS_MAX);
        bed->records[bed->count++] = (struct record){
            .op = completion.op,
            .closed = completion.closed,
            .result = completion.what.result,
            .is_last = completion.what.is_last,
            .accepted = completion.what.accepted,
            .buffer = completion.what.buffer,
        };
    }
}

/* Turns until there are `count` records. */
static inline void turn_until(struct bed *bed, uint32_t count)
{
    while (bed->count < count) {
        turn(bed, GORI_NEVER);
    }
    GT_EQUAL(bed->count, count);
}

static inline uint64_t waits(const struct bed *bed)
{
    struct gi_engine_stats stats;
    bed->engine->impl->stats(bed->engine, &stats);
    return stats.waits;
}

static inline void attach(struct bed *bed, int fd, struct gori_handle *handle)
{
    memset(handle, 0, sizeof(*handle));
    handle->native = fd;
    handle->state = GI_HANDLE_OPEN;
    GT_EQUAL(bed->engine->impl->attach(bed->engine, handle), 0);
}

static inline void submit(struct bed *bed, struct gori_op *op, struct gori_handle *handle,
                          uint8_t kind)
{
    op->handle = handle;
    op->kind = kind;
    op->flags = 0;
    GT_EQUAL(bed->engine->impl->submit(bed->engine, op), 0);
}

static inline void submit_send(struct bed *bed, struct gori_op *op, struct gori_handle *handle,
                               const struct gori_slice *pieces, uint32_t count)
{
    memset(&op->as, 0, sizeof(op->as));
    op->as.send.pieces = pieces;
    op->as.send.count = count;
    submit(bed, op, handle, GORI_OP_SEND);
}

static inline void close_now(struct bed *bed, struct gori_handle *handle)
{
    handle->state = GI_HANDLE_CLOSING;
    bed->engine->impl->close(bed->engine, handle);
}

static inline void close_and_wait(struct bed *bed, struct gori_handle *handle)
{
    close_now(bed, handle);
    bed->count = 0;
    while (bed->count == 0 || bed->records[bed->count - 1].closed != handle) {
        turn(bed, GORI_NEVER);
    }
    bed->count = 0;
}

static inline void make_pair(int ret_fds[2])
{
    GT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_fds), 0);
}

static inline void put(int fd, const char *text)
{
    GT_EQUAL(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static inline struct gori_slice slice(const void *data, size_t size)
{
    return (struct gori_slice){.data = data, .size = size};
}

/* One test for each poller of Linux, or for kqueue alone. */
#ifdef REACTOR_TEST_KQUEUE
#define REACTOR_TEST(name)                                                                         \
    static void name(const struct gi_engine_impl *impl);                                           \
    GT_TEST(kqueue_##name)                                                                         \
    {                                                                                              \
        name(&gi_engine_kqueue);                                                                   \
    }                                                                                              \
    static void name(const struct gi_engine_impl *impl)
#else
#define REACTOR_TEST(name)                                                                         \
    static void name(const struct gi_engine_impl *impl);                                           \
    GT_TEST(epoll_##name)                                                                          \
    {                                                                                              \
        name(&gi_engine_epoll);                                                                    \
    }                                                                                              \
    GT_TEST(poll_##name)                                                                           \
    {                                                                                              \
        name(&gi_engine_poll);                                                                     \
    }                                                                                              \
    GT_TEST(select_##name)                                                                         \
    {                                                                                              \
        name(&gi_engine_select);                                                                   \
    }                                                                                              \
    static void name(const struct gi_engine_impl *impl)
#endif

#endif
