/* SPDX-License-Identifier: MIT */
/*
 * The life of a session.
 *
 *        gi_session_create
 *              |
 *          OPENING ------------ connect failed, timed out, close ------------------+
 *              | gi_session_opened                                                 |
 *            OPEN ------------- close, reset, failure, limit ----------------------+
 *              | gi_session_close_gracefully                                       |
 *          CLOSING ------------ the same -----------------------------------------+|
 *              | gi_session_flushed: our end of the stream is sent                ||
 *          DRAINING ----------- end of the stream, a limit, close ---------------+||
 *                                                                                vvv
 *                              gi_session_finish: the handle closes, all ops --> ENDING
 *                              complete                                           |
 *                              gi_session_handle_closed: on_close --------------> CLOSED
 *                              step 7 of the turn, no reference left: the memory is freed
 *
 *  1. State only grows.  The reason is fixed by the first that ends the session.
 *  2. Callbacks run from completions, timers and steps of the turn only; no function that an
 *     application calls runs one.  On_open is the first, on_close the last, once each.
 *  3. Nothing of a session is freed before its handle is closed: then nothing is in flight.
 *  4. A close after flush waits for the peer in DRAINING, since a socket that is closed with unread
 *     bytes sends a reset, which may overtake what the peer has not read yet.
 *  5. When sending fails, what the peer sent before is still shown: the system hands out what it
 *     has received, then the end or an error, which finishes the session.  A paused session is not
 *     waited for.
 *  6. A session whose both directions have ended, each in the open state, finishes: nothing can
 *     happen on it any more.
 */
#include "rt/session.h"

#include <gori/error.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "rt/listener.h"

void gi_session_finish(struct gori_session *session, enum gori_close_reason reason, int error)
{
    if (session->state >= GI_SESSION_ENDING) {
        return;
    }
    session->state = GI_SESSION_ENDING;
    session->close_reason = (uint8_t)reason;
    session->error = (int16_t)error;
    gori_timer_stop(&session->timer);
    gori_handle_close(&session->handle);
}

void gi_session_fail(struct gori_session *session, int error)
{
    switch (error) {
    case GORI_ECONNRESET:
    case GORI_ECONNABORTED:
    case GORI_EPIPE:
        gi_session_finish(session, GORI_CLOSE_RESET, error);
        break;
    case GORI_ETRUNCATED:
        gi_session_finish(session, GORI_CLOSE_TRUNCATED, error);
        break;
    default:
        gi_session_finish(session, GORI_CLOSE_ERROR, error);
        break;
    }
}

static void begin_draining(struct gori_session *session)
{
    session->state = GI_SESSION_DRAINING;
    bool is_shut = (session->flags & GI_SESSION_SHUT) != 0;
    /* A connection on which our end cannot be sent any more has nobody to wait for. */
    if ((!is_shut && gori_handle_shutdown(&session->handle) < 0) || session->drain_left == 0 ||
        (session->flags & GI_SESSION_RECV_ENDED) != 0) {
        gi_session_finish(session, session->close_reason, 0);
        return;
    }
    gori_time drain_timeout = session->class->options.drain_timeout;
    gori_time drained_at = gi_add_saturated_u64(session->class->loop->now, drain_timeout);
    session->total_at = gi_min_u64(session->total_at, drained_at);
    gi_session_start_timer(session);
    gi_session_receive(session);
}

void gi_session_close_gracefully(struct gori_session *session, enum gori_close_reason reason)
{
    GI_ASSERT(session->state == GI_SESSION_OPEN);
    if ((session->flags & GI_SESSION_SEND_FAILED) != 0) {
        gi_session_fail(session, session->error);
        return;
    }
    session->state = GI_SESSION_CLOSING;
    session->close_reason = (uint8_t)reason;
    session->drain_left = session->class->options.drain_bytes;
    gi_session_drop_received(session);
    if (gi_send_queue_is_empty(&session->queue)) {
        begin_draining(session);
        return;
    }
    session->progress_at = session->class->loop->now;
    gi_session_start_timer(session);
    gi_session_receive(session);
}

