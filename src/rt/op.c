/* SPDX-License-Identifier: MIT */
/*
 * Operations and handles: the runtime's half of the contract in <gori/op.h>.  The engines do the
 * work; this file checks what is asked, counts what is in flight, and hands completions to their
 * callbacks.
 *
 *  1. op.state and the RECEIVING and SENDING bits of handle.flags are changed here only, so that
 *     "one receive and one send at a time" (E4) and "completes exactly once" are kept in one place.
 *     handle.in_flight, op.slot and the links belong to the engine.
 *  2. Before the callback of a last completion the op is idle and its direction is free: the
 *     callback may submit it again, or free it.
 *  3. Between close and `closed` a handle accepts nothing; after the callback of `closed` the
 *     runtime holds no pointer to it.
 * Thread: the loop's.
 */
#include "rt/loop.h"

#include <gori/error.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"

static uint8_t direction_of(uint8_t kind)
{
    switch (kind) {
    case GORI_OP_ACCEPT:
    case GORI_OP_RECV:
    case GORI_OP_RECV_MULTI:
    case GORI_OP_WAIT:
        return GI_HANDLE_RECEIVING;
    default:
        return GI_HANDLE_SENDING;
    }
}

int gi_handle_attach(struct gori_loop *loop, gori_native native, uint8_t flags,
                     struct gori_handle *handle)
{
    GI_ASSERT(handle->state == GI_HANDLE_FREE);
    handle->loop = loop;
    handle->native = native;
    handle->in_flight = 0;
    handle->flags = flags;
    int result = loop->engine->impl->attach(loop->engine, handle);
    if (result < 0) {
        handle->native = GORI_NATIVE_NONE;
        return result;
    }
    handle->state = GI_HANDLE_OPEN;
    gi_list_push_back(&loop->all_handles, &handle->open);
    return 0;
}

int gori_handle_open(struct gori_loop *loop, enum gori_addr_family family,
                     struct gori_handle *handle)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (family == GORI_ADDR_NONE) {
        return GORI_EINVAL;
    }
    const struct gi_socket_calls *sockets = loop->engine->impl->sockets;
    gori_native native;
    int result = sockets->open(loop->engine, family, &native);
    if (result < 0) {
        return result;
    }
    result = gi_handle_attach(loop, native, GI_HANDLE_BLOCKS, handle);
    if (result < 0) {
        sockets->close(loop->engine, native);
    }
    return result;
}

int gori_handle_listen(struct gori_loop *loop, const struct gori_addr *addr,
                       const struct gori_listen_options *given, struct gori_handle *handle)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (gori_addr_family(addr) == GORI_ADDR_NONE) {
        return GORI_EINVAL;
    }
    const struct gi_listen_options options = {
        .backlog = given == NULL || given->backlog == 0 ? GI_BACKLOG : given->backlog,
        .reuse_port = given != NULL && given->reuse_port,
        .ipv6_only = given != NULL && given->ipv6_only,
    };
    const struct gi_socket_calls *sockets = loop->engine->impl->sockets;
    gori_native native;
    int result = sockets->listen(loop->engine, addr, &options, &native);
    if (result < 0) {
        return result;
    }
    result = gi_handle_attach(loop, native, GI_HANDLE_LISTENER | GI_HANDLE_BLOCKS, handle);
    if (result < 0) {
        sockets->close(loop->engine, native);
    }
    return result;
}

int gori_handle_addr(const struct gori_handle *handle, struct gori_addr *ret_addr)
{
    if (handle->state != GI_HANDLE_OPEN) {
        return GORI_ECLOSED;
    }
    if (handle->flags & GI_HANDLE_SOURCE) {
        return GORI_EINVAL;
    }
    struct gi_engine *engine = handle->loop->engine;
    return engine->impl->sockets->addr(engine, handle->native, GI_SOCKET_LOCAL, ret_addr);
}

int gori_handle_adopt(struct gori_loop *loop, gori_native native, struct gori_handle *handle)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (native == GORI_NATIVE_NONE) {
        return GORI_EINVAL;
    }
    return gi_handle_attach(loop, native, 0, handle);
}

int gi_handle_adopt_source(struct gori_loop *loop, gori_native source, struct gori_handle *handle)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    return gi_handle_attach(loop, source, GI_HANDLE_SOURCE, handle);
}

