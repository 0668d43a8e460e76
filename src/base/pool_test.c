/* SPDX-License-Identifier: MIT */
/*
 * The pool: distinct aligned objects, hot reuse, bounds, flat allocation, no memory, misuse.
 */
#include "base/fault_alloc.h"
#include "base/pool.h"
#include "base/random.h"
#include "lib/test.h"

#include <gori/error.h>

GT_TEST(pool_hands_out_distinct_aligned_objects)
{
    enum { COUNT = 25 };
    struct gi_pool pool;
    uint8_t *objects[COUNT];
    GT_EQUAL(gi_pool_init(&pool, NULL, 40, 8, 0), 0);
    for (int i = 0; i < COUNT; i++) {
        objects[i] = gi_pool_acquire(&pool);
        GT_CHECK(objects[i] != NULL);
        GT_EQUAL((uintptr_t)objects[i] % 16, 0);
        memset(objects[i], i, 40);
    }
    for (int i = 0; i < COUNT; i++) {
        GT_EQUAL(objects[i][0], i);
        GT_EQUAL(objects[i][39], i);
        gi_pool_release(&pool, objects[i]);
    }
    gi_pool_fini(&pool);
}

GT_TEST(pool_reuses_the_hottest_first)
{
    struct gi_pool pool;
    GT_EQUAL(gi_pool_init(&pool, NULL, 1, 4, 0), 0);
    void *first = gi_pool_acquire(&pool);
    void *second = gi_pool_acquire(&pool);
    gi_pool_release(&pool, first);
    gi_pool_release(&pool, second);
    GT_CHECK(gi_pool_acquire(&pool) == second);
    GT_CHECK(gi_pool_acquire(&pool) == first);
    gi_pool_release(&pool, first);
    gi_pool_release(&pool, second);
    gi_pool_fini(&pool);
}

GT_TEST(pool_keeps_its_bound)
{
    struct gi_pool pool;
    GT_EQUAL(gi_pool_init(&pool, NULL, 8, 64, 2), 0);
    void *first = gi_pool_acquire(&pool);
    void *second = gi_pool_acquire(&pool);
    GT_CHECK(gi_pool_acquire(&pool) == NULL);
    gi_pool_release(&pool, first);
    first = gi_pool_acquire(&pool);
    GT_CHECK(first != NULL);
    GT_DIES(gi_pool_fini(&pool));
    gi_pool_release(&pool, first);
    gi_pool_release(&pool, second);
    GT_DIES(gi_pool_release(&pool, first));
    GT_DIES(gi_pool_release(&pool, NULL));
    gi_pool_fini(&pool);
}

/* After warm-up any pattern of use within the same number of objects allocates nothing. */
GT_TEST(pool_is_flat_after_warm_up)
{
    enum { COUNT = 50 };
    struct gi_fault_alloc fault;
    struct gi_pool pool;
    struct gi_random random;
    void *objects[COUNT] = {NULL};
    gi_fault_alloc_init(&fault, NULL);
    gi_random_init(&random, 1);
    GT_EQUAL(gi_pool_init(&pool, &fault.allocator, 100, 10, 0), 0);
    GT_EQUAL(gi_fault_alloc_count(&fault), 0);
    for (int i = 0; i < COUNT; i++) {
        objects[i] = gi_pool_acquire(&pool);
    }
    GT_EQUAL(gi_fault_alloc_count(&fault), 5);
    for (int step = 0; step < 20000; step++) {
        size_t i = (size_t)gi_random_below(&random, COUNT);
        if (objects[i] != NULL) {
            gi_pool_release(&pool, objects[i]);
            objects[i] = NULL;
        } else {
            objects[i] = gi_pool_acquire(&pool);
            GT_CHECK(objects[i] != NULL);
            memset(objects[i], 0xff, 100);
        }
    }
    GT_EQUAL(gi_fault_alloc_count(&fault), 5);
    for (int i = 0; i < COUNT; i++) {
        if (objects[i] != NULL) {
            gi_pool_release(&pool, objects[i]);
        }
    }
    gi_pool_fini(&pool);
    gi_fault_alloc_fini(&fault);
}

GT_TEST(pool_survives_lack_of_memory)
{
    struct gi_fault_alloc fault;
    struct gi_pool pool;
    gi_fault_alloc_init(&fault, NULL);
    GT_EQUAL(gi_pool_init(&pool, &fault.allocator, 100, 1, 0), 0);
    gi_fault_alloc_fail_once(&fault, 2);
    void *first = gi_pool_acquire(&pool);
    GT_CHECK(first != NULL);
    GT_CHECK(gi_pool_acquire(&pool) == NULL);
    void *second = gi_pool_acquire(&pool);
    GT_CHECK(second != NULL);
    gi_pool_release(&pool, first);
    gi_pool_release(&pool, second);
    gi_pool_fini(&pool);
    gi_fault_alloc_fini(&fault);
}

GT_TEST(pool_refuses_impossible_shapes)
{
    struct gi_pool pool;
    GT_EQUAL(gi_pool_init(&pool, NULL, 0, 1, 0), GORI_EINVAL);
    GT_EQUAL(gi_pool_init(&pool, NULL, 1, 0, 0), GORI_EINVAL);
    GT_EQUAL(gi_pool_init(&pool, NULL, SIZE_MAX, 1, 0), GORI_EINVAL);
    GT_EQUAL(gi_pool_init(&pool, NULL, SIZE_MAX / 4, 8, 0), GORI_EINVAL);
}

GT_MAIN()
