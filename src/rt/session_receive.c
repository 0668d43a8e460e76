/* SPDX-License-Identifier: MIT */
/*
 * Receiving: from completions of the receive op to on_recv.
 *
 *            completion
 *                |             nothing kept, not paused
 *                +------------------------------------------> on_recv, in the buffer itself
 *                | else
 *                v                      the unconsumed rest <-+
 *          receive queue --> on_recv, joined when it must be -+
 *                ^
 *                +--- gori_session_resume (step 5)
 *
 *  1. Bytes are shown in the order of the stream, each until it is consumed; the end of the stream
 *     and errors come after all of them were shown, also when delivery was paused meanwhile.
 *  2. The queue exists only while something is kept.  Without it a view is the receive buffer.
 *  3. A pause stops delivery at once.  The receive op runs on until something arrives: a pause that
 *     ends before costs nothing.  What arrives is kept and the op cancelled; the system's window
 *     then slows the peer.  What it delivers until it has ended is kept too: a multishot receive
 *     may have filled all the buffers that the kernel had, and those of the turn that it takes to
 *     end it.  The limit is above that, so no peer reaches it by being fast; an engine that goes on
 *     all the same closes the session with GORI_CLOSE_TOO_LARGE.
 *  4. Between resume and step 5 nothing is delivered: what arrives then is kept, behind the rest.
 *  5. What was shown, not consumed and not paused must not exceed `recv_max`.
 *  6. While on_recv runs (store->shown) the queue of its session does not change.
 *  7. Past open nothing is delivered.  Closing and draining count what they throw away, up to
 *     `drain_bytes`: closing then stops reading, draining ends the session.
 *  8. When more than half of the loop's buffers are taken, what is kept is copied out of them: else
 *     as many peers as there are buffers, each with the beginning of a message, would stop the
 *     loop.
 */
#include "rt/session.h"

#include <gori/error.h>

#include "base/assert.h"
#include "base/compiler.h"

/* Rule 3: beyond what was shown, this or so many times all buffers of the loop. */
#define HELD_BYTES_LEAST ((uint64_t)1 << 20)
#define HELD_GROUPS      2u

static struct gi_receive_queue *kept(const struct gori_session *session)
{
    return session->recv_op.user;
}

static void free_queue(struct gori_session *session)
{
    struct gi_session_store *store = gi_session_store(session);
    struct gi_receive_queue *queue = kept(session);
    session->recv_op.user = NULL;
    gi_receive_queue_clear(queue, &store->assemblies);
    gi_pool_release(&store->receive_queues, queue);
}

void gi_session_drop_received(struct gori_session *session)
{
    if (kept(session) != NULL && gi_session_store(session)->shown != session) {
        free_queue(session);
    }
}

/* Appends to the queue, which is made when there is none.  On failure the hold is given up. */
static int keep(struct gori_session *session, struct gi_receive_piece piece)
{
    struct gi_session_store *store = gi_session_store(session);
    struct gi_receive_queue *queue = kept(session);
    int result = GORI_ENOMEM;
    if (queue == NULL) {
        queue = gi_pool_acquire(&store->receive_queues);
        if (queue != NULL) {
            gi_receive_queue_init(queue);
            session->recv_op.user = queue;
        }
    }
    if (queue != NULL) {
        result = gi_receive_queue_push(queue, &store->assemblies, piece);
    }
    if (result < 0) {
        gori_buffer_release(piece.buffer);
    }
    return result;
}

/* Rule 8: who waits must not keep others from receiving. */
static void spare_buffers(struct gori_session *session)
{
    struct gi_receive_queue *queue = kept(session);
    const struct gi_buffers *buffers = &session->class->loop->buffers;
    if (queue != NULL && buffers->held_count + buffers->lent_count > buffers->buffers_max / 2) {
        gi_receive_queue_leave_buffers(queue, &gi_session_store(session)->assemblies);
    }
}

/* Runs on_recv.  Result: bytes consumed. */
static GI_ALWAYS_INLINE size_t show(struct gori_session *session, struct gori_slice bytes,
                                    struct gori_buffer *buffer)
{
    const struct gori_session_events *events = session->class->events;
    if (GI_UNLIKELY(events->on_recv == NULL)) {
        return bytes.size;
    }
    struct gi_session_store *store = gi_session_store(session);
    store->shown = session;
    store->shown_buffer = buffer;
    size_t consumed = events->on_recv(session, bytes);
    store->shown = NULL;
    store->shown_buffer = NULL;
    GI_ASSERT(consumed <= bytes.size);
    return consumed;
}