int gori_handle_watch(struct gori_loop *loop, gori_native native, struct gori_handle *handle)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (native == GORI_NATIVE_NONE) {
        return GORI_EINVAL;
    }
    const struct gi_event_calls *events = loop->engine->impl->events;
    gori_native source;
    int result = events->duplicate(loop->engine, native, &source);
    if (result < 0) {
        return result;
    }
    result = gi_handle_attach(loop, source, GI_HANDLE_SOURCE, handle);
    if (result < 0) {
        events->close(loop->engine, source);
    }
    return result;
}

void gori_handle_close(struct gori_handle *handle)
{
    if (handle->state != GI_HANDLE_OPEN) {
        return;
    }
    GI_ASSERT(gi_loop_on_thread(handle->loop));
    handle->state = GI_HANDLE_CLOSING;
    handle->loop->engine->impl->close(handle->loop->engine, handle);
}

void gori_handle_reset(struct gori_handle *handle)
{
    if (handle->state != GI_HANDLE_OPEN) {
        return;
    }
    struct gi_engine *engine = handle->loop->engine;
    if (!(handle->flags & GI_HANDLE_SOURCE)) {
        /* A socket that refuses the option is closed in the orderly way: nothing better is
         * possible. */
        (void)engine->impl->sockets->set_reset_on_close(engine, handle->native);
    }
    gori_handle_close(handle);
}

int gori_handle_shutdown(struct gori_handle *handle)
{
    if (handle->state != GI_HANDLE_OPEN) {
        return GORI_ECLOSED;
    }
    if (handle->flags & GI_HANDLE_SOURCE) {
        return GORI_EINVAL;
    }
    struct gi_engine *engine = handle->loop->engine;
    return engine->impl->sockets->shutdown_send(engine, handle->native);
}

void gori_native_close(struct gori_loop *loop, gori_native native)
{
    loop->engine->impl->sockets->close(loop->engine, native);
}

/* Why a handle takes no op in a direction: it is no socket (E11), or there is one already. */
static GI_COLD int refuse(const struct gori_handle *handle, uint8_t direction, uint8_t kind)
{
    bool is_wait = kind == GORI_OP_WAIT || kind == GORI_OP_WAIT_WRITABLE;
    if ((handle->flags & GI_HANDLE_SOURCE) && !is_wait) {
        return GORI_EINVAL;
    }
    return (handle->flags & direction) != 0 ? GORI_EBUSY : 0;
}

/* Everything but the arguments, which the callers have put in place before. */
static int submit(struct gori_op *op, struct gori_handle *handle, uint8_t kind)
{
    struct gori_loop *loop = handle->loop;
    if (GI_UNLIKELY(!gi_loop_on_thread(loop))) {
        return GORI_EWRONGTHREAD;
    }
    uint8_t direction = direction_of(kind);
    if (GI_UNLIKELY((handle->flags & (direction | GI_HANDLE_SOURCE)) != 0)) {
        int refused = refuse(handle, direction, kind);
        if (refused < 0) {
            return refused;
        }
    }
    if (GI_UNLIKELY(loop->ops_active >= loop->config.ops_max)) {
        return GORI_ELIMIT;
    }
    op->handle = handle;
    op->kind = kind;
    op->flags = 0;
    op->state = GI_OP_SUBMITTED;
    int result = loop->engine->impl->submit(loop->engine, op);
    if (GI_UNLIKELY(result < 0)) {
        op->state = GI_OP_IDLE;
        return result;
    }
    handle->flags |= direction;
    loop->ops_active++;
    return 0;
}

/* What may be refused before an argument of the op is written: it could be in flight. */
static int check(const struct gori_op *op, const struct gori_handle *handle)
{
    if (GI_UNLIKELY(op->state != GI_OP_IDLE)) {
        return GORI_EBUSY;
    }
    if (GI_UNLIKELY(op->on_complete == NULL)) {
        return GORI_EINVAL;
    }
    return GI_LIKELY(handle->state == GI_HANDLE_OPEN) ? 0 : GORI_ECLOSED;
}

int gori_op_accept(struct gori_op *op, struct gori_handle *listener)
{
    int result = check(op, listener);
    return result < 0 ? result : submit(op, listener, GORI_OP_ACCEPT);
}

int gori_op_connect(struct gori_op *op, struct gori_handle *handle, const struct gori_addr *addr)
{
    int result = check(op, handle);
    if (result < 0) {
        return result;
    }
    if (gori_addr_family(addr) == GORI_ADDR_NONE) {
        return GORI_EINVAL;
    }
    op->as.connect.addr = addr;
    return submit(op, handle, GORI_OP_CONNECT);
}

