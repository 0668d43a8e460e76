/* SPDX-License-Identifier: MIT */
/*
 * The limits of time of a session, on one timer.
 *
 *  1. The timer stands at or before the nearest limit.  When it fires early, because bytes have
 *     moved or a limit was taken away, it is started anew for the nearest limit that is left: what
 *     a message costs is one store of the time, never an operation on the wheel.
 *  2. In flight a long send may show how far it has come; what it moved since the last look counts
 *     as progress.  So the idle limit may be late by up to once its length, and is never early.
 *  3. Opening has the connect limit; open has all; closing has the idle limit (FLUSH_IDLE_TIMEOUT
 *     when there is none, so that a peer that reads nothing cannot hold it for ever) and the total
 *     one; draining has its own.  From closing on the application is not asked any more.
 */
#include "rt/session.h"

#include <gori/error.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/wheel.h"

#define FLUSH_IDLE_TIMEOUT_MS 60000U

static gori_time idle_at(const struct gori_session *session)
{
    uint32_t timeout_ms = session->idle_timeout_ms;
    if (timeout_ms == 0 && session->state == GI_SESSION_CLOSING) {
        timeout_ms = FLUSH_IDLE_TIMEOUT_MS;
    }
    return timeout_ms == 0
               ? GORI_NEVER
               : gi_add_saturated_u64(session->progress_at, timeout_ms * GORI_MILLISECONDS);
}

/* The nearest limit and which it is. */
static gori_time nearest_limit(const struct gori_session *session, enum gori_timeout *ret_which)
{
    bool is_opening = session->state == GI_SESSION_OPENING;
    gori_time at = session->total_at;
    *ret_which = is_opening ? GORI_TIMEOUT_CONNECT : GORI_TIMEOUT_TOTAL;
    if (is_opening || session->state >= GI_SESSION_DRAINING) {
        return at;
    }
    if (session->state == GI_SESSION_OPEN && session->deadline_at < at) {
        at = session->deadline_at;
        *ret_which = GORI_TIMEOUT_DEADLINE;
    }
    gori_time idle = idle_at(session);
    if (idle < at) {
        at = idle;
        *ret_which = GORI_TIMEOUT_IDLE;
    }
    return at;
}

void gi_session_start_timer(struct gori_session *session)
{
    enum gori_timeout which;
    gori_time at = nearest_limit(session, &which);
    struct gori_timer *timer = &session->timer;
    if (at == GORI_NEVER || (gori_timer_is_active(timer) && timer->entry.deadline <= at)) {
        return;
    }
    gi_timer_start_at(session->class->loop, timer, at);
}

/* Counts what the send in flight has moved since the last look as progress. */
static void look_at_send(struct gori_session *session)
{
    const struct gori_op *op = &session->send_op;
    if (session->state == GI_SESSION_OPENING || !gori_op_is_active(op)) {
        return;
    }
    uint64_t progress =
        op->kind == GORI_OP_SEND_FILE ? op->as.send_file.progress : op->as.send.progress;
    if ((uint32_t)progress != session->progress_seen) {
        session->progress_seen = (uint32_t)progress;
        session->progress_at = session->class->loop->now;
    }
}

/* An open session and a handler of its own. */
static void ask_application(struct gori_session *session, enum gori_timeout which)
{
    if (which == GORI_TIMEOUT_TOTAL) {
        session->total_at = GORI_NEVER;
    } else if (which == GORI_TIMEOUT_DEADLINE) {
        session->deadline_at = GORI_NEVER;
    }
    session->class->events->on_timeout(session, which);
    if (session->state == GI_SESSION_OPEN) {
        session->progress_at = session->class->loop->now;
    }
    if (session->state < GI_SESSION_ENDING) {
        gi_session_start_timer(session);
    }
}

void gi_session_timer_expired(struct gori_timer *timer)
{
    struct gori_session *session = gori_container_of(timer, struct gori_session, timer);
    GI_ASSERT(session->state < GI_SESSION_ENDING);
    look_at_send(session);
    enum gori_timeout which;
    if (nearest_limit(session, &which) > session->class->loop->now) {
        gi_session_start_timer(session);
    } else if (session->state == GI_SESSION_DRAINING) {
        gi_session_finish(session, session->close_reason, 0);
    } else if ((session->flags & GI_SESSION_SEND_FAILED) != 0) {
        gi_session_fail(session, session->error);
    } else if (session->state != GI_SESSION_OPEN || session->class->events->on_timeout == NULL) {
        gi_session_finish(session, GORI_CLOSE_TIMEOUT, GORI_ETIMEDOUT);
    } else {
        ask_application(session, which);
    }
}

void gori_session_set_deadline(struct gori_session *session, gori_time delay)
{
    if (session->state > GI_SESSION_OPEN) {
        return;
    }
    session->deadline_at = gi_add_saturated_u64(gi_session_clock(session), delay);
    gi_session_start_timer(session);
}

void gori_session_set_idle_timeout(struct gori_session *session, gori_time timeout)
{
    if (session->state >= GI_SESSION_DRAINING) {
        return;
    }
    gori_time timeout_ms = timeout / GORI_MILLISECONDS + (timeout % GORI_MILLISECONDS != 0);
    session->idle_timeout_ms = timeout_ms > UINT32_MAX ? 0 : (uint32_t)timeout_ms;
    session->progress_at = session->class->loop->now;
    if (session->state != GI_SESSION_OPENING) {
        gi_session_start_timer(session);
    }
}
