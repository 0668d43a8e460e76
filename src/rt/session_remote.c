/* SPDX-License-Identifier: MIT */
/*
 * Sending to a session of another thread's loop by its id.
 *
 *  1. A send goes through the mailbox always, also from the loop itself: first in, first out for
 *     each sender.  The message comes from the loop's store, so nothing is allocated.
 *  2. A stale id is told to the sender.  A session that closes while the message is on its way, or
 *     refuses it because its peer is too slow, is as with any peer; it is counted.
 *  3. What is still on its way when the loop ends is dropped there.
 * Thread: any, but deliver and drop.
 */
#include <gori/error.h>
#include <gori/session.h>

#include "rt/loop.h"

static void deliver(struct gori_task *task)
{
    struct gi_message *message = gori_container_of(task, struct gi_message, task);
    struct gori_loop *loop = message->task.user;
    struct gori_block *block = message->as.send.block;
    struct gori_session *session = gori_loop_session(loop, message->as.send.id);
    gi_message_release(&loop->shared.messages, message);
    if (session == NULL || gori_session_send_block(session, block) < 0) {
        loop->stats.messages_dropped++; /* 2 */
    }
    gori_block_unref(block);
}

static void drop(struct gi_message *message)
{
    gori_block_unref(message->as.send.block);
}

int gori_loop_send(struct gori_loop *loop, uint64_t id, struct gori_block *block)
{
    if (!gi_id_table_is_live(&loop->sessions, id)) {
        return GORI_ESTALE;
    }
    struct gi_message *message;
    int result = gi_message_acquire(&loop->shared.messages, &message);
    if (result < 0) {
        return result;
    }
    message->task = (struct gori_task){.run = deliver, .user = loop};
    message->drop = drop;
    message->as.send.id = id;
    message->as.send.block = gori_block_ref(block);
    result = gori_loop_post(loop, &message->task);
    if (result < 0) {
        gori_block_unref(block);
        gi_message_release(&loop->shared.messages, message);
    }
    return result;
}
