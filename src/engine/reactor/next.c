/* SPDX-License-Identifier: MIT */
/*
 * Pulling completions.  There are three sources: handles that may make progress, ops whose result
 * is decided, and handles to close.  The first and the others take turns, so that none can keep the
 * rest out.
 * Thread: the loop's.
 */
#include <gori/error.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "engine/reactor/reactor.h"

/* The last completion of an op goes out: the engine lets go of it (E3). */
static void let_go(struct gi_reactor *reactor, struct gori_op *op)
{
    struct gori_handle *handle = op->handle;
    GI_ASSERT(handle->in_flight > 0);
    handle->in_flight--;
    if (GI_UNLIKELY(handle->state == GI_HANDLE_CLOSING && handle->in_flight == 0)) {
        gi_list_push_back(&reactor->closing, &handle->link);
    }
}

/* The one and last completion of an op that moves no receive buffer. */
static void fill_last(struct gi_completion *ret, struct gori_op *op, int64_t result)
{
    ret->op = op;
    ret->closed = NULL;
    gi_reactor_fill(&ret->what, result, true);
}

/* One step of the op that waits to write.  True when `ret` is filled. */
static bool step_write(struct gi_reactor *reactor, struct gori_handle *handle,
                       struct gi_completion *ret)
{
    struct gori_op *op = gi_reactor_first(&handle->writes);
    if (GI_LIKELY(op == NULL) || !(handle->ready & GI_POLL_WRITE)) {
        return false;
    }
    int64_t result = 0;
    enum gi_step step = gi_reactor_write(op, &result);
    if (step == GI_STEP_RETRY) {
        gi_reactor_park(reactor, handle, &reactor->retry);
    }
    if (step != GI_STEP_DONE) {
        return false;
    }
    gi_list_remove(&op->link);
    let_go(reactor, op);
    fill_last(ret, op, result);
    return true;
}

/* One step of the op that waits to read.  True when `ret` is filled. */
static bool step_read(struct gi_reactor *reactor, struct gori_handle *handle,
                      struct gi_completion *ret)
{
    struct gori_op *op = gi_reactor_first(&handle->reads);
    if (op == NULL || !(handle->ready & GI_POLL_READ)) {
        return false;
    }
    enum gi_step step = gi_reactor_read(reactor, op, &ret->what);
    if (GI_LIKELY(step == GI_STEP_MORE)) {
        ret->op = op;
        ret->closed = NULL;
        return true;
    }
    if (step == GI_STEP_DONE) {
        gi_list_remove(&op->link);
        let_go(reactor, op);
        ret->op = op;
        ret->closed = NULL;
        return true;
    }
    if (step == GI_STEP_STARVED && !gi_link_is_linked(&handle->link)) {
        gi_reactor_park(reactor, handle, &reactor->starved);
    }
    return false;
}

/* Steps of handles until one has made a completion. */
static bool take_ready(struct gi_reactor *reactor, struct gi_completion *ret)
{
    struct gori_link *link;
    while ((link = gi_list_pop_front(&reactor->ready)) != NULL) {
        struct gori_handle *handle = gori_container_of(link, struct gori_handle, link);
        if (handle->budget > 0) {
            handle->budget--;
        }
        bool made = step_write(reactor, handle, ret) || step_read(reactor, handle, ret);
        gi_reactor_schedule(reactor, handle);
        if (GI_LIKELY(made)) {
            return true;
        }
    }
    return false;
}

static bool take_done(struct gi_reactor *reactor, struct gi_completion *ret)
{
    struct gori_link *link = gi_list_pop_front(&reactor->done);
    if (link == NULL) {
        return false;
    }
    struct gori_op *op = gori_container_of(link, struct gori_op, link);
    let_go(reactor, op);
    fill_last(ret, op, op->as.done.result);
    return true;
}

static bool take_closed(struct gi_reactor *reactor, struct gi_completion *ret)
{
    struct gori_link *link = gi_list_pop_front(&reactor->closing);
    if (GI_LIKELY(link == NULL)) {
        return false;
    }
    struct gori_handle *handle = gori_container_of(link, struct gori_handle, link);
    int fd = (int)handle->native;
    uint64_t token = gi_slots_token(&reactor->slots, handle->slot);
    reactor->poller->impl->remove(reactor->poller, fd, token);
    gi_slots_release(&reactor->slots, handle->slot);
    gi_os_close(fd);
    fill_last(ret, NULL, 0);
    ret->closed = handle;
    return true;
}

bool gi_reactor_next(struct gi_engine *engine, struct gi_completion *ret_completion)
{
    struct gi_reactor *reactor = gi_reactor_of(engine);
    reactor->ready_first = !reactor->ready_first;
    if (reactor->ready_first && take_ready(reactor, ret_completion)) {
        return true;
    }
    return take_closed(reactor, ret_completion) || take_done(reactor, ret_completion) ||
           (!reactor->ready_first && take_ready(reactor, ret_completion));
}
