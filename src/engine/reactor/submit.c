/* SPDX-License-Identifier: MIT */
/*
 * Ops on their way in and out: submit, cancel, close.  A write is tried at once, because a socket
 * can almost always take it; its result waits in `done`.  A read is not tried: whether there is
 * anything, the poller has said, and taking it is the business of `next`.
 * Thread: the loop's.
 */
#include <gori/error.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "engine/reactor/reactor.h"

static void decide(struct gi_reactor *reactor, struct gori_op *op, int64_t result)
{
    op->flags |= GI_REACTOR_DECIDED;
    op->as.done.result = result;
    gi_list_push_back(&reactor->done, &op->link);
}

/* For the calls that cannot be told not to wait.  Once for a socket, and for few sockets at all. */
static int make_nonblocking(struct gori_handle *handle)
{
    if (handle->ready & GI_REACTOR_NONBLOCKING) {
        return 0;
    }
    int error = gi_os_set_blocking((int)handle->native, false);
    if (error == 0) {
        handle->ready |= GI_REACTOR_NONBLOCKING;
    }
    return error;
}

static void submit_write(struct gi_reactor *reactor, struct gori_op *op)
{
    struct gori_handle *handle = op->handle;
    enum gi_step step = GI_STEP_BLOCKED;
    int64_t result = 0;
    if (GI_LIKELY((handle->ready & GI_POLL_WRITE) && gi_list_is_empty(&handle->writes))) {
        step = gi_reactor_write(op, &result);
    }
    if (GI_LIKELY(step == GI_STEP_DONE)) {
        decide(reactor, op, result);
        return;
    }
    gi_list_push_back(&handle->writes, &op->link);
    if (step == GI_STEP_RETRY && !gi_link_is_linked(&handle->link)) {
        gi_reactor_park(reactor, handle, &reactor->retry);
    } else {
        gi_reactor_schedule(reactor, handle);
    }
}

/* What was ready before concerned an unconnected socket; it says nothing of the connected one. */
static void forget_readiness(struct gori_handle *handle)
{
    handle->ready &= (uint8_t) ~(GI_POLL_READ | GI_POLL_DRAIN);
    handle->ready |= GI_POLL_WRITE;
}

int gi_reactor_submit(struct gi_engine *engine, struct gori_op *op)
{
    struct gi_reactor *reactor = gi_reactor_of(engine);
    struct gori_handle *handle = op->handle;
    if (GI_LIKELY(op->kind == GORI_OP_SEND)) {
        handle->in_flight++;
        submit_write(reactor, op);
        return 0;
    }
    bool is_read =
        op->kind == GORI_OP_RECV || op->kind == GORI_OP_RECV_MULTI || op->kind == GORI_OP_WAIT;
    bool leaves_mode = is_read || op->kind == GORI_OP_WAIT_WRITABLE;
    int error = leaves_mode ? 0 : make_nonblocking(handle);
    if (error < 0) {
        return error;
    }
    handle->in_flight++;
    if (is_read || op->kind == GORI_OP_ACCEPT) {
        gi_list_push_back(&handle->reads, &op->link);
        gi_reactor_schedule(reactor, handle);
        return 0;
    }
    if (op->kind == GORI_OP_CONNECT) {
        forget_readiness(handle);
    }
    submit_write(reactor, op);
    return 0;
}

void gi_reactor_cancel(struct gi_engine *engine, struct gori_op *op)
{
    struct gi_reactor *reactor = gi_reactor_of(engine);
    if (op->flags & GI_REACTOR_DECIDED) {
        return;
    }
    gi_list_remove(&op->link);
    decide(reactor, op, GORI_ECANCELED);
    gi_reactor_schedule(reactor, op->handle);
}

static void decide_all(struct gi_reactor *reactor, struct gori_link *ops)
{
    for (struct gori_op *op = gi_reactor_first(ops); op != NULL; op = gi_reactor_first(ops)) {
        gi_list_remove(&op->link);
        decide(reactor, op, GORI_ECANCELED);
    }
}

void gi_reactor_close(struct gi_engine *engine, struct gori_handle *handle)
{
    struct gi_reactor *reactor = gi_reactor_of(engine);
    GI_ASSERT(handle->state == GI_HANDLE_CLOSING);
    decide_all(reactor, &handle->reads);
    decide_all(reactor, &handle->writes);
    if (gi_link_is_linked(&handle->link)) {
        gi_list_remove(&handle->link);
    }
    gi_reactor_schedule(reactor, handle);
    if (handle->in_flight == 0) {
        gi_list_push_back(&reactor->closing, &handle->link);
    }
}
