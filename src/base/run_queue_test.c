/* SPDX-License-Identifier: MIT */
/*
 * The run queue: order, bound, halves, and every item exactly once with thieves about.
 */
#include "base/run_queue.h"
#include "lib/test.h"

#include <pthread.h>

#define ITEM(number) ((void *)(uintptr_t)(number))

GT_TEST(run_queue_is_first_in_first_out_and_bounded)
{
    static struct gi_run_queue queue;
    gi_run_queue_init(&queue);
    GT_CHECK(gi_run_queue_pop(&queue) == NULL);
    for (uintptr_t round = 0; round < 3; round++) {
        for (uintptr_t i = 1; i <= GI_RUN_QUEUE_COUNT; i++) {
            GT_CHECK(gi_run_queue_push(&queue, ITEM(i)));
        }
        GT_CHECK(!gi_run_queue_push(&queue, ITEM(9999)));
        GT_EQUAL(gi_run_queue_count(&queue), GI_RUN_QUEUE_COUNT);
        for (uintptr_t i = 1; i <= GI_RUN_QUEUE_COUNT; i++) {
            GT_CHECK(gi_run_queue_pop(&queue) == ITEM(i));
        }
        GT_EQUAL(gi_run_queue_count(&queue), 0);
    }
}

GT_TEST(run_queue_gives_half_to_a_thief)
{
    static struct gi_run_queue victim;
    static struct gi_run_queue own;
    uint32_t count = 7;
    gi_run_queue_init(&victim);
    gi_run_queue_init(&own);
    GT_CHECK(gi_run_queue_steal(&victim, &own, 1, &count) == NULL);
    GT_CHECK(gi_run_queue_push(&victim, ITEM(1)));
    GT_CHECK(gi_run_queue_steal(&victim, &own, 2, &count) == NULL);
    GT_EQUAL(count, 7);
    for (uintptr_t i = 2; i <= 5; i++) {
        GT_CHECK(gi_run_queue_push(&victim, ITEM(i)));
    }
    GT_CHECK(gi_run_queue_steal(&victim, &own, 2, &count) == ITEM(1));
    GT_EQUAL(count, 3);
    GT_CHECK(gi_run_queue_pop(&own) == ITEM(2));
    GT_CHECK(gi_run_queue_pop(&own) == ITEM(3));
    GT_CHECK(gi_run_queue_pop(&own) == NULL);
    GT_CHECK(gi_run_queue_pop(&victim) == ITEM(4));
    GT_CHECK(gi_run_queue_steal(&victim, &own, 1, &count) == ITEM(5));
    GT_EQUAL(count, 1);
}

enum { THIEVES = 2, ITEMS = 100000 };

struct robbery {
    struct gi_run_queue victim;
    struct gi_atomic_u32 taken[ITEMS + 1];
    struct gi_atomic_u32 total;
};

static void take(struct robbery *robbery, void *item)
{
    GT_EQUAL(gi_atomic_u32_add(&robbery->taken[(uintptr_t)item], 1, GI_RELAXED), 0);
    (void)gi_atomic_u32_add(&robbery->total, 1, GI_RELAXED);
}

static void *rob(void *argument)
{
    struct robbery *robbery = argument;
    static _Thread_local struct gi_run_queue own;
    gi_run_queue_init(&own);
    while (gi_atomic_u32_load(&robbery->total, GI_RELAXED) < ITEMS) {
        uint32_t count = 0;
        void *item = gi_run_queue_steal(&robbery->victim, &own, 1, &count);
        for (; item != NULL; item = gi_run_queue_pop(&own)) {
            take(robbery, item);
        }
    }
    return NULL;
}

GT_TEST(run_queue_gives_each_item_once)
{
    static struct robbery robbery;
    pthread_t thieves[THIEVES];
    gi_run_queue_init(&robbery.victim);
    for (int i = 0; i < THIEVES; i++) {
        GT_EQUAL(pthread_create(&thieves[i], NULL, rob, &robbery), 0);
    }
    for (uintptr_t i = 1; i <= ITEMS; i++) {
        bool is_in = gi_run_queue_push(&robbery.victim, ITEM(i));
        while (!is_in || i % 3 == 0) {
            void *item = gi_run_queue_pop(&robbery.victim);
            if (item != NULL) {
                take(&robbery, item);
            }
            if (is_in) {
                break;
            }
            is_in = gi_run_queue_push(&robbery.victim, ITEM(i));
        }
    }
    for (void *item; (item = gi_run_queue_pop(&robbery.victim)) != NULL;) {
        take(&robbery, item);
    }
    for (int i = 0; i < THIEVES; i++) {
        GT_EQUAL(pthread_join(thieves[i], NULL), 0);
    }
    GT_EQUAL(gi_atomic_u32_load(&robbery.total, GI_RELAXED), ITEMS);
}

GT_MAIN()