int gori_op_recv(struct gori_op *op, struct gori_handle *handle, void *data, size_t size)
{
    int result = check(op, handle);
    if (result < 0) {
        return result;
    }
    if (size == 0) {
        return GORI_EINVAL;
    }
    op->as.recv.data = data;
    op->as.recv.size = size;
    return submit(op, handle, GORI_OP_RECV);
}

int gori_op_recv_multi(struct gori_op *op, struct gori_handle *handle)
{
    int result = check(op, handle);
    return result < 0 ? result : submit(op, handle, GORI_OP_RECV_MULTI);
}

static GI_ALWAYS_INLINE int send_pieces(struct gori_op *op, struct gori_handle *handle,
                                        const struct gori_slice *pieces, uint32_t count, bool more)
{
    int result = check(op, handle);
    if (GI_UNLIKELY(result < 0)) {
        return result;
    }
    if (GI_UNLIKELY(count == 0 || count > GORI_SEND_PIECES_MAX)) {
        return GORI_EINVAL;
    }
    op->as.send.pieces = pieces;
    op->as.send.count = count;
    op->as.send.index = 0;
    op->as.send.offset = 0;
    op->as.send.progress = 0;
    op->more = more;
    return submit(op, handle, GORI_OP_SEND);
}

int gori_op_send(struct gori_op *op, struct gori_handle *handle, const struct gori_slice *pieces,
                 uint32_t count)
{
    return send_pieces(op, handle, pieces, count, false);
}

int gori_op_send_more(struct gori_op *op, struct gori_handle *handle,
                      const struct gori_slice *pieces, uint32_t count)
{
    return send_pieces(op, handle, pieces, count, true);
}

int gori_op_send_file(struct gori_op *op, struct gori_handle *handle,
                      const struct gori_file_range *range)
{
    int result = check(op, handle);
    if (result < 0) {
        return result;
    }
    if (range->size == 0 || range->size > INT64_MAX || range->offset > INT64_MAX - range->size) {
        return GORI_EINVAL;
    }
    op->as.send_file.file = range->file;
    op->as.send_file.offset = range->offset;
    op->as.send_file.size = range->size;
    op->as.send_file.progress = 0;
    return submit(op, handle, GORI_OP_SEND_FILE);
}

static int submit_wait(struct gori_op *op, struct gori_handle *handle, uint8_t kind)
{
    int result = check(op, handle);
    if (result < 0) {
        return result;
    }
    return handle->flags & GI_HANDLE_SOURCE ? submit(op, handle, kind) : GORI_EINVAL;
}

int gori_op_wait(struct gori_op *op, struct gori_handle *handle)
{
    return submit_wait(op, handle, GORI_OP_WAIT);
}

int gori_op_wait_writable(struct gori_op *op, struct gori_handle *handle)
{
    return submit_wait(op, handle, GORI_OP_WAIT_WRITABLE);
}

void gori_op_cancel(struct gori_op *op)
{
    if (op->state != GI_OP_SUBMITTED) {
        return;
    }
    struct gori_loop *loop = op->handle->loop;
    GI_ASSERT(gi_loop_on_thread(loop));
    op->state = GI_OP_CANCELING;
    loop->engine->impl->cancel(loop->engine, op);
}

bool gori_op_is_active(const struct gori_op *op)
{
    return op->state != GI_OP_IDLE;
}

static void dispatch_closed(struct gori_handle *handle)
{
    GI_ASSERT(handle->state == GI_HANDLE_CLOSING);
    GI_ASSERT((handle->flags & (GI_HANDLE_RECEIVING | GI_HANDLE_SENDING)) == 0);
    gi_list_remove(&handle->open);
    handle->state = GI_HANDLE_FREE;
    handle->native = GORI_NATIVE_NONE;
    if (handle->on_close != NULL) {
        handle->on_close(handle);
    }
}

void gi_op_dispatch(struct gori_loop *loop, const struct gi_completion *completion)
{
    loop->stats.completions++;
    struct gori_op *op = completion->op;
    if (GI_UNLIKELY(op == NULL)) {
        dispatch_closed(completion->closed);
        return;
    }
    if (GI_UNLIKELY(gi_is_file_kind(op->kind))) {
        gi_file_op_dispatch(op, completion->what.result);
        return;
    }
    GI_ASSERT(op->state != GI_OP_IDLE);
    if (completion->what.is_last) {
        op->state = GI_OP_IDLE;
        op->handle->flags &= (uint8_t)~direction_of(op->kind);
        loop->ops_active--;
    }
    op->on_complete(op, &completion->what);
}
