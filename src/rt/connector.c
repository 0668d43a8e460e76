/* SPDX-License-Identifier: MIT */
/*
 * Connecting: from an address to a session in the state opening, and from there to open or to its
 * end; and from a socket that is connected already to an open session.  What follows is like any
 * session's, see session_life.c.
 *
 *  1. Either gori_session_connect succeeds and on_close will come, or it fails and there was never
 *     a session.  Where the socket existed already it is closed in silence (GI_SESSION_UNBORN).
 *  2. The address lives as long as the session's handle may refer to it, in a pool.
 *  3. The send op connects: nothing can be sent meanwhile, what is queued waits for open.
 */
#include "rt/session.h"

#include <gori/error.h>

#include "base/assert.h"
#include "base/compiler.h"

static void connect_done(struct gori_op *op, const struct gori_completion *completion)
{
    struct gori_session *session = gori_container_of(op, struct gori_session, send_op);
    GI_ASSERT(completion->is_last);
    if (session->state != GI_SESSION_OPENING) {
        return;
    }
    if (completion->result < 0) {
        gi_session_finish(session, GORI_CLOSE_CONNECT, (int)completion->result);
        return;
    }
    gi_pool_release(&gi_session_store(session)->addresses, op->user);
    op->user = NULL;
    gi_session_opened(session);
}

/* Gives the session its socket.  On failure there is none. */
static int open_socket(struct gori_session *session, const struct gori_addr *addr)
{
    struct gi_session_store *store = gi_session_store(session);
    struct gori_addr *copy = gi_pool_acquire(&store->addresses);
    if (copy == NULL) {
        return GORI_ENOMEM;
    }
    *copy = *addr;
    struct gori_loop *loop = session->class->loop;
    int result = gori_handle_open(loop, gori_addr_family(addr), &session->handle);
    if (result < 0) {
        gi_pool_release(&store->addresses, copy);
        return result;
    }
    session->send_op.user = copy;
    session->send_op.on_complete = connect_done;
    /* A socket that refuses the option works without it. */
    (void)loop->engine->impl->sockets->set_no_delay(loop->engine, session->handle.native,
                                                    !session->class->options.delay);
    return 0;
}

static int start(struct gori_session *session, const struct gori_addr *addr)
{
    int result = open_socket(session, addr);
    if (result < 0) {
        gi_session_discard(session);
        return result;
    }
    result = gori_op_connect(&session->send_op, &session->handle, session->send_op.user);
    if (result < 0) {
        session->flags |= GI_SESSION_UNBORN;
        gi_session_finish(session, GORI_CLOSE_CONNECT, result);
        return result;
    }
    session->total_at =
        gi_add_saturated_u64(gi_session_clock(session), session->class->options.connect_timeout);
    gi_session_start_timer(session);
    return 0;
}

static int find_class(struct gori_loop *loop, const struct gori_session_events *events,
                      const struct gori_session_options *options,
                      struct gi_session_class **ret_class)
{
    const struct gi_session_class_config config = {
        .loop = loop,
        .events = events,
        .options = options,
        .session_bytes = sizeof(struct gori_session),
    };
    return gi_session_class_find(&loop->session_store, &config, ret_class);
}

int gori_session_connect(struct gori_loop *loop, const struct gori_addr *addr,
                         const struct gori_session_events *events,
                         const struct gori_session_options *options, void *user,
                         struct gori_session **ret_session)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (gori_addr_family(addr) == GORI_ADDR_NONE) {
        return GORI_EINVAL;
    }
    struct gi_session_class *class;
    int result = find_class(loop, events, options, &class);
    if (result < 0) {
        return result;
    }
    struct gori_session *session;
    result = gi_session_create(class, user, &session);
    if (result >= 0) {
        result = start(session, addr);
    }
    gi_session_class_unref(&loop->session_store, class);
    if (result >= 0) {
        *ret_session = session;
    }
    return result;
}

int gori_session_adopt(struct gori_loop *loop, gori_native native,
                       const struct gori_session_events *events,
                       const struct gori_session_options *options, void *user,
                       struct gori_session **ret_session)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (native == GORI_NATIVE_NONE) {
        return GORI_EINVAL;
    }
    struct gi_session_class *class;
    int result = find_class(loop, events, options, &class);
    if (result < 0) {
        return result;
    }
    result = gi_session_adopt(class, user, native, ret_session);
    gi_session_class_unref(&loop->session_store, class);
    return result;
}
