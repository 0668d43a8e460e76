/* SPDX-License-Identifier: MIT */
/*
 * Sending: from the calls of the application to one send in flight.
 *
 *     gori_session_send... --> queue --> (step 6 of the turn) --> send_op --> completion
 *                                ^                                               |
 *                                +------------ more is queued: step 6 -----------+
 *
 *  1. One send is in flight at most.  So what a turn produces, and what waited meanwhile, leaves in
 *     one gathered send, and the order of the stream is the order of the calls.
 *  2. A session stands in store->flush only when it has something queued and nothing in flight; it
 *     stands there once.
 *  3. Small payloads are copied whatever they are: a reference, its piece and its count cost more
 *     than COPY_BYTES_MAX bytes do, and a queue of tiny references would be no longer bounded by
 *     the bytes it counts.
 *  4. At or over `send_high` bytes the producer is told, and on_drain is owed to it until the queue
 *     is at or under `send_low`.  Beyond `send_max` the session closes.
 *  5. loop->stats.send_bytes_now is the sum over all queues.
 */
#include "rt/session.h"

#include <gori/error.h>

#include "base/assert.h"
#include "base/compiler.h"

#define COPY_BYTES_MAX 512

static void send_done(struct gori_op *op, const struct gori_completion *completion);

void gi_session_schedule_flush(struct gori_session *session)
{
    if ((session->flags & GI_SESSION_FLUSH) != 0 || session->state == GI_SESSION_OPENING ||
        gori_op_is_active(&session->send_op)) {
        return;
    }
    struct gori_loop *loop = session->class->loop;
    struct gi_session_list *list = &loop->session_store.flush;
    session->flags |= GI_SESSION_FLUSH;
    session->next_flush = NULL;
    if (list->last == NULL) {
        list->first = session;
    } else {
        list->last->next_flush = session;
    }
    list->last = session;
    loop->work_left |= !loop->running;
}

void gi_session_drop_sends(struct gori_session *session)
{
    struct gori_loop *loop = session->class->loop;
    loop->stats.send_bytes_now -= session->queue.bytes;
    gi_send_queue_clear(&session->queue, &loop->session_store.send);
}

static void submit(struct gori_session *session)
{
    session->flags &= (uint16_t)~GI_SESSION_FLUSH;
    if (session->state >= GI_SESSION_DRAINING || gi_send_queue_is_empty(&session->queue)) {
        return;
    }
    GI_ASSERT(session->state != GI_SESSION_OPENING);
    struct gi_send_batch batch;
    gi_send_queue_next(&session->queue, &batch);
    session->send_op.on_complete = send_done;
    session->progress_seen = 0;
    struct gori_op *op = &session->send_op;
    int result;
    if (GI_UNLIKELY(batch.count == 0)) {
        result = gori_op_send_file(op, &session->handle, &batch.file);
    } else if (GI_UNLIKELY(batch.more)) {
        result = gori_op_send_more(op, &session->handle, batch.pieces, batch.count);
    } else {
        result = gori_op_send(op, &session->handle, batch.pieces, batch.count);
    }
    if (GI_UNLIKELY(result < 0)) {
        gi_session_finish(session, GORI_CLOSE_ERROR, result);
    }
}

void gi_session_flush_all(struct gori_loop *loop)
{
    struct gi_session_list *list = &loop->session_store.flush;
    struct gori_session *session = list->first;
    *list = (struct gi_session_list){NULL, NULL};
    while (session != NULL) {
        struct gori_session *next = session->next_flush;
        submit(session);
        session = next;
    }
}

/* The queue fell under the low mark and the producer waits for it. */
static void drain_if_owed(struct gori_session *session)
{
    if (GI_LIKELY((session->flags & GI_SESSION_HIGH) == 0) ||
        session->queue.bytes > session->class->options.send_low) {
        return;
    }
    session->flags &= (uint16_t)~GI_SESSION_HIGH;
    const struct gori_session_events *events = session->class->events;
    if (session->state == GI_SESSION_OPEN && (session->flags & GI_SESSION_SHUTDOWN) == 0 &&
        events->on_drain != NULL) {
        events->on_drain(session);
    }
}

