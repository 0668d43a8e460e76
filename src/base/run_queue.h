/* SPDX-License-Identifier: MIT */
/*
 * A bounded first-in-first-out queue of pointers with one owner, who puts in and takes out, and any
 * number of thieves, who take half.  It neither waits nor wakes.
 * Thread: push, pop and steal's `own` by the owner; steal's `victim` and count from any.
 * Contract: run_queue.c.
 */
#ifndef GI_BASE_RUN_QUEUE_H
#define GI_BASE_RUN_QUEUE_H

#include "base/atomic.h"

#include <gori/base.h>

#ifndef GI_RUN_QUEUE_COUNT
#define GI_RUN_QUEUE_COUNT 256U /* a power of two; the model checker takes a smaller one */
#endif

struct gi_run_queue {
    struct gi_atomic_u32 head; /* counts what was taken */
    uint8_t padding[GI_CACHE_LINE - sizeof(struct gi_atomic_u32)];
    struct gi_atomic_u32 tail; /* counts what was put in; written by the owner only */
    struct gi_atomic_pointer items[GI_RUN_QUEUE_COUNT];
};

/** Makes an empty queue. */
void gi_run_queue_init(struct gi_run_queue *queue);

/** Puts `item` (not NULL) behind the others; false when there is no room. */
GORI_MUST_USE bool gi_run_queue_push(struct gi_run_queue *queue, void *item);

/** Takes the oldest, or NULL. */
GORI_MUST_USE void *gi_run_queue_pop(struct gi_run_queue *queue);

/**
 * Takes the older half (rounded up) of `victim`, if it has at least `count_min` (> 0): the oldest
 * is the answer, the others are put into `own`, which is empty.  NULL when there is too little, or
 * when others were faster.  `ret_count` is how many were taken.
 */
GORI_MUST_USE void *gi_run_queue_steal(struct gi_run_queue *victim, struct gi_run_queue *own,
                                       uint32_t count_min, uint32_t *ret_count);

/** How many there are: exact for the owner as to "at least", a glance for others. */
uint32_t gi_run_queue_count(const struct gi_run_queue *queue);

#endif
