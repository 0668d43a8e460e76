/* SPDX-License-Identifier: MIT */
/*
 * A bounded queue of intrusive nodes from many threads to one.  It carries no wake: whoever pushes
 * first is told, and wakes the consumer by whatever means it has.
 * Thread: push from any, all else by the consumer.  Contract: mailbox.c.
 */
#ifndef GI_BASE_MAILBOX_H
#define GI_BASE_MAILBOX_H

#include "base/atomic.h"

#include <gori/base.h>

struct gi_mailbox {
    struct {
        struct gi_atomic_pointer head; /* newest node, NULL when empty, the mailbox when closed */
        struct gi_atomic_size count;   /* nodes pushed and not yet done */
        size_t count_max;              /* constant after init */
    } shared;
    /* Padding and not alignment: allocators promise 16 bytes only. */
    uint8_t padding[GI_CACHE_LINE];
    struct {
        struct gori_mailbox_node *rest; /* oldest node of what was queued when it closed */
    } consumer_only;
};

/** Makes an empty mailbox for at most `count_max` (> 0) nodes. */
void gi_mailbox_init(struct gi_mailbox *mailbox, size_t count_max);

/**
 * Queues `node`, which belongs to the mailbox until it is taken.  `ret_was_empty` tells whether it
 * is the first since the last take: then, and only then, the consumer may not know.
 * Errors: GORI_ELIMIT (count_max are queued or not done), GORI_ECLOSED.
 */
GORI_MUST_USE int gi_mailbox_push(struct gi_mailbox *mailbox, struct gori_mailbox_node *node,
                                  bool *ret_was_empty);

/**
 * The same for a node whose room was promised: it is never refused for want of it, and counts like
 * any other.  For answers, of which there are no more than accepted questions.
 * Errors: GORI_ECLOSED.
 */
GORI_MUST_USE int gi_mailbox_push_owed(struct gi_mailbox *mailbox, struct gori_mailbox_node *node,
                                       bool *ret_was_empty);

/** Takes all that is queued: a chain by `next`, oldest first, NULL when there is nothing. */
struct gori_mailbox_node *gi_mailbox_take(struct gi_mailbox *mailbox);

/** Says that `count` taken nodes are dealt with, which makes room for as many. */
void gi_mailbox_done(struct gi_mailbox *mailbox, size_t count);

/** Closes it: pushes fail from now on; what was accepted before can still be taken.  Idempotent. */
void gi_mailbox_close(struct gi_mailbox *mailbox);

/** Whether it was closed.  Thread: any. */
bool gi_mailbox_is_closed(const struct gi_mailbox *mailbox);

/** Whether nothing is queued; false once it is closed, until that too was taken, then true. */
bool gi_mailbox_is_empty(const struct gi_mailbox *mailbox);

#endif
