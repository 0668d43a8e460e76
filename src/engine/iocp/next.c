/* SPDX-License-Identifier: MIT */
/*
 * Pulling completions.  There are four sources: handles that may read, connections that came, ops
 * whose result is decided, and handles to close.  The first and the others take turns, so that none
 * can keep the rest out.
 * Thread: the loop's.
 */
#include <gori/error.h>

#include "engine/iocp/iocp.h"
#include "os/event.h"

/* The last completion of an op goes out: the engine lets go of it (E3). */
static void let_go(struct gi_iocp *iocp, struct gori_op *op)
{
    struct gori_handle *handle = op->handle;
    GI_ASSERT(handle->in_flight > 0);
    handle->in_flight--;
    if (GI_UNLIKELY(handle->state == GI_HANDLE_CLOSING && handle->in_flight == 0)) {
        gi_list_push_back(&iocp->closing, &handle->link);
    }
}

static void fill(struct gi_completion *ret, struct gori_op *op, int64_t result, bool is_last)
{
    ret->op = op;
    ret->closed = NULL;
    ret->what.result = result;
    ret->what.is_last = is_last;
    ret->what.accepted = GORI_NATIVE_NONE;
    ret->what.buffer = NULL;
    ret->what.data = (struct gori_slice){0};
}

/* Reads once for the receive of a handle.  True when `ret` is filled. */
static bool step(struct gi_iocp *iocp, struct gori_handle *handle, struct gi_completion *ret)
{
    struct gori_op *op = gi_iocp_first(&handle->reads);
    GI_ASSERT(op->flags & GI_IOCP_READABLE);
    struct gori_buffer *buffer = gi_buffers_lend(iocp->buffers);
    if (GI_UNLIKELY(buffer == NULL)) {
        gi_list_push_back(&iocp->starved, &handle->link);
        return false;
    }
    uint32_t room = iocp->buffers->buffer_bytes;
    int64_t result = gi_os_receive((int)handle->native, buffer->data, room);
    if (GI_LIKELY(result > 0)) {
        gi_buffers_deliver(iocp->buffers, buffer);
        fill(ret, op, result, false);
        ret->what.buffer = buffer;
        ret->what.data = (struct gori_slice){.data = buffer->data, .size = (size_t)result};
        if ((size_t)result < room) {
            gi_iocp_arm(iocp, op); /* most probably that was all */
        }
        return true;
    }
    gi_buffers_unlend(iocp->buffers, buffer);
    if (result == GORI_EAGAIN) {
        gi_iocp_arm(iocp, op);
        return false;
    }
    gi_list_remove(&op->link);
    op->flags &= (uint8_t)~GI_IOCP_READABLE;
    let_go(iocp, op);
    fill(ret, op, result, true);
    return true;
}

/* Steps of handles until one has made a completion. */
static bool take_ready(struct gi_iocp *iocp, struct gi_completion *ret)
{
    struct gori_link *link;
    while ((link = gi_list_pop_front(&iocp->ready)) != NULL) {
        struct gori_handle *handle = gori_container_of(link, struct gori_handle, link);
        if (handle->budget > 0) {
            handle->budget--;
        }
        bool made = step(iocp, handle, ret);
        gi_iocp_schedule(iocp, handle);
        if (made) {
            return true;
        }
    }
    return false;
}

static bool take_done(struct gi_iocp *iocp, struct gi_completion *ret)
{
    struct gori_link *link = gi_list_pop_front(&iocp->done);
    if (link == NULL) {
        return false;
    }
    struct gori_op *op = gori_container_of(link, struct gori_op, link);
    if (!gi_is_file_kind(op->kind)) {
        let_go(iocp, op);
    }
    fill(ret, op, op->as.done.result, true);
    return true;
}

static bool take_closed(struct gi_iocp *iocp, struct gi_completion *ret)
{
    struct gori_link *link = gi_list_pop_front(&iocp->closing);
    if (GI_LIKELY(link == NULL)) {
        return false;
    }
    struct gori_handle *handle = gori_container_of(link, struct gori_handle, link);
    if (handle->flags & GI_HANDLE_SOURCE) {
        gi_os_event_close((int)handle->native);
    } else {
        gi_os_close((int)handle->native);
    }
    fill(ret, NULL, 0, true);
    ret->closed = handle;
    return true;
}

/* By turns: an accept whose next connection is there at once never comes to an end. */
static bool take_accepted_or_done(struct gi_iocp *iocp, struct gi_completion *ret)
{
    iocp->accepted_first = !iocp->accepted_first;
    if (iocp->accepted_first && gi_iocp_accept_next(iocp, ret)) {
        return true;
    }
    return take_done(iocp, ret) || (!iocp->accepted_first && gi_iocp_accept_next(iocp, ret));
}

bool gi_iocp_next(struct gi_engine *engine, struct gi_completion *ret_completion)
{
    struct gi_iocp *iocp = gi_iocp_of(engine);
    iocp->ready_first = !iocp->ready_first;
    if (iocp->ready_first && take_ready(iocp, ret_completion)) {
        return true;
    }
    return take_closed(iocp, ret_completion) || take_accepted_or_done(iocp, ret_completion) ||
           (!iocp->ready_first && take_ready(iocp, ret_completion));
}
