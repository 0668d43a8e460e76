/* SPDX-License-Identifier: MIT */
/*
 * The run queue: a ring whose two ends only count up.
 *
 * Contract:
 *  1. What was put in comes out exactly once, at the owner or at one thief.
 *  2. In order of push: for what the owner pops, and for what one steal takes.
 *  3. Push fails only when GI_RUN_QUEUE_COUNT are in it; nobody ever waits for anybody.
 *
 * A taker reads the items first and then moves `head` over them by compare and exchange: whoever
 * moves it owns what was read.  A slot is written again only after `head` went beyond it, and then
 * the exchange of a late reader fails.  (Unless 2^32 items pass between its two steps.)
 *
 * Order:
 *  - tail: stored by push with release (in fact sequentially consistent, so that a worker that says
 *    "I sleep" and then looks at the tail sees the push, or the pusher sees it sleep), loaded by
 *    thieves with acquire: they see the items and what those point to.
 *  - head: moved with acquire and release, loaded by push with acquire: a slot is written again
 *    after it was read.  By steal with acquire: the tail that it loads then is not older.
 *  - items: relaxed; they are published by tail and given back by head.
 */
#include "base/run_queue.h"

#include "base/assert.h"

#define MASK (GI_RUN_QUEUE_COUNT - 1U)

_Static_assert((GI_RUN_QUEUE_COUNT & MASK) == 0, "the counters wrap at a power of two");

void gi_run_queue_init(struct gi_run_queue *queue)
{
    gi_atomic_u32_init(&queue->head, 0);
    gi_atomic_u32_init(&queue->tail, 0);
    for (uint32_t i = 0; i < GI_RUN_QUEUE_COUNT; i++) {
        gi_atomic_pointer_init(&queue->items[i], NULL);
    }
}

bool gi_run_queue_push(struct gi_run_queue *queue, void *item)
{
    GI_ASSERT(item != NULL);
    uint32_t tail = gi_atomic_u32_load(&queue->tail, GI_RELAXED);
    uint32_t head = gi_atomic_u32_load(&queue->head, GI_ACQUIRE);
    if (tail - head == GI_RUN_QUEUE_COUNT) {
        return false;
    }
    gi_atomic_pointer_store(&queue->items[tail & MASK], item, GI_RELAXED);
    gi_atomic_u32_store(&queue->tail, tail + 1, GI_SEQ_CST);
    return true;
}

void *gi_run_queue_pop(struct gi_run_queue *queue)
{
    uint32_t tail = gi_atomic_u32_load(&queue->tail, GI_RELAXED);
    uint32_t head = gi_atomic_u32_load(&queue->head, GI_RELAXED);
    void *item;
    do {
        if (head == tail) {
            return NULL;
        }
        item = gi_atomic_pointer_load(&queue->items[head & MASK], GI_RELAXED);
    } while (!gi_atomic_u32_compare_exchange(&queue->head, &head, head + 1, GI_ACQ_REL));
    return item;
}

void *gi_run_queue_steal(struct gi_run_queue *victim, struct gi_run_queue *own, uint32_t count_min,
                         uint32_t *ret_count)
{
    uint32_t head = gi_atomic_u32_load(&victim->head, GI_ACQUIRE);
    uint32_t count = gi_atomic_u32_load(&victim->tail, GI_ACQUIRE) - head;
    if (count < count_min || count > GI_RUN_QUEUE_COUNT) {
        return NULL; /* too little; or `head` was old when the tail was read */
    }
    count -= count / 2;
    void *first = gi_atomic_pointer_load(&victim->items[head & MASK], GI_RELAXED);
    uint32_t own_tail = gi_atomic_u32_load(&own->tail, GI_RELAXED);
    /* With acquire: thieves have read the slots that are written again below. */
    GI_ASSERT(gi_atomic_u32_load(&own->head, GI_ACQUIRE) == own_tail);
    for (uint32_t i = 1; i < count; i++) {
        void *item = gi_atomic_pointer_load(&victim->items[(head + i) & MASK], GI_RELAXED);
        gi_atomic_pointer_store(&own->items[(own_tail + i - 1) & MASK], item, GI_RELAXED);
    }
    if (!gi_atomic_u32_compare_exchange(&victim->head, &head, head + count, GI_ACQ_REL)) {
        return NULL;
    }
    if (count > 1) {
        gi_atomic_u32_store(&own->tail, own_tail + count - 1, GI_SEQ_CST);
    }
    *ret_count = count;
    return first;
}

uint32_t gi_run_queue_count(const struct gi_run_queue *queue)
{
    /* Head first: it only grows up to the tail, so the difference is never negative by much. */
    uint32_t head = gi_atomic_u32_load(&queue->head, GI_SEQ_CST);
    uint32_t count = gi_atomic_u32_load(&queue->tail, GI_SEQ_CST) - head;
    return count > GI_RUN_QUEUE_COUNT ? 0 : count;
}
