/* SPDX-License-Identifier: MIT */
/*
 * The mailbox: an atomic stack that is taken whole and turned around.
 *
 * Contract:
 *  1. Nodes of one sender come out in the order in which that sender pushed them; and what a sender
 *     pushes after it saw another push return comes out after that.
 *  2. An accepted node comes out exactly once.  A refused node was never touched.
 *  3. Never more than count_max nodes are queued or taken and not done: the bound is on work, not
 *     on what happens to stand in the queue at the moment.  A push fails only when as many really
 *     were.  Nodes that are owed come on top: whoever owes them bounds them.
 *  4. Of all pushes between two takes exactly one, the first, is told that the mailbox was empty.
 *     If that one wakes the consumer, no wake is lost.
 *  5. After close no push succeeds; a push that succeeded before is still taken.
 *
 * Why a stack: a push is one compare and exchange, a take one exchange for a whole batch, and since
 * nothing is ever popped singly the ABA problem cannot arise.  Turning the chain around costs one
 * walk over nodes that are about to be used anyway.
 *
 * Order:
 *  - head: push is a read-modify-write with release, so each continues the release sequence of
 *    those before it; take is an exchange with acquire and so sees all nodes and what they carry.
 *    Both, and is_empty, are in fact sequentially consistent, so that a consumer that says "I
 *    sleep" (a sequentially consistent store elsewhere) and then finds the mailbox empty can rely
 *    on the next sender seeing that it sleeps.  On x86-64 and with arm64's LSE this costs nothing
 *    more.
 *  - count: relaxed.  It guards no data, only a number; it is exact because it is changed by
 *    read-modify-write only.
 */
#include "base/mailbox.h"

#include "base/assert.h"

#include <gori/error.h>

/* The head of a closed mailbox is its own address, which is that of no node. */
static bool marks_closed(const struct gi_mailbox *mailbox, const void *head)
{
    return head == mailbox;
}

static bool reserve(struct gi_mailbox *mailbox)
{
    size_t count = gi_atomic_size_load(&mailbox->shared.count, GI_RELAXED);
    do {
        if (count >= mailbox->shared.count_max) {
            return false;
        }
    } while (
        !gi_atomic_size_compare_exchange(&mailbox->shared.count, &count, count + 1, GI_RELAXED));
    return true;
}

static void unreserve(struct gi_mailbox *mailbox, size_t count)
{
    size_t before = gi_atomic_size_sub(&mailbox->shared.count, count, GI_RELAXED);
    GI_ASSERT(before >= count);
}

static struct gori_mailbox_node *turn_around(struct gori_mailbox_node *newest)
{
    struct gori_mailbox_node *oldest = NULL;
    while (newest != NULL) {
        struct gori_mailbox_node *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

void gi_mailbox_init(struct gi_mailbox *mailbox, size_t count_max)
{
    GI_ASSERT(count_max > 0);
    gi_atomic_pointer_init(&mailbox->shared.head, NULL);
    gi_atomic_size_init(&mailbox->shared.count, 0);
    mailbox->shared.count_max = count_max;
    mailbox->consumer_only.rest = NULL;
}

/* For a node that is counted already. */
static int push_counted(struct gi_mailbox *mailbox, struct gori_mailbox_node *node,
                        bool *ret_was_empty)
{
    void *head = gi_atomic_pointer_load(&mailbox->shared.head, GI_RELAXED);
    do {
        if (marks_closed(mailbox, head)) {
            unreserve(mailbox, 1);
            return GORI_ECLOSED;
        }
        node->next = head;
    } while (!gi_atomic_pointer_compare_exchange(&mailbox->shared.head, &head, node, GI_SEQ_CST));
    *ret_was_empty = head == NULL;
    return 0;
}

int gi_mailbox_push(struct gi_mailbox *mailbox, struct gori_mailbox_node *node, bool *ret_was_empty)
{
    if (!reserve(mailbox)) {
        void *head = gi_atomic_pointer_load(&mailbox->shared.head, GI_RELAXED);
        return marks_closed(mailbox, head) ? GORI_ECLOSED : GORI_ELIMIT;
    }
    return push_counted(mailbox, node, ret_was_empty);
}

int gi_mailbox_push_owed(struct gi_mailbox *mailbox, struct gori_mailbox_node *node,
                         bool *ret_was_empty)
{
    (void)gi_atomic_size_add(&mailbox->shared.count, 1, GI_RELAXED);
    return push_counted(mailbox, node, ret_was_empty);
}

struct gori_mailbox_node *gi_mailbox_take(struct gi_mailbox *mailbox)
{
    struct gori_mailbox_node *rest = mailbox->consumer_only.rest;
    if (rest != NULL) {
        mailbox->consumer_only.rest = NULL;
        return rest;
    }
    /* A look first: the exchange would take the cache line from the senders for nothing. */
    void *head = gi_atomic_pointer_load(&mailbox->shared.head, GI_RELAXED);
    if (head == NULL || marks_closed(mailbox, head)) {
        return NULL;
    }
    return turn_around(gi_atomic_pointer_exchange(&mailbox->shared.head, NULL, GI_SEQ_CST));
}

void gi_mailbox_done(struct gi_mailbox *mailbox, size_t count)
{
    unreserve(mailbox, count);
}

void gi_mailbox_close(struct gi_mailbox *mailbox)
{
    void *head = gi_atomic_pointer_exchange(&mailbox->shared.head, mailbox, GI_SEQ_CST);
    if (!marks_closed(mailbox, head)) {
        mailbox->consumer_only.rest = turn_around(head);
    }
}

bool gi_mailbox_is_closed(const struct gi_mailbox *mailbox)
{
    return marks_closed(mailbox, gi_atomic_pointer_load(&mailbox->shared.head, GI_RELAXED));
}

bool gi_mailbox_is_empty(const struct gi_mailbox *mailbox)
{
    void *head = gi_atomic_pointer_load(&mailbox->shared.head, GI_SEQ_CST);
    return head == NULL || (marks_closed(mailbox, head) && mailbox->consumer_only.rest == NULL);
}