static bool is_delivering(const struct gori_session *session)
{
    return session->state == GI_SESSION_OPEN &&
           (session->flags & (GI_SESSION_PAUSED | GI_SESSION_REDELIVER)) == 0;
}

static bool is_too_large(const struct gori_session *session, size_t unconsumed)
{
    return GI_UNLIKELY(unconsumed > session->class->options.recv_max) && is_delivering(session);
}

/* Shows what is kept, until nothing new is left.  `again`: beginning with what was seen before. */
static void deliver_kept(struct gori_session *session, bool again)
{
    struct gi_session_store *store = gi_session_store(session);
    struct gi_receive_queue *queue = kept(session);
    while (is_delivering(session)) {
        struct gi_receive_piece view;
        int result = gi_receive_queue_show(queue, &store->assemblies, again, &view);
        if (GI_UNLIKELY(result < 0)) {
            gi_session_finish(session, GORI_CLOSE_ERROR, result);
        }
        if (result <= 0) {
            break;
        }
        again = false;
        size_t consumed = show(session, view.bytes, view.buffer);
        gi_receive_queue_consume(queue, &store->assemblies, consumed);
        if (is_too_large(session, queue->seen)) {
            gi_session_finish(session, GORI_CLOSE_TOO_LARGE, GORI_EMSGSIZE);
        }
    }
    if (queue->bytes == 0 || session->state != GI_SESSION_OPEN) {
        free_queue(session);
    } else {
        spare_buffers(session);
    }
}

/* The common case: the view is the buffer. */
static GI_ALWAYS_INLINE void deliver(struct gori_session *session, struct gi_receive_piece piece)
{
    size_t consumed = show(session, piece.bytes, piece.buffer);
    if (GI_LIKELY(consumed == piece.bytes.size) || session->state != GI_SESSION_OPEN) {
        gori_buffer_release(piece.buffer);
        return;
    }
    piece.bytes.data += consumed;
    piece.bytes.size -= consumed;
    if (is_too_large(session, piece.bytes.size)) {
        gori_buffer_release(piece.buffer);
        gi_session_finish(session, GORI_CLOSE_TOO_LARGE, GORI_EMSGSIZE);
        return;
    }
    int result = keep(session, piece);
    if (GI_UNLIKELY(result < 0)) {
        gi_session_finish(session, GORI_CLOSE_ERROR, result);
        return;
    }
    kept(session)->seen = piece.bytes.size;
    spare_buffers(session);
}

static void discard(struct gori_session *session, struct gi_receive_piece piece)
{
    size_t size = piece.bytes.size;
    gori_buffer_release(piece.buffer);
    if (session->state >= GI_SESSION_ENDING) {
        return;
    }
    session->drain_left -= gi_min_u32(session->drain_left, (uint32_t)gi_min_size(size, UINT32_MAX));
    if (session->drain_left > 0) {
        return;
    }
    if (session->state == GI_SESSION_DRAINING) {
        gi_session_finish(session, session->close_reason, 0);
    } else {
        gori_op_cancel(&session->recv_op);
    }
}

/* Whether more is held back than an engine may deliver before a pause has reached it. */
static bool holds_too_much(const struct gori_session *session)
{
    const struct gi_buffers *buffers = &session->class->loop->buffers;
    uint64_t groups_bytes = (uint64_t)HELD_GROUPS * buffers->buffers_max * buffers->buffer_bytes;
    const struct gi_receive_queue *queue = kept(session);
    return queue->bytes - queue->seen > gi_max_u64(HELD_BYTES_LEAST, groups_bytes);
}

/* Bytes while something is kept or delivery is paused, or past open. */
static void receive_slowly(struct gori_session *session, struct gi_receive_piece piece)
{
    if (session->state != GI_SESSION_OPEN) {
        discard(session, piece);
        return;
    }
    int result = keep(session, piece);
    if (result < 0) {
        gi_session_finish(session, GORI_CLOSE_ERROR, result);
        return;
    }
    if (is_delivering(session)) {
        deliver_kept(session, false);
    } else if (holds_too_much(session)) {
        gi_session_finish(session, GORI_CLOSE_TOO_LARGE, GORI_EMSGSIZE);
    } else {
        spare_buffers(session);
        if ((session->flags & GI_SESSION_PAUSED) != 0) {
            gori_op_cancel(&session->recv_op);
        }
    }
}