/* Ends our direction, everything being sent. */
static void shut(struct gori_session *session)
{
    if ((session->flags & GI_SESSION_SHUT) != 0) {
        return;
    }
    session->flags |= GI_SESSION_SHUT;
    /* When it fails the connection is gone, and receiving will say how. */
    int ignored = gori_handle_shutdown(&session->handle);
    (void)ignored;
    if ((session->flags & GI_SESSION_EOF_SHOWN) != 0) {
        gi_session_finish(session, GORI_CLOSE_LOCAL, 0);
    }
}

void gi_session_flushed(struct gori_session *session)
{
    GI_ASSERT(gi_send_queue_is_empty(&session->queue));
    if (session->state == GI_SESSION_CLOSING) {
        begin_draining(session);
    } else if (session->state == GI_SESSION_OPEN) {
        shut(session);
    }
}

void gi_session_begin(struct gori_session *session)
{
    GI_ASSERT(session->state == GI_SESSION_OPENING);
    struct gori_loop *loop = session->class->loop;
    session->state = GI_SESSION_OPEN;
    session->progress_at = loop->now;
    session->total_at = gi_add_saturated_u64(loop->now, session->class->options.total_timeout);
    session->flags |= GI_SESSION_OPENED;
    loop->stats.sessions_opened++;
}

void gi_session_opened(struct gori_session *session)
{
    gi_session_begin(session);
    if ((session->flags & GI_SESSION_CLOSE_OPENED) != 0) {
        gi_session_close_gracefully(session, GORI_CLOSE_LOCAL);
    }
    if (session->class->events->on_open != NULL) {
        session->class->events->on_open(session);
    }
    if (session->state >= GI_SESSION_DRAINING) {
        return;
    }
    gi_session_start_timer(session);
    gi_session_receive(session);
    if (!gi_send_queue_is_empty(&session->queue)) {
        gi_session_schedule_flush(session);
    } else if ((session->flags & GI_SESSION_SHUTDOWN) != 0) {
        gi_session_flushed(session);
    }
}

static void show_eof(struct gori_session *session)
{
    if ((session->flags & GI_SESSION_EOF_SHOWN) != 0) {
        return;
    }
    session->flags |= GI_SESSION_EOF_SHOWN;
    if (session->class->events->on_eof == NULL) {
        gi_session_close_gracefully(session, GORI_CLOSE_PEER);
        return;
    }
    session->class->events->on_eof(session);
    if (session->state == GI_SESSION_OPEN && (session->flags & GI_SESSION_SHUT) != 0) {
        gi_session_finish(session, GORI_CLOSE_LOCAL, 0);
    }
}

void gi_session_receive_ended(struct gori_session *session)
{
    GI_ASSERT((session->flags & GI_SESSION_RECV_ENDED) != 0);
    if ((session->flags & GI_SESSION_SEND_FAILED) != 0) {
        gi_session_fail(session, session->error);
    } else if (session->state == GI_SESSION_DRAINING) {
        /* Everything of ours was sent and acknowledged or not: nothing is to be done about it. */
        gi_session_finish(session, session->close_reason, 0);
    } else if (session->recv_error != 0) {
        gi_session_fail(session, session->recv_error);
    } else if (session->state == GI_SESSION_OPEN) {
        show_eof(session);
    }
}