static void send_done(struct gori_op *op, const struct gori_completion *completion)
{
    struct gori_session *session = gori_container_of(op, struct gori_session, send_op);
    if (GI_UNLIKELY(session->state >= GI_SESSION_ENDING)) {
        return; /* the queue goes when the handle is closed */
    }
    if (GI_UNLIKELY(completion->result < 0)) {
        gi_session_send_failed(session, (int)completion->result);
        return;
    }
    struct gori_loop *loop = session->class->loop;
    session->progress_at = loop->now;
    loop->stats.send_bytes_now -= gi_send_queue_advance(&session->queue, &loop->session_store.send,
                                                        (uint64_t)completion->result);
    drain_if_owed(session);
    if (!gi_send_queue_is_empty(&session->queue)) {
        gi_session_schedule_flush(session);
    } else if (GI_UNLIKELY(session->state != GI_SESSION_OPEN ||
                           (session->flags & GI_SESSION_SHUTDOWN) != 0)) {
        gi_session_flushed(session);
    }
}

/* Whether `size` more bytes may be queued: 0, or why not. */
static int admit(struct gori_session *session, size_t size)
{
    GI_DASSERT(gi_loop_on_thread(session->class->loop));
    if (GI_UNLIKELY(session->state > GI_SESSION_OPEN ||
                    (session->flags & (GI_SESSION_SHUTDOWN | GI_SESSION_SEND_FAILED |
                                       GI_SESSION_CLOSE_OPENED)) != 0)) {
        return GORI_ECLOSED;
    }
    size_t room = session->class->options.send_max - session->queue.bytes;
    if (GI_UNLIKELY(size > room)) {
        gi_session_finish(session, GORI_CLOSE_SLOW, GORI_ELIMIT);
        return GORI_ELIMIT;
    }
    return 0;
}

/* After the queue has grown by `bytes`: what the send call answers. */
static GI_ALWAYS_INLINE int queued(struct gori_session *session, size_t bytes)
{
    session->class->loop->stats.send_bytes_now += bytes;
    gi_session_schedule_flush(session);
    if (GI_UNLIKELY(session->queue.bytes >= session->class->options.send_high)) {
        session->flags |= GI_SESSION_HIGH;
        return GORI_SEND_HIGH;
    }
    return 0;
}

static int send_copy(struct gori_session *session, const void *data, size_t size)
{
    struct gi_send_pools *pools = &gi_session_store(session)->send;
    int result = gi_send_queue_copy(&session->queue, pools, data, size);
    return GI_UNLIKELY(result < 0) ? result : queued(session, size);
}

int gori_session_send(struct gori_session *session, const void *data, size_t size)
{
    int result = admit(session, size);
    if (GI_UNLIKELY(result < 0 || size == 0)) {
        return result;
    }
    return send_copy(session, data, size);
}

int gori_session_send_block(struct gori_session *session, struct gori_block *block)
{
    struct gori_slice bytes = gori_block_view(block);
    int result = admit(session, bytes.size);
    if (GI_UNLIKELY(result < 0 || bytes.size == 0)) {
        return result;
    }
    if (bytes.size <= COPY_BYTES_MAX) {
        return send_copy(session, bytes.data, bytes.size);
    }
    struct gi_send_pools *pools = &gi_session_store(session)->send;
    result = gi_send_queue_push_block(&session->queue, pools, block);
    return result < 0 ? result : queued(session, bytes.size);
}

int gori_session_send_buffer(struct gori_session *session, struct gori_buffer *buffer,
                             struct gori_slice bytes)
{
    int result = admit(session, bytes.size);
    if (GI_UNLIKELY(result < 0 || bytes.size == 0)) {
        return result;
    }
    if (bytes.size <= COPY_BYTES_MAX) {
        return send_copy(session, bytes.data, bytes.size);
    }
    struct gi_send_pools *pools = &gi_session_store(session)->send;
    result = gi_send_queue_push_buffer(&session->queue, pools, buffer, bytes);
    return result < 0 ? result : queued(session, bytes.size);
}

int gori_session_send_file(struct gori_session *session, struct gori_file *file, uint64_t offset,
                           uint64_t size)
{
    int result = admit(session, size == 0 ? 0 : GI_SEND_FILE_COST);
    if (result < 0 || size == 0) {
        return result;
    }
    if (size > INT64_MAX || offset > INT64_MAX - size) {
        return GORI_EINVAL;
    }
    struct gi_send_pools *pools = &gi_session_store(session)->send;
    result = gi_send_queue_push_file(&session->queue, pools, file, offset, size);
    return result < 0 ? result : queued(session, GI_SEND_FILE_COST);
}

size_t gori_session_send_bytes(const struct gori_session *session)
{
    return session->queue.bytes;
}