/* Whether the end of receiving is due: nothing that was received waits to be shown. */
static bool is_end_due(const struct gori_session *session)
{
    if (session->state != GI_SESSION_OPEN) {
        return true;
    }
    if ((session->flags & GI_SESSION_REDELIVER) != 0) {
        return false;
    }
    /* A failure is not held back from a paused session that has nothing left to be shown. */
    return (session->flags & GI_SESSION_PAUSED) == 0 ||
           (session->recv_error != 0 && kept(session) == NULL);
}

static void op_ended(struct gori_session *session, int64_t result)
{
    if (session->state >= GI_SESSION_ENDING) {
        return;
    }
    if (result > 0 || result == GORI_ECANCELED) {
        gi_session_receive(session); /* unless it was cancelled by a pause that still holds */
        return;
    }
    session->flags |= GI_SESSION_RECV_ENDED;
    session->recv_error = (int16_t)result;
    if (is_end_due(session)) {
        gi_session_receive_ended(session);
    }
}

void gi_session_recv_done(struct gori_op *op, const struct gori_completion *completion)
{
    struct gori_session *session = gori_container_of(op, struct gori_session, recv_op);
    if (GI_LIKELY(completion->result > 0)) {
        const struct gi_receive_piece piece = {completion->buffer, completion->data};
        session->progress_at = session->class->loop->now;
        if (GI_LIKELY(kept(session) == NULL && is_delivering(session))) {
            deliver(session, piece);
        } else {
            receive_slowly(session, piece);
        }
    }
    if (GI_UNLIKELY(completion->is_last)) {
        op_ended(session, completion->result);
    }
}

static bool wants_to_receive(const struct gori_session *session)
{
    switch (session->state) {
    case GI_SESSION_OPEN:
        return (session->flags & GI_SESSION_PAUSED) == 0;
    case GI_SESSION_CLOSING:
        return session->drain_left > 0;
    default:
        return session->state == GI_SESSION_DRAINING;
    }
}

void gi_session_receive(struct gori_session *session)
{
    if (!wants_to_receive(session) || (session->flags & GI_SESSION_RECV_ENDED) != 0 ||
        gori_op_is_active(&session->recv_op)) {
        return;
    }
    int result = gori_op_recv_multi(&session->recv_op, &session->handle);
    if (result < 0) {
        gi_session_finish(session, GORI_CLOSE_ERROR, result);
    }
}

struct gori_buffer *gori_session_retain(struct gori_session *session)
{
    struct gi_session_store *store = gi_session_store(session);
    if (store->shown != session || store->shown_buffer == NULL) {
        return NULL;
    }
    gori_buffer_retain(store->shown_buffer);
    return store->shown_buffer;
}

void gori_session_pause(struct gori_session *session)
{
    if (session->state <= GI_SESSION_OPEN) {
        session->flags |= GI_SESSION_PAUSED;
    }
}

void gori_session_resume(struct gori_session *session)
{
    if (session->state > GI_SESSION_OPEN) {
        return;
    }
    session->flags &= (uint16_t)~GI_SESSION_PAUSED;
    bool is_idle = kept(session) == NULL && gi_session_store(session)->shown != session &&
                   gori_op_is_active(&session->recv_op);
    if (session->state != GI_SESSION_OPEN || is_idle ||
        (session->flags & GI_SESSION_REDELIVER) != 0) {
        return;
    }
    struct gi_session_list *list = &gi_session_store(session)->redeliver;
    if (list->last == NULL) {
        list->first = session;
    } else {
        list->last->next_redeliver = session;
    }
    list->last = session;
    session->flags |= GI_SESSION_REDELIVER;
    session->class->loop->work_left |= !session->class->loop->running;
}

static void redeliver(struct gori_session *session)
{
    session->flags &= (uint16_t)~GI_SESSION_REDELIVER;
    if (!is_delivering(session)) {
        return;
    }
    if (kept(session) != NULL) {
        deliver_kept(session, true);
    }
    if (!is_delivering(session)) {
        return;
    }
    if ((session->flags & GI_SESSION_RECV_ENDED) != 0) {
        gi_session_receive_ended(session);
    }
    gi_session_receive(session);
}

void gi_session_redeliver_all(struct gori_loop *loop)
{
    struct gi_session_list *list = &loop->session_store.redeliver;
    struct gori_session *session = list->first;
    *list = (struct gi_session_list){NULL, NULL};
    while (session != NULL) {
        struct gori_session *next = session->next_redeliver;
        session->next_redeliver = NULL;
        redeliver(session);
        session = next;
    }
    /* What was resumed meanwhile has its turn in the next one. */
    loop->work_left |= list->first != NULL;
}