void gi_session_send_failed(struct gori_session *session, int error)
{
    bool is_readable = session->state == GI_SESSION_OPEN &&
                       (session->flags & (GI_SESSION_PAUSED | GI_SESSION_RECV_ENDED)) == 0;
    if (!is_readable || error == GORI_ETRUNCATED) {
        gi_session_fail(session, error);
        return;
    }
    session->flags |= GI_SESSION_SEND_FAILED;
    session->error = (int16_t)error;
    gi_session_drop_sends(session);
    /* The system answers at once; should it not, there is a limit. */
    gori_time drain_timeout = session->class->options.drain_timeout;
    gori_time failed_at = gi_add_saturated_u64(session->class->loop->now, drain_timeout);
    session->total_at = gi_min_u64(session->total_at, failed_at);
    gi_session_start_timer(session);
}

static void leave_class(struct gori_session *session)
{
    struct gi_session_class *class = session->class;
    class->sessions--;
    gi_listener_session_closed(class);
}

void gi_session_handle_closed(struct gori_handle *handle)
{
    struct gori_session *session = gi_session_of_handle(handle);
    struct gori_loop *loop = session->class->loop;
    if (session->state < GI_SESSION_ENDING) {
        /* The loop closes what is open when it is destroyed. */
        gi_session_finish(session, GORI_CLOSE_SHUTDOWN, 0);
    }
    session->state = GI_SESSION_CLOSED;
    gi_session_drop_sends(session);
    gi_session_drop_received(session);
    if (session->send_op.user != NULL) {
        gi_pool_release(&loop->session_store.addresses, session->send_op.user);
        session->send_op.user = NULL;
    }
    (void)gi_id_table_remove(&loop->sessions, session->id); /* it is the session */
    loop->stats.sessions_now--;
    loop->stats.sessions_closed += (session->flags & GI_SESSION_OPENED) != 0;
    gori_session_ref(session);
    bool is_born = (session->flags & GI_SESSION_UNBORN) == 0;
    if (is_born && session->class->events->on_close != NULL) {
        session->class->events->on_close(session, session->close_reason, session->error);
    }
    gori_session_unref(session);
    leave_class(session);
    gi_listener_retry_starved(loop);
}

void gori_session_close(struct gori_session *session)
{
    gi_session_finish(session, GORI_CLOSE_LOCAL, 0);
}

void gori_session_reset(struct gori_session *session)
{
    if (session->state < GI_SESSION_ENDING) {
        gori_handle_reset(&session->handle);
        gi_session_finish(session, GORI_CLOSE_RESET, 0);
    }
}

void gori_session_close_after_flush(struct gori_session *session)
{
    if (session->state == GI_SESSION_OPEN) {
        gi_session_close_gracefully(session, GORI_CLOSE_LOCAL);
    } else if (session->state == GI_SESSION_OPENING) {
        if (gi_send_queue_is_empty(&session->queue)) {
            gi_session_finish(session, GORI_CLOSE_LOCAL, 0);
        } else {
            session->flags |= GI_SESSION_CLOSE_OPENED;
        }
    }
}

void gori_session_shutdown(struct gori_session *session)
{
    if (session->state > GI_SESSION_OPEN) {
        return;
    }
    session->flags |= GI_SESSION_SHUTDOWN;
    if (session->state == GI_SESSION_OPEN && gi_send_queue_is_empty(&session->queue)) {
        shut(session);
    }
}

/* Runs `act` on every session of the loop.  Closing only changes states: the list stays. */
static void for_each_session(struct gori_loop *loop, void (*act)(struct gori_session *session))
{
    GI_LIST_FOREACH (link, &loop->all_handles) {
        struct gori_handle *handle = gori_container_of(link, struct gori_handle, open);
        if (handle->on_close == gi_session_handle_closed) {
            act(gi_session_of_handle(handle));
        }
    }
}

static void close_for_shutdown(struct gori_session *session)
{
    gi_session_finish(session, GORI_CLOSE_SHUTDOWN, 0);
}

void gi_session_close_all(struct gori_loop *loop)
{
    loop->session_store.ended = true;
    for_each_session(loop, close_for_shutdown);
}

void gi_session_close_idle(struct gori_loop *loop)
{
    for_each_session(loop, gori_session_close_after_flush);
}
